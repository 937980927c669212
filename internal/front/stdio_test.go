package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// answers returns the received answers with this id, as they were written.
func (p *pipe) answers(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, line := range p.lines {
		if strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,`) {
			all = append(all, line)
		}
	}
	return all
}

func execLine(id, server, tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"` + server +
		`","tool_name":"` + tool + `","arguments":` + arguments + `}}}` + "\n"
}

// TestStdio_Odd: an invalid message gets one answer in JSON, at once. The next message is answered as usual.
func TestStdio_Odd(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	p := dial(t, connect(t, view.Options{}, remote("fake", fake)), "test")
	p.request(t, "1", "tools/list")
	for _, test := range []struct{ send, want string }{
		{"garbage", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":01,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":NaN}}`, `{"jsonrpc":"2.0","id":"a","error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{strings.TrimSpace(execLine("9", "fake", "echo", `{"text":"`+"\xff"+`"}`)), `{"jsonrpc":"2.0","id":9,"error":{"code":-32700,`},
		{`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"2.0","id":11,"method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":11,"error":{"code":-32601,`},
		{`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo"}}`, `{"jsonrpc":"2.0","id":12,"error":{"code":-32602,"message":"there is no tool \"echo\" here, only inspect and exec; call exec with {\"server_name\":\"fake\",`},
		{`{"jsonrpc":"2.0","id":10}`, `{"jsonrpc":"2.0","id":10,"error":{"code":-32600,`},
	} {
		before := p.with("")
		p.send(t, test.send+"\n")
		mcptest.WaitFor(t, "an answer to "+test.send, patience, func() bool { return p.with("") > before })
		p.mu.Lock()
		line := p.lines[len(p.lines)-1]
		p.mu.Unlock()
		if !json.Valid([]byte(line)) || !strings.HasPrefix(line, test.want) {
			t.Errorf("%s: got %s", test.send, line)
		}
	}
	p.send(t, `[{"jsonrpc":"2.0","id":"in a large batch","method":"ping"}`+strings.Repeat(`,{"jsonrpc":"2.0","id":"more","method":"ping"}`, 10_000)+"]\n")
	mcptest.WaitFor(t, "the refusal of a large batch", patience, func() bool { return p.with("a batch of more than 10000 messages") == 1 })
	p.request(t, `"after"`, "ping")
	if n := p.with("in a large batch"); n != 0 {
		t.Errorf("%d messages of a refused batch were answered", n)
	}
	if n := len(fake.Log().Calls("echo")); n != 0 {
		t.Errorf("%d calls were executed", n)
	}
}

// TestStdio_SameID: two open requests with the same id are both answered, and one cancellation of the id ends
// both.
func TestStdio_SameID(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	p := dial(t, connect(t, view.Options{}, remote("fake", fake)), "test")
	p.send(t, execLine("5", "fake", "add", `{"a":1,"b":2}`)+execLine("5", "fake", "echo", `{"text":"x"}`))
	mcptest.WaitFor(t, "both answers", patience, func() bool { return len(p.answers("5")) == 2 })
	p.send(t, execLine(`"\u00e9"`, "fake", "slow", `{"ms":3600000}`)+execLine(`"é"`, "fake", "slow", `{"ms":3600000}`))
	mcptest.WaitFor(t, "both calls", patience, func() bool { return len(fake.Log().Calls("slow")) == 2 })
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é"}}`+"\n")
	mcptest.WaitFor(t, "both cancellations", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == 2 })
	p.request(t, "7", "ping")
	if got := append(p.answers(`"é"`), p.answers(`"\u00e9"`)...); len(got) != 0 {
		t.Errorf("after the cancellation: %v", got)
	}
}

