package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// buildNfpm builds nfpm, the program that makes deb and rpm, in the folder temp. nfpm has a module of its own here: its go.sum
// pins the version, and its dependencies stay out of the module of mcpx.
func buildNfpm(temp string) (path string, err error) {
	path = filepath.Join(temp, "nfpm")
	command := exec.Command("go", "-C", "tools/release/nfpm", "build", "-trimpath", "-o", path, "github.com/goreleaser/nfpm/v2/cmd/nfpm")
	command.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building nfpm: %w\n%s", err, out)
	}
	return path, nil
}

// systemFiles returns the files that a package installs in addition to the program, by their path on the user's system. The
// systemd unit is installed, but not enabled.
func (r *making) systemFiles() (map[string][]byte, error) {
	files := map[string][]byte{"/usr/share/doc/mcpx/copyright": r.licences}
	read := map[string]string{
		"deploy/mcpx.service":      "/usr/lib/systemd/system/mcpx.service",
		"cmd/mcpx/completion/bash": "/usr/share/bash-completion/completions/mcpx",
		"cmd/mcpx/completion/zsh":  "/usr/share/zsh/vendor-completions/_mcpx",
		"cmd/mcpx/completion/fish": "/usr/share/fish/vendor_completions.d/mcpx.fish",
	}
	for _, pattern := range []string{"*.md", "config.example.json", "docs/*.md", "docs/*.svg"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			read[name] = "/usr/share/doc/mcpx/" + filepath.ToSlash(name)
		}
	}
	for name, to := range read {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[to] = data
	}
	unit := "/usr/lib/systemd/system/mcpx.service"
	files[unit] = []byte(strings.ReplaceAll(string(files[unit]), "/usr/local/bin/", "/usr/bin/"))
	return files, nil
}

// system makes the deb and rpm packages for a Linux platform. For other platforms, or without r.nfpm, it makes none.
func (r *making) system(b *binary) {
	if b.os != "linux" || r.nfpm == "" {
		return
	}
	for _, kind := range []string{"deb", "rpm"} {
		data, err := r.packaged(b, kind)
		r.add("mcpx-"+r.version.npm+"-"+b.target()+"."+kind, data, err)
	}
}

// packaged lets nfpm make a package of the kind deb or rpm in a temporary folder, and returns the package.
func (r *making) packaged(b *binary, kind string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "mcpx-package")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	files, err := r.systemFiles()
	if err != nil {
		return nil, err
	}
	if kind == "rpm" { // on Red Hat, zsh has another folder for completions
		files["/usr/share/zsh/site-functions/_mcpx"] = files["/usr/share/zsh/vendor-completions/_mcpx"]
		delete(files, "/usr/share/zsh/vendor-completions/_mcpx")
	}
	files["/usr/bin/mcpx"] = b.data
	var contents []map[string]any
	for _, to := range sorted(files) {
		from := filepath.Join(temp, strings.ReplaceAll(to, "/", "_"))
		if err := os.WriteFile(from, files[to], 0o600); err != nil {
			return nil, err
		}
		mode := 0o644
		if path.Dir(to) == "/usr/bin" {
			mode = 0o755
		}
		contents = append(contents, map[string]any{"src": from, "dst": to, "file_info": map[string]any{"mode": mode, "mtime": fileTime.Format(time.RFC3339)}})
	}
	config, out := filepath.Join(temp, "nfpm.yaml"), filepath.Join(temp, "out")
	err = os.WriteFile(config, encoded(map[string]any{ // nfpm reads YAML, and JSON is YAML
		"name": "mcpx", "version": r.version.npm, "platform": b.os, "arch": b.arch, "maintainer": "mcpx", "description": summary,
		"license": licence, "section": "net", "mtime": fileTime.Format(time.RFC3339), "contents": contents, "disable_globbing": true,
		"rpm": map[string]any{"buildhost": "mcpx"},
	}), 0o600)
	if err != nil {
		return nil, err
	}
	command := exec.Command(r.nfpm, "package", "--config", config, "--packager", kind, "--target", out)
	if said, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("nfpm: %w\n%s", err, said)
	}
	return os.ReadFile(out)
}
