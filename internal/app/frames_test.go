package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

// These are limits for the depth of the call stack, in frames, between reading a request (from the socket or stdin) and writing
// it to the server's pipe. They keep the code path short enough to be read. The frames of the middleware chain are counted
// separately.
const (
	maxFramesHTTP  = 28
	maxFramesStdio = 20
)

// middleware has parts of the function names that belong to the middleware chain.
var middleware = []string{
	".Recorded.", ".Rights.", ".Confirmed.", "request.Timed.", ".Pinned.", ".(*App).admit", "limits.(*Limits).Limit", ".(*Registry).Credentials",
	".(*Registry).LoggedIn",
}

// framesTo returns the functions of mcpx in the stack of the goroutine that waits for the answer of a server, the innermost
// first. chain has the functions of the middleware, and own has the others.
func framesTo(t *testing.T) (own, chain []string) {
	t.Helper()
	var stack string
	mcptest.WaitFor(t, "a request that waits for a server", patience, func() bool {
		buffer := make([]byte, 4<<20)
		for _, one := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
			state, _, _ := strings.Cut(one, "\n") // such as "goroutine 7 [select]:"; the call has arrived where it waits
			if strings.Contains(state, "[select") && strings.Contains(one, ").wait(") && strings.Contains(one, "/front.") {
				stack = one
			}
		}
		return stack != ""
	})
	for _, line := range strings.Split(stack, "\n") {
		if !strings.HasPrefix(line, "mcpx/internal/") {
			continue
		}
		name := line[:strings.LastIndexByte(line, '(')]
		into := &own
		if slices.ContainsFunc(middleware, func(part string) bool { return strings.Contains(name, part) }) {
			into = &chain
		}
		*into = append(*into, strings.TrimPrefix(name, "mcpx/internal/"))
	}
	return own, chain
}

// TestFrames: a tools/call and a resources/read pass through the same middleware, and their call stacks are not deeper than the
// limits.
func TestFrames(t *testing.T) {
	const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	const call = `"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"echo","arguments":{"text":"x"}}}`
	const read = `"method":"resources/read","params":{"uri":"one://1"}`
	command, arguments, env := mcptest.Spec{
		Tools: []byte(`[{"name":"echo","inputSchema":{"type":"object"}}]`), Resources: []byte(`[{"uri":"one://1","name":"one"}]`),
		HangMethods: []string{"tools/call", "resources/read"},
	}.Stdio(t)
	text := fmt.Sprintf(`{"mcpServers":{"fake":{"command":%s,"args":%s,"env":%s}}}`, wire.Encode(command), wire.Encode(arguments), wire.Encode(env))
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), []byte(text), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, most int) {
		t.Helper()
		own, chain := framesTo(t)
		if len(own) > most {
			t.Errorf("%d frames, %d are allowed:\n%s", len(own), most, strings.Join(own, "\n"))
		}
		for _, part := range middleware {
			if !strings.Contains(strings.Join(chain, " "), part) {
				t.Errorf("the request did not pass %s: %v", part, chain)
			}
		}
	}
	for name, message := range map[string]string{"exec": call, "read": read} {
		t.Run("HTTP "+name, func(t *testing.T) {
			e := serving(t, cfg)
			v := e.visitor(t, "", "2025-06-18", false)
			_, _, header := v.http(t, "POST", "/mcp", greeting, nil)
			ctx, cancel := context.WithCancel(t.Context())
			asked := make(chan struct{})
			go func() { // ends with ctx
				defer close(asked)
				if answer, err := v.send(ctx, "POST", "/mcp", `{"jsonrpc":"2.0","id":7,`+message+`}`, map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}); err == nil {
					answer.Body.Close()
				}
			}()
			check(t, maxFramesHTTP)
			cancel()
			<-asked
		})
		t.Run("stdio "+name, func(t *testing.T) {
			ownFolders(t)
			a, err := New(Options{Config: cfg, Profile: Stdio, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			in, client := io.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- a.ServeStdio(ctx, in, io.Discard) }() // ends with stop
			_, _ = io.WriteString(client, greeting+"\n")
			_, _ = io.WriteString(client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
			_, _ = io.WriteString(client, `{"jsonrpc":"2.0","id":7,`+message+"}\n")
			check(t, maxFramesStdio)
			stop()
			client.Close()
			<-ended
		})
	}
}