// TestStdio_TooMany: mcpx refuses requests over MaxOpen. The open ones can still be cancelled, and mcpx
// notices the end of the input.
func TestStdio_TooMany(t *testing.T) {
	mcptest.Parallel(t)
	fake := mcptest.Spec{}.HTTP(t)
	f := connect(t, view.Options{}, remote("fake", fake))
	p := dialWith(t, f, "test", StdioOptions{MaxOpen: 2})
	p.request(t, `"ready"`, "ping")
	p.send(t, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n")
	p.send(t, execLine("1", "fake", "slow", `{"ms":3600000}`)+execLine("2", "fake", "slow", `{"ms":3600000}`))
	mcptest.WaitFor(t, "two calls", patience, func() bool { return len(fake.Log().Calls("slow")) == 2 })
	p.send(t, execLine("3", "fake", "echo", `{"text":"x"}`))
	mcptest.WaitFor(t, "the refusal", patience, func() bool { return len(p.answers("3")) == 1 })
	if got := p.answers("3")[0]; !strings.Contains(got, "too many requests are open") {
		t.Errorf("got %s", got)
	}
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == 1 })
	mcptest.WaitFor(t, "a free place", patience, func() bool {
		p.send(t, execLine(`"free"`, "fake", "echo", `{"text":"room"}`))
		return p.with("room") > 0
	})
}

// TestStdio_TooLarge: mcpx finds the id of a request over the limit at the end of the message, where many
// clients write it.
func TestStdio_TooLarge(t *testing.T) {
	mcptest.NoLeaks(t)
	p := dialWith(t, connect(t, view.Options{}), "test", StdioOptions{MaxMessage: 20_000})
	p.send(t, `{"method":"tools/call","params":{"name":"exec","arguments":{"x":"`+strings.Repeat("a", 50_000)+`"}},"jsonrpc":"2.0","id":77}`+"\n")
	mcptest.WaitFor(t, "the refusal", patience, func() bool { return len(p.answers("77")) == 1 })
}

// deafOutput is the stdout of a client that never reads. Once read is closed, writes fail.
type deafOutput struct{ read chan struct{} }

func (d deafOutput) Write([]byte) (int, error) {
	<-d.read
	return 0, errors.New("broken pipe")
}

// TestStdio_Deaf: mcpx stops serving a client that does not read its answers when the client closes the input,
// or when writing to the output fails.
func TestStdio_Deaf(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed %v", closed), func(t *testing.T) {
			f := connect(t, view.Options{})
			out := deafOutput{make(chan struct{})}
			t.Cleanup(func() {
				if !closed {
					close(out.read)
				}
			})
			inRead, inWrite := io.Pipe()
			served := make(chan error, 1)
			go func() { // the goroutine ends with the input, or with the output
				served <- f.ServeStdio(context.Background(), inRead, out, StdioOptions{Drain: 20 * time.Millisecond})
			}()
			if _, err := io.WriteString(inWrite, hello("test")); err != nil {
				t.Fatal(err)
			}
			for range maxUnread + 10 {
				if _, err := io.WriteString(inWrite, "garbage\n"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.WriteString(inWrite, hello("test")); err != nil {
				t.Fatal(err)
			}
			if closed {
				close(out.read)
				if err := <-served; err == nil || !strings.Contains(err.Error(), "broken pipe") {
					t.Errorf("got %v", err)
				}
				inWrite.Close()
				return
			}
			inWrite.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStdio_InputEnds: clients kill mcpx about 2 s after they have closed its stdin. ServeStdio returns much earlier, also if a
// call never ends and the client does not read the answer, and leaves the rest of the time for closing the servers.
func TestStdio_InputEnds(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := connect(t, view.Options{}, piped(t, "fake", mcptest.Spec{}))
			f.registry.WaitListed(t.Context(), nil)
			out := deafOutput{make(chan struct{})}
			defer close(out.read)
			var read strings.Builder
			into := io.Writer(&read)
			if deaf {
				into = out
			}
			input := strings.NewReader(hello("test") + execLine("1", "fake", "slow", `{"ms":3600000}`))
			began := time.Now()
			if err := f.ServeStdio(t.Context(), input, into, StdioOptions{Grace: time.Hour}); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 1200*time.Millisecond {
				t.Errorf("deaf %t: ServeStdio took %v", deaf, took)
			}
			if !deaf && !strings.Contains(read.String(), `{"jsonrpc":"2.0","id":1,`) {
				t.Errorf("the call has no answer: %s", &read)
			}
		})
	}
}
