package upstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// greeting is the server's answer to a handshake. mcpx needs none of its members (except supported, from a modern server),
// so it treats a member of a wrong type as absent.
type greeting struct {
	version, instructions string
	title, release        string
	supported             []string // the server's revisions; only server/discover returns them
	logging               bool     // the server has the capability "logging"
	offers                catalog.Offers
}

func readGreeting(method string, result json.RawMessage) (greeting, error) {
	members, ok := wire.ReadObject(result)
	if !ok && string(result) != "null" {
		return greeting{}, fmt.Errorf("reading %s: the result is not an object", method)
	}
	var g greeting
	if version, _ := wire.Text(members["protocolVersion"]); strings.IndexFunc(version, notInHeader) < 0 {
		g.version = version
	}
	g.instructions, _ = wire.Text(members["instructions"])
	var supported []json.RawMessage
	_ = json.Unmarshal(members["supportedVersions"], &supported) // if the member is invalid, supported stays empty
	for _, one := range supported {
		if version, ok := wire.Text(one); ok {
			g.supported = append(g.supported, version)
		}
	}
	capabilities, _ := wire.ReadObject(members["capabilities"])
	_, g.logging = wire.ReadObject(capabilities["logging"])
	resources, ok := wire.ReadObject(capabilities["resources"])
	g.offers.Resources, g.offers.Subscribe = ok, string(resources["subscribe"]) == "true"
	_, g.offers.Prompts = wire.ReadObject(capabilities["prompts"])
	_, g.offers.Completions = wire.ReadObject(capabilities["completions"])
	extensions, _ := wire.ReadObject(capabilities["extensions"])
	_, g.offers.Tasks = wire.ReadObject(extensions[caller.TasksExtension])
	_, g.offers.Skills = wire.ReadObject(extensions["io.modelcontextprotocol/skills"])
	// mcpx handles these capabilities itself (legacy tasks by polling), so they do not belong to g.offers.Others.
	for _, known := range []string{"tools", "resources", "prompts", "completions", "logging", "tasks"} {
		delete(capabilities, known)
	}
	if others := wire.Encode(capabilities); len(capabilities) > 0 && len(others) <= maxOthers {
		g.offers.Others = string(others)
	}
	g.title, g.release = selfNamed(members["serverInfo"])
	meta, _ := wire.ReadObject(members["_meta"])
	if title, release := selfNamed(meta["io.modelcontextprotocol/serverInfo"]); title != "" {
		g.title, g.release = title, release
	}
	return g, nil
}

// maxOthers bounds the JSON of the capabilities that mcpx does not know, in bytes.
const maxOthers = 64 << 10

// notInHeader reports whether HTTP headers must not contain r. No MCP revision contains such a rune.
func notInHeader(r rune) bool { return r <= ' ' || r > '~' }

// selfNamed returns the title (or else the name) and the version that a server gives in its serverInfo.
func selfNamed(raw json.RawMessage) (title, release string) {
	members, _ := wire.ReadObject(raw)
	name, _ := wire.Text(members["name"])
	title, _ = wire.Text(members["title"])
	release, _ = wire.Text(members["version"])
	return cmp.Or(title, name), release
}
