package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestConnect_OtherFiles: with --move, connect also takes servers out of VS Code's settings.json, and disconnect brings
// both files back.
func TestConnect_OtherFiles(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const folder = "config/Code/User/"
	settings := "{\n  // mine\n  \"mcp\": {\"servers\": {\"old\": " + fakeEntry(t) + "}}\n}\n"
	file := h.write(t, folder+"settings.json", settings)
	out := h.must(t, 0, "init", "--yes")
	hasAll(t, out, "connected VS Code", "VS Code still has old itself", "mcpx connect vscode --move")
	if got := readFile(t, file); got != settings {
		t.Errorf("without --move it has changed:\n%s", got)
	}
	hasAll(t, h.must(t, 0, "connect", "vscode", "--move", "--yes"), "-  \"mcp\"", "settings.json", "undo: mcpx disconnect vscode")
	if got := readFile(t, file); strings.Contains(got, "old") || !strings.Contains(got, "// mine") {
		t.Errorf("got %s", got)
	}
	h.must(t, 0, "disconnect", "vscode", "--yes")
	if got := readFile(t, file); got != settings {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(filepath.Join(h.dir, folder, "mcp.json")); !os.IsNotExist(err) {
		t.Errorf("mcp.json is still there: %v", err)
	}

	// A settings.json that mcpx has nothing to do with may be broken.
	h.write(t, folder+"settings.json", "{")
	h.must(t, 0, "connect", "vscode", "--yes")
	h.must(t, 0, "disconnect", "vscode", "--yes")
}

// TestConnect_Projects: with --move, connect also takes out servers that Claude Code has for single projects.
func TestConnect_Projects(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	project := "{\n  \"mcpServers\": {\n    \"shared\": " + fakeEntry(t) + ",\n    \"own\": {\"command\": \"no-such-program\"}\n  }\n}\n"
	projectFile := h.write(t, "app/.mcp.json", project)
	user := "{\n  \"projects\": {\"" + filepath.Join(h.dir, "other") + "\": {\"mcpServers\": {\"local\": " + fakeEntry(t) + "}}}\n}\n"
	userFile := h.write(t, ".claude.json", user)
	h.write(t, "other/README", "")
	h.must(t, 0, "init", "--yes", "--no-check", "--from", projectFile, "--from", userFile)
	h.must(t, exitFailed, "check")

	hasAll(t, h.must(t, 0, "connect", "claude-code", "--yes"), "Claude Code still has local itself")
	h.must(t, 0, "connect", "claude-code", "--yes", "--move")
	if got := readFile(t, userFile); strings.Contains(got, "local") || !strings.Contains(got, `"projects"`) {
		t.Errorf("got %s", got)
	}
	hasAll(t, h.must(t, 0, "connect", "claude-code", "--yes", "--move", "--file", projectFile), "Claude Code keeps own")
	if got := readFile(t, projectFile); strings.Contains(got, "shared") || !strings.Contains(got, `"own"`) {
		t.Errorf("got %s", got)
	}
	hasAll(t, h.must(t, 0, "disconnect", "claude-code", "--yes"), "byte for byte")
	hasAll(t, h.must(t, 0, "disconnect", "claude-code", "--yes", "--file", projectFile), "byte for byte")
	if got := readFile(t, userFile); got != user {
		t.Errorf("got %s", got)
	}
	if got := readFile(t, projectFile); got != project {
		t.Errorf("got %s", got)
	}
}

// TestConnect_ByHand: where mcpx cannot write a client's file, it says what to give the client.
func TestConnect_ByHand(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	hasAll(t, h.must(t, 0, "connect"), "jetbrains", "by hand")
	hasAll(t, h.must(t, 0, "connect", "jetbrains"), "Settings | Tools | AI Assistant", `"mcpServers": {`, "--config")
	hasAll(t, h.must(t, 0, "disconnect", "jetbrains"), "Settings | Tools | AI Assistant")
	file := h.write(t, "config/goose/config.yaml", "extensions: {own: {type: stdio, cmd: own, args: []}}\n")
	hasAll(t, h.must(t, exitFailed, "connect", "goose", "--yes"), file, "cannot be edited safely", "nothing was written", "by hand:",
		"extensions:\n  mcpx:\n    enabled: true\n")
}

// TestConnect_OwnConfig: if a client's file is also the config of mcpx, connect refuses to change it. Otherwise --move would
// remove from the file the servers that mcpx serves from this file. A config of mcpx may have the name of a project's file. Its
// servers then do not count as a project's, so --move still finds them in a client's file.
func TestConnect_OwnConfig(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	file := h.write(t, ".cursor/mcp.json", `{"mcpServers": {"fake": `+fakeEntry(t)+`}}`)
	link := filepath.Join(h.dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, file)
	for _, config := range []string{file, link} {
		out := h.must(t, exitFailed, "connect", "cursor", "--move", "--yes", "--config", config)
		hasAll(t, out, "is the file of Cursor and the config of mcpx, which needs one of its own", "mcpx init --from "+config)
	}
	if got := readFile(t, file); got != before {
		t.Errorf("got %s", got)
	}
	project := h.write(t, "project/.mcp.json", `{"mcpServers": {}}`)
	hasAll(t, h.must(t, 0, "init", "--move", "--yes", "--config", project), "connected Cursor")
	if got := readFile(t, file); strings.Contains(got, `"fake"`) {
		t.Errorf("got %s", got)
	}
	hasAll(t, h.must(t, 0, "init", "--yes", "--config", project), "has all of them", "connected already")
}
