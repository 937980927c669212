package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httptest"
	"testing"

	"mcpx"
	"mcpx/internal/mcptest"
)

// pipePeer is a session with package mcpx in this process.
type pipePeer struct {
	*inbox
	to io.Writer
}

func (p *pipePeer) send(t testing.TB, raw string) {
	t.Helper()
	if _, err := io.WriteString(p.to, raw+"\n"); err != nil {
		t.Fatal(err)
	}
}

// TestDoor: a client of package mcpx gets what a client of the command gets, byte for byte.
func TestDoor(t *testing.T) {
	h := newHome(t)
	file := h.config(t, map[string]server{"fake": {"url": mcptest.Spec{}.HTTP(t).URL}}, nil)
	gateway, err := mcpx.New(t.Context(), mcpx.Options{Config: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gateway.Close)
	// Afterwards the gateway knows the tools of the server, as the command does after mcpx check.
	if _, err := gateway.Call(t.Context(), "fake", "echo", []byte(`{"text":"hello"}`)); err != nil {
		t.Fatal(err)
	}
	h.must(t, 0, "check", "--config", file)
	handler, err := gateway.Handler()
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(handler)
	t.Cleanup(site.Close)
	for _, era := range []string{legacy, modern} {
		for _, over := range []string{"stdio", "http"} {
			mine := &client{era: era, name: "e2e", peer: (&hosted{url: site.URL + "/mcp"}).peer(t)}
			if over == "stdio" {
				in, to := io.Pipe()
				from, out := io.Pipe()
				p := &pipePeer{newInbox(), to}
				go func() { _ = gateway.Serve(t.Context(), in, out); out.Close() }() // ends with the gateway
				go func() {                                                          // ends with Serve
					for lines := bufio.NewScanner(from); lines.Scan(); {
						p.add(bytes.Clone(lines.Bytes()))
					}
				}()
				mine.peer = p
			}
			command, _ := serveOver(t, h, over, era, "--config", file)
			if got, want := mine.open(t), command.open(t); !bytes.Equal(got, want) {
				t.Errorf("%s, %s: the door greets with\n%s\nthe command with\n%s", era, over, got, want)
			}
			for _, one := range [][2]string{
				{"tools/call", `{"name":"exec","arguments":` + execArgs("fake", "echo", `{"text":"hello"}`) + `}`},
				{"tools/call", `{"name":"exec","arguments":` + execArgs("fake", "echo", `{"txt":"hello"}`) + `}`},
				{"tools/call", `{"name":"inspect","arguments":{"server_name":"fake"}}`},
				{"tools/list", `{}`},
			} {
				if got, want := mine.result(t, one[0], one[1]), command.result(t, one[0], one[1]); !bytes.Equal(got, want) {
					t.Errorf("%s, %s: %s %s: the door answers\n%s\nthe command\n%s", era, over, one[0], one[1], got, want)
				}
			}
		}
	}
}
