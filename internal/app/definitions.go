package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
)

// definitionText has the parts of a tool's definition that users approve.
type definitionText struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

func definitionOf(t *catalog.Tool) definitionText {
	return definitionText{t.Name, t.Description, t.InputSchema, t.OutputSchema, t.Annotations}
}

func (d *definitionText) tool() *catalog.Tool {
	return &catalog.Tool{
		Name: d.Name, Description: d.Description, InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, Annotations: d.Annotations,
	}
}

// asWritten replaces the escapes for <, > and & by the characters themselves; schemas from servers written in Go have such escapes. The
// first pair keeps two backslashes as they are, so that the second backslash is not taken for the beginning of an escape.
var asWritten = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// text returns the definition for a person. It escapes the characters of [sanitize.Invisible], such as characters that change the
// direction of text.
func (d definitionText) text() string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(d) != nil {
		return ""
	}
	var out strings.Builder
	for _, c := range strings.TrimRight(asWritten.Replace(b.String()), "\n") {
		hidden := c != '\n' && sanitize.Invisible(c)
		switch {
		case hidden && c <= 0xFFFF:
			fmt.Fprintf(&out, `\u%04x`, c)
		case hidden:
			fmt.Fprintf(&out, `\U%08x`, c)
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// keptDefinitions returns the path of the file with the approved definitions of a server, or "" if there is no folder for the file. The
// definitions are not in the lock file, because users may keep that file in a repository. The lock file has only digests of them.
func keptDefinitions(cfg *config.Config, server string) string {
	dir := cacheDir()
	if dir == "" {
		return ""
	}
	file, err := filepath.Abs(cfg.Path)
	if err != nil {
		file = cfg.Path
	}
	return filepath.Join(filepath.Dir(dir), "approved", registry.Key(file, server)+".json")
}

// KeepDefinitions stores the present tool definitions of a server when the user approves them, so that mcpx can show how a later definition
// differs. It ignores an error, because then only this comparison is missing.
func KeepDefinitions(cfg *config.Config, s *catalog.Server) {
	file := keptDefinitions(cfg, s.Name)
	if file == "" {
		return
	}
	all := make([]definitionText, len(s.Tools))
	for i := range s.Tools {
		all[i] = definitionOf(&s.Tools[i])
	}
	data, err := json.Marshal(all)
	if err == nil && os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = atomicfile.Write(file, data, 0o600)
	}
}

// approvedDefinitions returns the definitions that KeepDefinitions has stored, by the name of the tool. It leaves out a definition whose
// digest is not the approved one, because somebody may have changed the file.
func approvedDefinitions(cfg *config.Config, server string, approved map[string]string) map[string]definitionText {
	found := make(map[string]definitionText)
	data, err := os.ReadFile(keptDefinitions(cfg, server))
	var all []definitionText
	if err != nil || json.Unmarshal(data, &all) != nil {
		return found
	}
	for _, one := range all {
		if digest := approved[one.Name]; digest != "" && digest == policy.Digest(one.tool()) {
			found[one.Name] = one
		}
	}
	return found
}
