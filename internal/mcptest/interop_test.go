package mcptest

import (
	"context"
	"os/exec"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func dialStreamable(t *testing.T, s Spec) transport.Interface {
	t.Helper()
	tr, err := transport.NewStreamableHTTP(s.HTTP(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func dialStdio(t *testing.T, s Spec) transport.Interface {
	t.Helper()
	cmd := s.Command(t)
	start := func(context.Context, string, []string, []string) (*exec.Cmd, error) { return cmd, nil }
	return transport.NewStdioWithOptions(cmd.Path, nil, nil, transport.WithCommandFunc(start))
}

func dialEvents(t *testing.T, s Spec) transport.Interface {
	t.Helper()
	tr, err := transport.NewSSE(s.SSE(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestInterop: an independent MCP client can use each fake.
func TestInterop(t *testing.T) {
	for _, tc := range []struct {
		name    string
		dial    func(*testing.T, Spec) transport.Interface
		spec    Spec
		version string
	}{
		{"stdio legacy", dialStdio, Spec{}, LegacyVersion},
		{"stdio modern", dialStdio, Spec{Era: EraModern}, ModernVersion},
		{"stdio both", dialStdio, Spec{Era: EraBoth}, ModernVersion},
		{"stdio noisy", dialStdio, Spec{Noise: true, CRLF: true}, LegacyVersion},
		{"stdio one byte", dialStdio, Spec{OneByteWrites: true}, LegacyVersion},
		{"http legacy", dialStreamable, Spec{}, LegacyVersion},
		{"http legacy sse", dialStreamable, Spec{AnswerSSE: true, Noise: true}, LegacyVersion},
		{"http no session", dialStreamable, Spec{NoSession: true}, LegacyVersion},
		{"http modern", dialStreamable, Spec{Era: EraModern}, ModernVersion},
		{"http both", dialStreamable, Spec{Era: EraBoth, AnswerSSE: true}, ModernVersion},
		{"sse", dialEvents, Spec{}, LegacyVersion},
		{"sse noisy", dialEvents, Spec{Noise: true, OneByteWrites: true}, LegacyVersion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NoLeaks(t)
			tc.spec.Instructions = "Be kind."
			tc.spec.Pages = 3
			use(t, tc.dial(t, tc.spec), tc.version)
		})
	}
}

// use goes through a complete session with the server.
func use(t *testing.T, tr transport.Interface, version string) {
	t.Helper()
	c := client.NewClient(tr)
	t.Cleanup(func() { c.Close() })
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	init, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "t", Version: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if init.ProtocolVersion != version || init.Instructions != "Be kind." || init.ServerInfo.Name != "fake" {
		t.Errorf("got %+v", init)
	}
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tools.Tools) != 18 {
		t.Errorf("got %d tools, want 18", len(tools.Tools))
	}
	res, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hé <>"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Content[0].(mcp.TextContent).Text; got != "hé <>" {
		t.Errorf("echo answered %q", got)
	}
	if res, err = c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "content", Arguments: map[string]any{"known": true}}}); err != nil {
		t.Error(err)
	} else if len(res.Content) != 8 {
		t.Errorf("got %d blocks of known kinds, want 8", len(res.Content))
	}
}
