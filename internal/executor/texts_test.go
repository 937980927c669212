package executor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// talk is one request to a server that a test implements itself.
type talk struct {
	start      int // how often the server was started, from 1
	id, method string
	in         *bufio.Scanner
	out        io.Writer
}

// byHand returns a legacy server with a read-only tool t. handle may answer a request itself; then it returns true. If it
// returns an error, the server ends.
func byHand(name string, handle func(talk) (bool, error)) registry.Server {
	var starts atomic.Int64
	return registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.InProcess, Serve: func(_ context.Context, r io.Reader, w io.Writer) error {
		start := int(starts.Add(1))
		in := bufio.NewScanner(r)
		for in.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil || m.Method == "" {
				continue
			}
			done, err := handle(talk{start, string(m.ID), m.Method, in, w})
			switch {
			case err != nil:
				return err
			case done:
				continue
			}
			answer := `"result":{}`
			switch m.Method {
			case "initialize":
				answer = `"result":{"protocolVersion":"2025-06-18"}`
			case "tools/list":
				answer = `"result":{"tools":[{"name":"t","annotations":{"readOnlyHint":true}}]}`
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
		}
		return in.Err()
	}}, Era: upstream.EraLegacy}}
}

// bubble runs a test with synthetic time (package synctest).
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	mcptest.NoLeaks(t)
	synctest.Test(t, run)
}

func said(t *testing.T, r *results.Result) string {
	t.Helper()
	if len(r.Content) == 0 {
		return ""
	}
	return textOf(t, r.Content[0])
}

