package executor

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
)

func saves(from request.From, handle, path, filter string) Request {
	args := map[string]string{"handle": handle, "path": path}
	if filter != "" {
		args["select"] = filter
	}
	return Request{From: from, Server: builtin.Name, Tool: builtin.SaveTool, Arguments: wire.Encode(args)}
}

// TestSave: a kept result becomes a new file with its bytes. No existing file is replaced. Nothing is written outside of the
// folders, with another principal's handle, or for a caller that may only read.
func TestSave(t *testing.T) {
	folder := t.TempDir()
	e, _ := referring(t, Options{Files: FileOptions{Folders: []string{folder}}}, nil)
	text, list := long()
	png := []byte("\x89PNG\r\n\x1a\n\x00\xff" + strings.Repeat("\x00\x01", 900))
	blocks := `{"content":[{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(png) + `"}],"other":[` +
		strings.Repeat(`{"a":1},`, 900) + `{"type":"audio","data":"` + base64.RawURLEncoding.EncodeToString(png) + `"}]}`
	for name, test := range map[string]struct{ kept, filter, want string }{
		"text":  {text, "", text},
		"list":  {list, "", list},
		"json":  {string(wire.Encode(text)), "", string(wire.Encode(text))},
		"one":   {list, ".[0].t", `é "$result"`},
		"item":  {list, ".[0].a", "1.10"},
		"image": {blocks, ".content[0]", string(png)},
		"audio": {blocks, ".other[-1]", string(png)},
		"whole": {blocks, "", string(png)},
	} {
		handle := kept(t, e, sentBy("a"), test.kept)
		got := contents(t, exec(t, e, saves(sentBy("a"), handle, name, test.filter)))[0]
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(data, []byte(test.want)) || !strings.HasSuffix(got, filepath.Join(folder, name)) {
			t.Errorf("%s: %s: %.100q, %v; want %.100q", name, got, data, err, test.want)
		}
		again := exec(t, e, saves(sentBy("a"), handle, name, ""))
		if !again.IsError || !strings.Contains(contents(t, again)[0], "/path: exists already") {
			t.Errorf("%s again: %s", name, contents(t, again)[0])
		}
	}
	before, _ := os.ReadDir(folder)
	handle := kept(t, e, sentBy("a"), text)
	door := saves(sentBy("a"), handle, "door", "")
	door.ReadOnly = true
	group := saves(sentBy("a"), handle, "group", "")
	group.Scope = &policy.Scope{Rules: &policy.Rules{ReadOnly: true}}
	denied := saves(sentBy("a"), handle, "denied", "")
	denied.Scope = &policy.Scope{Rules: &policy.Rules{Disabled: []string{"mcpx.save_result"}}}
	for want, r := range map[string]Request{
		"VALIDATION_ERROR: /handle: the result is unknown":            saves(sentBy("b"), handle, "other", ""),
		"VALIDATION_ERROR: /handle: ":                                 saves(sentBy("a"), "r0", "none", ""),
		"VALIDATION_ERROR: /path: \".x\"":                             saves(sentBy("a"), handle, ".x", ""),
		"VALIDATION_ERROR: /path: \"..\"":                             saves(sentBy("a"), handle, "../x", ""),
		"VALIDATION_ERROR: /path: is not in a folder":                 saves(sentBy("a"), handle, "/tmp/x", ""),
		"VALIDATION_ERROR: /select: the filter gave 2":                saves(sentBy("a"), handle, "two", "1, 2"),
		"EXECUTION_ERROR: mcpx.save_result is not declared read-only": door,
		"TOOL_NOT_FOUND": group, "TOOL_NOT_FOUND: ": denied,
	} {
		got := exec(t, e, r)
		if text := contents(t, got)[0]; !got.IsError || !strings.HasPrefix(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	if after, _ := os.ReadDir(folder); len(after) != len(before) {
		t.Errorf("files: %v", after)
	}
}

// TestSave_Closed: without a folder, or with several principals, the tool save_result does not exist, and no text suggests it. A
// reference cannot pass on a file, and a program cannot read one; the error says why.
func TestSave_Closed(t *testing.T) {
	mcptest.NoLeaks(t) // called before withPrograms, so that it checks for leaks after the helpers of programs were closed
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []FileOptions{{}, {Roots: true}, {Folders: []string{folder}, Roots: true, Shared: true}} {
		e, _ := referring(t, withPrograms(t, Options{Files: o}), nil)
		from := sentBy("a")
		if o.Shared {
			from = rooted(folder)
		}
		got := exec(t, e, saves(from, "r0", "x", ""))
		file := exec(t, e, Request{From: from, Server: "two", Tool: "echo", References: true, Arguments: json.RawMessage(`{"text":{"$file":"a"}}`)})
		want := "no folder is open"
		if o.Shared {
			want = "mcpx has auth"
		}
		if text := contents(t, got)[0]; !strings.HasPrefix(text, "TOOL_NOT_FOUND") || strings.Count(text, "save_result") != 1 {
			t.Errorf("%+v: %s", o, text)
		}
		if text := contents(t, file)[0]; !strings.HasPrefix(text, "VALIDATION_ERROR: /text: $file: cannot be used: ") || !strings.Contains(text, want) {
			t.Errorf("%+v: %s", o, text)
		}
		read := program(from.Client, `try { return file("a") } catch (e) { return e.code + " " + e.message }`)
		if text := contents(t, exec(t, e, read))[0]; !strings.HasPrefix(text, "VALIDATION_ERROR VALIDATION_ERROR: /path: cannot be used: ") || !strings.Contains(text, want) {
			t.Errorf("%+v: %s", o, text)
		}
		if _, ok := e.own(from.Client, nil, e.Catalogue(nil)).Tool(builtin.SaveTool); ok {
			t.Errorf("%+v: the tool exists", o)
		}
	}
}

// rooted is a client over stdio that declares roots, and lists these folders.
func rooted(folders ...string) request.From {
	from := request.From{}
	var roots []map[string]string
	for _, folder := range folders {
		roots = append(roots, map[string]string{"uri": "file://" + filepath.ToSlash(folder)})
	}
	from.Client = sentBy("").Client
	from.Client.Principal, from.Client.Capabilities = nil, json.RawMessage(`{"roots":{}}`)
	from.Client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return wire.Encode(map[string]any{"roots": roots}), nil
	}
	return from
}

// TestRoots: over stdio, callers may use the files in the client's roots, except for the root of the file system. Over HTTP they
// may not.
func TestRoots(t *testing.T) {
	folder, own := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(folder, "a b"): "root", filepath.Join(own, "a b"): "config", filepath.Join(own, "c"): "config"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	call := func(e *Executor, from request.From, path string) string {
		return contents(t, exec(t, e, Request{From: from, Server: "two", Tool: "echo", References: true, Arguments: json.RawMessage(`{"text":{"$file":"` + path + `"}}`)}))[0]
	}
	e, _ := referring(t, Options{Files: FileOptions{Roots: true, Folders: []string{own}}}, nil)
	odd := rooted("/", "relative", "//other.example/share", folder)
	for path, want := range map[string]string{"a b": "root", "c": "config", filepath.Join(own, "a b"): "config"} {
		if got := call(e, odd, path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := call(e, odd, "/etc/hostname"); !strings.Contains(got, "is not in a folder") {
		t.Error(got)
	}
	e, _ = referring(t, Options{Files: FileOptions{Folders: []string{own}}}, nil)
	if got := call(e, rooted(folder), "a b"); got != "config" {
		t.Error(got)
	}
}

// TestSave_Confirmed: where the config asks the user about calls that change something, the user is asked about save_result, and
// not about read_result.
func TestSave_Confirmed(t *testing.T) {
	folder := t.TempDir()
	e, _ := referring(t, Options{Files: FileOptions{Folders: []string{folder}}}, nil)
	servers := []registry.Server{piped(t, "two", eachTool(changing))}
	e.registry.Apply(servers, registry.Options{Rules: &policy.Rules{Servers: map[string]policy.ServerRules{builtin.Name: {Confirm: conf.ConfirmDestructive}}}}, nil)
	e.registry.WaitTried(t.Context())
	from, asked, run := sentBy("a"), 0, "false"
	from.Client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	from.Client.Request = func(_ context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
		if asked++; !strings.Contains(string(params), "Run mcpx.save_result? It may change something.") {
			t.Errorf("asked %s", params)
		}
		return json.RawMessage(`{"action":"accept","content":{"run":` + run + `}}`), nil
	}
	handle := kept(t, e, from, strings.Repeat("a line\n", 3000))
	for _, run = range []string{"false", "true"} {
		got := exec(t, e, saves(from, handle, "file", ""))
		_, err := os.Stat(filepath.Join(folder, "file"))
		if made := err == nil; made != (run == "true") || got.IsError == made {
			t.Errorf("run %s: %s, %v", run, contents(t, got)[0], err)
		}
	}
	exec(t, e, Request{From: from, Server: builtin.Name, Tool: "read_result", Arguments: json.RawMessage(`{"handle":"` + handle + `"}`)})
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
