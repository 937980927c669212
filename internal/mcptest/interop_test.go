package mcptest

import (
	"context"
	"os/exec"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Each fake must satisfy a client that somebody else wrote.
func TestInterop(t *testing.T) {
	streamable := func(t *testing.T, s Spec) transport.Interface {
		tr, err := transport.NewStreamableHTTP(s.HTTP(t).URL)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	stdio := func(t *testing.T, s Spec) transport.Interface {
		command, args, env := s.Stdio(t)
		var vars []string
		for k, v := range env {
			vars = append(vars, k+"="+v)
		}
		return transport.NewStdioWithOptions(command, vars, args, transport.WithCommandFunc(
			func(ctx context.Context, command string, env, args []string) (*exec.Cmd, error) {
				cmd := exec.CommandContext(ctx, command, args...)
				cmd.Env = env
				return cmd, nil
			}))
	}
	sse := func(t *testing.T, s Spec) transport.Interface {
		tr, err := transport.NewSSE(s.SSE(t).URL)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	for _, tc := range []struct {
		name    string
		dial    func(*testing.T, Spec) transport.Interface
		spec    Spec
		version string
	}{
		{"stdio legacy", stdio, Spec{}, LegacyVersion},
		{"stdio modern", stdio, Spec{Era: EraModern}, ModernVersion},
		{"stdio both", stdio, Spec{Era: EraBoth}, ModernVersion},
		{"stdio noisy", stdio, Spec{Noise: true, CRLF: true}, LegacyVersion},
		{"stdio one byte", stdio, Spec{OneByteWrites: true}, LegacyVersion},
		{"http legacy", streamable, Spec{}, LegacyVersion},
		{"http legacy sse", streamable, Spec{AnswerSSE: true, Noise: true}, LegacyVersion},
		{"http no session", streamable, Spec{NoSession: true}, LegacyVersion},
		{"http modern", streamable, Spec{Era: EraModern}, ModernVersion},
		{"http both", streamable, Spec{Era: EraBoth, AnswerSSE: true}, ModernVersion},
		{"sse", sse, Spec{}, LegacyVersion},
		{"sse noisy", sse, Spec{Noise: true, OneByteWrites: true}, LegacyVersion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NoLeaks(t)
			tc.spec.Instructions = "Be kind."
			tc.spec.Pages = 3
			tr := tc.dial(t, tc.spec)
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
			if init.ProtocolVersion != tc.version || init.Instructions != "Be kind." || init.ServerInfo.Name != "fake" {
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
		})
	}
}