// TestOddAnswers: for each kind of invalid answer of a server, the caller gets the expected error.
func TestOddAnswers(t *testing.T) {
	const may = ". The call may have been executed; check before you repeat it"
	const line = ". Meanwhile the server wrote lines that are no messages (a message is one line of JSON), the first: "
	const timeout = "TIMEOUT: no answer from hand.t within 7 s; it was told to cancel. The call may have been executed; check before you repeat it"
	tests := []struct{ name, answer, want string }{
		{"code with a fraction", `{"id":$ID,"error":{"code":-32000.0,"message":"no"}}`, "UPSTREAM_ERROR: no (code -32000)"},
		{"code of letters", `{"id":$ID,"error":{"code":"E42","message":"no"}}`, "UPSTREAM_ERROR: no (code E42)"},
		{"no code", `{"id":$ID,"error":{"message":"no"}}`, "UPSTREAM_ERROR: no"},
		{"no message", `{"id":$ID,"error":{"code":-32000,"message":""}}`, "UPSTREAM_ERROR: an error without a message (code -32000)"},
		{"control characters", `{"id":$ID,"error":{"code":1,"message":"\u001b[31mred\u001b[0m\u0007\nline\u202e"}}`, "UPSTREAM_ERROR: red\nline (code 1)"},
		{"control characters in a code", `{"id":$ID,"error":{"code":"\u202eE","message":"no"}}`, "UPSTREAM_ERROR: no (code E)"},
		{"neither", `{"id":$ID}`, "UPSTREAM_ERROR: the answer has neither result nor error"},
		{"a null error", `{"id":$ID,"error":null}`, "UPSTREAM_ERROR: the answer has neither result nor error"},
		{"several lines", "{\n  \"id\": $ID,\n  \"result\": {}\n}", timeout + line + "{"},
		{"prefix", `INFO {"id":$ID,"result":{}}`, timeout + line + `INFO {"id":1,"result":{}}`},
		{"garbage behind", `{"id":$ID,"result":{}} done` + "\x1b[0m", timeout + line + `{"id":1,"result":{}} done`},
		{"silence", "", timeout},
		{"a number", `{"id":$ID,"result":42}`, "EXECUTION_ERROR: the upstream's answer is no tool result: 42" + may},
		{"a long text", `{"id":$ID,"result":"` + strings.Repeat("x", 200) + `"}`, `EXECUTION_ERROR: the upstream's answer is no tool result: "` + strings.Repeat("x", 96) + "..." + may},
		{"NaN", `{"id":$ID,"result":{"content":[],"v":NaN}}`, `EXECUTION_ERROR: the result is not valid JSON: {"content":[],"v":NaN}` + may},
		{"content is a text", `{"id":$ID,"result":{"content":"all \u00e9"}}`, "all é"},
		{"content is a block", `{"id":$ID,"result":{"content":{"type":"text","text":"one"}}}`, "one"},
		{"content is no block", `{"id":$ID,"result":{"content":{"text":"one"}}}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := executing(t, Options{Servers: map[string]ServerOptions{"hand": {CallTimeout: 7 * time.Second}}}, nil, byHand("hand", func(c talk) (bool, error) {
					if c.method == "tools/call" && tt.answer != "" {
						fmt.Fprintln(c.out, strings.ReplaceAll(tt.answer, "$ID", c.id))
					}
					return c.method == "tools/call", nil
				}))
				got := said(t, exec(t, e, Request{Server: "hand", Tool: "t"}))
				if i := strings.Index(got, `"id":`); i >= 0 && strings.Contains(got, "TIMEOUT") { // ids differ from run to run
					rest := got[i+5:]
					got = got[:i+5] + "1" + rest[strings.IndexByte(rest, ','):]
				}
				if got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// TestNoiseOfAnother: what a server prints during the call of one client is not shown to another client whose call is open at
// the same time.
func TestNoiseOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := 0
		e := executing(t, Options{Servers: map[string]ServerOptions{"hand": {CallTimeout: 7 * time.Second}}}, nil, byHand("hand", func(c talk) (bool, error) {
			if c.method == "tools/call" {
				if calls++; calls == 2 {
					fmt.Fprintln(c.out, "secret of b")
				}
			}
			return c.method == "tools/call", nil
		}))
		call := func(client string) string {
			return said(t, exec(t, e, Request{From: request.From{Client: &caller.Client{ID: client}}, Server: "hand", Tool: "t"}))
		}
		done := make(chan string, 1)
		go func() { done <- call("a") }()
		<-time.After(time.Second)
		b := call("b")
		if a := <-done; strings.Contains(a, "secret") || !strings.HasSuffix(a, "the first: not shown, as it may be meant for another client") {
			t.Errorf("a: %s", a)
		}
		if strings.Contains(b, "secret") { // the server may also have written the text because of the call of a
			t.Errorf("b: %s", b)
		}
	})
}

// TestHTTPStatuses: an HTTP error status leads to the same failure over both HTTP transports, and the failure has the server's
// text.
func TestHTTPStatuses(t *testing.T) {
	const may = ". The call may have been executed; check before you repeat it"
	tests := []struct {
		status     int
		body, want string
	}{
		{401, "token expired", `SERVER_UNAVAILABLE: server "s" is unavailable: the server answered 401 Unauthorized: token expired; check the headers (token) of this server`},
		{403, `{"message":"scope repo:write needed"}`, `SERVER_UNAVAILABLE: server "s" is unavailable: the server answered 403 Forbidden: {"message":"scope repo:write needed"}; check the headers (token) of this server`},
		{429, "10 per\nminute", `SERVER_UNAVAILABLE: server "s" is unavailable: the server answered 429 Too Many Requests: 10 per minute`},
		{500, "boom", `UPSTREAM_ERROR: the server answered 500 Internal Server Error: boom` + may},
		{500, "<html>boom</html>", `UPSTREAM_ERROR: the server answered 500 Internal Server Error` + may},
		{503, strings.Repeat("x", 1000), `UPSTREAM_ERROR: the server answered 503 Service Unavailable: ` + strings.Repeat("x", 197) + "..." + may},
	}
	for _, kind := range []string{transport.HTTP, transport.SSE} {
		mcptest.NoLeaks(t)
		server := mcptest.Spec{}.HTTP(t)
		if kind == transport.SSE {
			server = mcptest.Spec{}.SSE(t)
		}
		e := executing(t, Options{}, nil, registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: "s", Type: kind, Remote: transport.Remote{URL: server.URL}}}})
		for _, tt := range tests {
			server.Script(mcptest.Fault{Kind: mcptest.FaultStatus, Status: tt.status, Body: tt.body}.On("tools/call").Always())
			if got := said(t, exec(t, e, Request{Server: "s", Tool: "destroy_echo", Arguments: json.RawMessage(`{"text":"x"}`)})); got != tt.want {
				t.Errorf("%s, %d:\ngot  %s\nwant %s", kind, tt.status, got, tt.want)
			}
			server.Heal()
		}
	}
}

// TestTimeoutInQueue: if a call has waited in the queue and then times out, the error says how much of the time was the wait.
func TestTimeoutInQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := piped(t, "s", mcptest.Spec{})
		server.Spec.Concurrency.Max = 1
		e := executing(t, Options{Servers: map[string]ServerOptions{"s": {CallTimeout: 3 * time.Second}}}, nil, server)
		done := make(chan struct{})
		go func() {
			defer close(done)
			exec(t, e, Request{Server: "s", Tool: "slow", Arguments: json.RawMessage(`{"ms":2000}`)})
		}()
		synctest.Wait()
		got := said(t, exec(t, e, Request{Server: "s", Tool: "slow", Arguments: json.RawMessage(`{"ms":2000}`)}))
		const want = "TIMEOUT: no answer from s.slow within 3 s, of which the call waited 2 s for a place among the concurrent calls; it was told to cancel. The call may have been executed; check before you repeat it"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		<-done
	})
}

// TestTimeout_Unsent: if a request was not sent before the deadline, the error does not say that the server was told to cancel it.
// It says that the call can be repeated, unless an earlier attempt may have been executed.
func TestTimeout_Unsent(t *testing.T) {
	options := Options{Servers: map[string]ServerOptions{"hand": {CallTimeout: 7 * time.Second}}}
	const may = "The call may have been executed; check before you repeat it"
	t.Run("the server reads nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := executing(t, options, nil, byHand("hand", func(c talk) (bool, error) {
				if c.method == "tools/call" {
					<-time.After(time.Hour)
				}
				return false, nil
			}))
			r := Request{Server: "hand", Tool: "t"}
			const told = "TIMEOUT: no answer from hand.t within 7 s; it was told to cancel. " + may
			if got := said(t, exec(t, e, r)); got != told {
				t.Errorf("the one that it read: %s", got)
			}
			synctest.Wait() // the notification that cancels the call is being written
			const unsent = "TIMEOUT: no answer from hand.t within 7 s; the call was not sent: the server did not take it. The call was not executed; it can be repeated"
			if got := said(t, exec(t, e, r)); got != unsent {
				t.Errorf("the next one: %s", got)
			}
		})
	})
	t.Run("after a lost attempt", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := executing(t, options, nil, byHand("hand", func(c talk) (bool, error) {
				if c.method == "tools/call" {
					return false, errors.New("fell over")
				}
				return c.start > 1, nil // after the restart it does not answer
			}))
			const want = "TIMEOUT: no answer from hand.t within 7 s. " + may
			if got := said(t, exec(t, e, Request{Server: "hand", Tool: "t"})); got != want {
				t.Errorf("got %s", got)
			}
		})
	})
}

// TestLossInCrashLoop: if the server is in a crash loop, the error for a lost connection says so.
func TestLossInCrashLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := executing(t, Options{}, nil, byHand("hand", func(c talk) (bool, error) {
			if c.method == "tools/call" {
				return false, errors.New("fell over")
			}
			return false, nil
		}))
		var got string
		for range 4 { // each call is sent twice, because the tool is read-only
			got = said(t, exec(t, e, Request{Server: "hand", Tool: "t"}))
		}
		const want = `CONNECTION_LOST: the session with "hand" broke: the server ended: fell over. The server is in a crash loop: it is lost again and again. The call may have been executed; check before you repeat it`
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestOneExecWait: exec_wait limits the whole wait of a call for its server: for the catalogue, and for the sessions of all
// attempts.
func TestOneExecWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := registry.New([]registry.Server{byHand("hand", func(c talk) (bool, error) {
			switch {
			case c.method == "initialize" && c.start == 1:
				<-time.After(15 * time.Second)
			case c.method == "initialize":
				return true, nil // from the second start on, initialize is never answered
			case c.method == "tools/call":
				return false, errors.New("fell over")
			}
			return false, nil
		})}, registry.Options{})
		r.Start()
		t.Cleanup(func() { r.Close(0) })
		e := chained(r, Options{ExecWait: 20 * time.Second})
		began := time.Now()
		got := said(t, exec(t, e, Request{Server: "hand", Tool: "t"}))
		if took := time.Since(began); took != 20*time.Second || !strings.HasPrefix(got, "CONNECTION_LOST: ") {
			t.Errorf("after %v: %s", took, got)
		}
	})
}

// TestDeepArguments: arguments that are nested so deeply that a recursive parser might crash are not sent to any server,
// whether or not arguments are validated.
func TestDeepArguments(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{Servers: map[string]ServerOptions{"unchecked": {Unchecked: true}}}, nil, piped(t, "s", mcptest.Spec{}), piped(t, "unchecked", mcptest.Spec{}))
	nested := func(depth int) json.RawMessage {
		return json.RawMessage(`{"text":"x","deep":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)
	}
	for _, server := range []string{"s", "unchecked"} {
		if got := said(t, exec(t, e, Request{Server: server, Tool: "echo", Arguments: nested(128)})); got != "x" {
			t.Errorf("%s: got %s", server, got)
		}
		for _, depth := range []int{129, 9000} {
			if got := said(t, exec(t, e, Request{Server: server, Tool: "echo", Arguments: nested(depth)})); !strings.HasPrefix(got, "VALIDATION_ERROR: /: nested deeper than 128") {
				t.Errorf("%s, %d deep: got %.200s", server, depth, got)
			}
		}
	}
}

// TestManyPings: mcpx answers each request of a server, even if a server sends many at the same time.
func TestManyPings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const pings = 1000
		e := executing(t, Options{}, nil, byHand("hand", func(c talk) (bool, error) {
			if c.method != "tools/call" {
				return false, nil
			}
			for n := range pings {
				fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":"p%d","method":"ping"}`+"\n", n)
			}
			answered := make(map[string]bool)
			for len(answered) < pings && c.in.Scan() {
				var m struct{ ID json.RawMessage }
				if json.Unmarshal(c.in.Bytes(), &m) == nil && strings.HasPrefix(string(m.ID), `"p`) {
					answered[string(m.ID)] = true
				}
			}
			fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":"%d answers"}}`+"\n", c.id, len(answered))
			return true, nil
		}))
		if got := said(t, exec(t, e, Request{Server: "hand", Tool: "t"})); got != "1000 answers" {
			t.Errorf("got %s", got)
		}
	})
}
