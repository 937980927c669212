//go:build unix

package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// openCalls starts a call that ends after ms milliseconds, and a call that never ends.
func openCalls(t *testing.T, c *client, spec mcptest.Spec, ms string) (short, endless string) {
	t.Helper()
	short, endless = callExec(t, c, "fake", "slow", `{"ms":`+ms+`}`), callExec(t, c, "fake", "slow", `{"ms":600000}`)
	mcptest.WaitFor(t, "the calls", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 2 })
	return short, endless
}

// TestShutdown: after TERM mcpx accepts no new requests. Open calls may finish within the grace period; those
// that do not get an error. Then all processes end.
func TestShutdown(t *testing.T) {
	mcptest.Parallel(t)
	for _, over := range []string{"stdio", "http"} {
		for _, era := range []string{legacy, modern} {
			t.Run(over+" "+era, func(t *testing.T) {
				mcptest.Parallel(t)
				h := newHome(t)
				spec := mcptest.Spec{ForkGrandchild: true}.WithFiles(t)
				config := h.config(t, map[string]server{"fake": fake(t, spec)}, map[string]any{"shutdown_grace": 8})
				c, p := serveOver(t, h, over, era, "--config", config)
				c.open(t)
				short, endless := openCalls(t, c, spec, "1000")
				began := time.Now()
				terminate(p.cmd)
				if over == "http" {
					refusedConnection(t, c.peer.(*httpPeer).url)
				} else {
					refusedRequest(t, c)
				}
				if m := c.answer(t, short); !strings.Contains(string(m.Result), "slept 1000 ms") {
					t.Errorf("the short call: %s %s", m.Result, m.Error)
				}
				if m := c.answer(t, endless); !strings.Contains(string(m.Error), "mcpx is shutting down; the call may have been executed") {
					t.Errorf("the endless call: %s %s", m.Result, m.Error)
				}
				if took := time.Since(began); took < 6*time.Second {
					t.Errorf("the endless call ended after %v, the grace is not used", took)
				}
				p.wait(t)
				took := time.Since(began)
				if took > 8*time.Second+slack {
					t.Errorf("mcpx needed %v to end", took)
				}
				t.Logf("ended after %v", took)
				checkGone(t, spec)
			})
		}
	}
}

// refusedRequest sends requests until mcpx refuses one because it is shutting down.
func refusedRequest(t *testing.T, c *client) {
	t.Helper()
	mcptest.WaitFor(t, "a refusal", patience, func() bool {
		id := callExec(t, c, "fake", "echo", `{"text":"late"}`)
		m := c.answer(t, id)
		return strings.Contains(string(m.Error), `"code":-32000`) && strings.Contains(string(m.Error), "was not executed")
	})
}

// refusedConnection waits until mcpx no longer accepts connections.
func refusedConnection(t *testing.T, endpoint string) {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "the end of the listener", patience, func() bool {
		conn, err := net.DialTimeout("tcp", u.Host, time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// TestShutdown_OpenConnection: after the signal, mcpx also refuses requests over a connection that was open
// before.
func TestShutdown_OpenConnection(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, map[string]any{"shutdown_grace": 8})
	d := h.serveHTTP(t, "--config", config)
	c := &client{era: legacy, name: "e2e", peer: d.peer(t)}
	c.open(t)
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
	defer client.CloseIdleConnections()
	endless := callExec(t, c, "fake", "slow", `{"ms":600000}`)
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 1 })
	terminate(d.cmd)
	refusedConnection(t, d.url)
	request, err := c.peer.(*httpPeer).request(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"exec","arguments":` + execArgs("fake", "echo", `{"text":"late"}`) + `}}`)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Do(request); err == nil {
		response.Body.Close()
		t.Errorf("the late request got %s", response.Status)
	}
	c.answer(t, endless)
	d.wait(t)
	if n := len(spec.Log(t).Calls("echo")); n != 0 {
		t.Errorf("the late request was executed %d times", n)
	}
}

// TestShutdown_EOFDuringGrace: if the client disconnects while mcpx waits for open calls, mcpx stops waiting.
func TestShutdown_EOFDuringGrace(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, map[string]any{"shutdown_grace": 600})
	p := h.serveStdio(t, "--config", config)
	c := &client{era: legacy, name: "e2e", peer: p}
	c.open(t)
	_, endless := openCalls(t, c, spec, "1")
	terminate(p.cmd)
	refusedRequest(t, c)
	began := time.Now()
	p.stdin.Close()
	p.wait(t)
	if took := time.Since(began); took > slack {
		t.Errorf("mcpx needed %v to end", took)
	}
	if m := c.answer(t, endless); m.Error == nil {
		t.Errorf("got %s", m.Result)
	}
}

// TestShutdown_Twice: a second signal ends mcpx and its child processes at once.
func TestShutdown_Twice(t *testing.T) {
	mcptest.Parallel(t)
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			h := newHome(t)
			spec := stubborn(t)
			config := h.config(t, map[string]server{"fake": fake(t, spec)}, map[string]any{"shutdown_grace": 600})
			c, p := openOver(t, h, over, "--config", config)
			openCalls(t, c, spec, "600000")
			terminate(p.cmd)
			if over == "http" {
				refusedConnection(t, c.peer.(*httpPeer).url)
			} else {
				refusedRequest(t, c)
			}
			began := time.Now()
			terminate(p.cmd)
			p.wait(t)
			if took := time.Since(began); took > slack {
				t.Errorf("mcpx needed %v to end", took)
			}
			if code := p.cmd.ProcessState.ExitCode(); code != exitFailed {
				t.Errorf("exit %d", code)
			}
			checkGone(t, spec)
		})
	}
}

// TestShutdown_ClientDoesNotRead: mcpx can shut down although a client does not read its answers.
func TestShutdown_ClientDoesNotRead(t *testing.T) {
	mcptest.Parallel(t)
	for _, how := range []string{"TERM", "EOF"} {
		t.Run(how, func(t *testing.T) {
			mcptest.Parallel(t)
			h := newHome(t)
			spec := mcptest.Spec{}.WithFiles(t)
			config := h.config(t, map[string]server{"fake": fake(t, spec)}, map[string]any{"shutdown_grace": 2, "result_token_limit": 0})
			cmd := h.command(t, "--config", config)
			stdin, stdout := start(t, cmd) // the test never reads stdout
			defer stdout.Close()
			sent := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"deaf","version":"1"}}}` + "\n"
			for id := range 8 {
				sent += `{"jsonrpc":"2.0","id":` + string(rune('2'+id)) + `,"method":"tools/call","params":{"name":"exec","arguments":` + execArgs("fake", "big", `{"bytes":200000}`) + "}}\n"
			}
			if _, err := stdin.Write([]byte(sent)); err != nil {
				t.Fatal(err)
			}
			mcptest.WaitFor(t, "the calls", patience, func() bool { return len(spec.Log(t).Calls("big")) == 8 })
			began := time.Now()
			if how == "TERM" {
				terminate(cmd)
			} else {
				stdin.Close()
			}
			ended := make(chan struct{})
			go func() { // the goroutine ends when the process ends or is killed
				_, _ = cmd.Process.Wait()
				close(ended)
			}()
			timer := time.NewTimer(patience)
			defer timer.Stop()
			select {
			case <-ended:
			case <-timer.C:
				t.Error("mcpx did not end")
				_ = cmd.Process.Kill()
				<-ended
			}
			if took := time.Since(began); took > slack {
				t.Errorf("mcpx needed %v to end", took)
			}
			stdin.Close()
			checkGone(t, spec)
		})
	}
}
