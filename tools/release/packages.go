package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/desk/config"
)

// These are the description and the licence of mcpx in package registries and clients.
const (
	summary = "One MCP server in front of many: two tools, a catalogue inside a token budget, results in the fewest tokens"
	licence = "MIT"
)

// npmName is the name of the npm package and of the Python package. pypiName is the same name in the form that the file names
// of a Python package need.
var npmName, pypiName = config.Distribution, strings.ReplaceAll(config.Distribution, "-", "_")

// launcher is the main script of the npm package. It finds the npm package for the user's platform and starts the binary
// in it.
//
//go:embed launcher.js
var launcher []byte

// bundle makes a bundle for Claude Desktop (MCPB, manifest 0.3). There is one bundle for each platform, because a manifest
// cannot say for which processor the bundle is.
func (r *making) bundle(b *binary) {
	manifest := encoded(map[string]any{
		"manifest_version": "0.3", "name": "mcpx", "display_name": "mcpx", "version": r.version.npm, "description": summary,
		"author":        map[string]any{"name": "mcpx"},
		"license":       licence,
		"compatibility": map[string]any{"platforms": []string{b.mcpb}},
		"server": map[string]any{
			"type": "binary", "entry_point": "server/" + b.name(),
			"mcp_config": map[string]any{
				"command": "${__dirname}/server/" + b.name(),
				"args":    []string{"--config", "${user_config.config}"},
			},
		},
		"user_config": map[string]any{"config": map[string]any{
			"type": "file", "title": "Config file", "required": true,
			"description": "The file with your servers: mcpServers, as in claude_desktop_config.json, whose other servers mcpx can take over",
		}},
	})
	data, err := zipped(r.level, []file{
		{"manifest.json", manifest, false}, {"server/" + b.name(), b.data, true}, {"LICENSES.txt", r.licences, false},
	})
	r.add("mcpx-"+r.version.npm+"-"+b.target()+".mcpb", data, err)
}

// npmPlatform makes the npm package with the binary for one platform. npm installs only the package for the user's
// platform.
func (r *making) npmPlatform(b *binary) {
	name := npmName + "-" + b.npm
	system, processor, _ := strings.Cut(b.npm, "-")
	data, err := tarred(r.level, []file{
		{"package/package.json", encoded(map[string]any{
			"name": name, "version": r.version.npm,
			"description": "mcpx for " + b.npm + "; install " + npmName + " instead",
			"license":     licence, "os": []string{system}, "cpu": []string{processor}, "preferUnplugged": true,
		}), false},
		{"package/bin/" + b.name(), b.data, true},
		{"package/LICENSES.txt", r.licences, false},
	})
	r.add(name+"-"+r.version.npm+".tgz", data, err)
}

// npmLauncher makes the npm package that users install. It depends on the packages for the platforms, and has no install
// script.
func (r *making) npmLauncher() {
	optional := make(map[string]string)
	for _, p := range platforms {
		optional[npmName+"-"+p.npm] = r.version.npm
	}
	data, err := tarred(r.level, []file{
		{"package/package.json", encoded(map[string]any{
			"name": npmName, "version": r.version.npm, "description": summary, "license": licence,
			"bin": map[string]string{"mcpx": "launcher.js"}, "optionalDependencies": optional,
			"engines": map[string]string{"node": ">=18"},
		}), false},
		{"package/launcher.js", launcher, true},
		{"package/README.md", []byte("# mcpx\n\n" + summary + ".\n\n    npx " + npmName + " demo\n    npm install --global " + npmName + " && mcpx init\n"), false},
	})
	r.add(npmName+"-"+r.version.npm+".tgz", data, err)
}

// wheel makes the Python wheel (PEP 427) for one platform. Its only script is the binary.
func (r *making) wheel(b *binary) {
	base := pypiName + "-" + r.version.pypi
	info := base + ".dist-info/"
	var tags bytes.Buffer
	for _, tag := range strings.Split(b.wheel, ".") {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", tag)
	}
	files := []file{
		{base + ".data/scripts/" + b.name(), b.data, true},
		{info + "METADATA", []byte(fmt.Sprintf("Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\n"+
			"License-Expression: %s\nLicense-File: LICENSES.txt\nRequires-Python: >=3.8\n",
			npmName, r.version.pypi, summary, licence)), false},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: mcpx-release\nRoot-Is-Purelib: false\n" + tags.String()), false},
		{info + "licenses/LICENSES.txt", r.licences, false},
	}
	var record bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	data, err := zipped(r.level, append(files, file{info + "RECORD", record.Bytes(), false}))
	r.add(base+"-py3-none-"+b.wheel+".whl", data, err)
}

// contents returns the list of the modules in the binaries, in the format CycloneDX 1.6.
func contents(v version, binaries []*binary) []byte {
	component := func(kind, name, version string) map[string]any {
		purl := "pkg:golang/" + name + "@" + version
		return map[string]any{"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}
	}
	main := component("application", binaries[0].info.Main.Path, "v"+v.npm)
	parts := []any{component("library", "std", strings.TrimPrefix(binaries[0].info.GoVersion, "go"))}
	for _, m := range modules(binaries) {
		parts = append(parts, component("library", m.Path, m.Version))
	}
	refs := make([]any, len(parts))
	for i, part := range parts {
		refs[i] = part.(map[string]any)["bom-ref"]
	}
	main["properties"] = []any{map[string]string{"name": "commit", "value": v.commit}}
	return encoded(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":     map[string]any{"component": main},
		"components":   parts,
		"dependencies": []any{map[string]any{"ref": main["bom-ref"], "dependsOn": refs}},
	})
}

// encoded returns v as indented JSON.
func encoded(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		panic(err) // v has only what JSON can express
	}
	return out.Bytes()
}
