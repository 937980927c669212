package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/delay"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// withUser returns a client whose user answers each question after that time.
func withUser(id string, after time.Duration) *caller.Client {
	return &caller.Client{
		ID: id, Name: id, Capabilities: json.RawMessage(`{"elicitation":{},"sampling":{}}`),
		Request: func(ctx context.Context, method string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			if !delay.Sleep(ctx, after) {
				return nil, ctx.Err()
			}
			return json.RawMessage(`{"action":"accept","content":{"word":"of ` + id + `"}}`), nil
		},
	}
}

func asking(client *caller.Client) request.Request {
	return request.Request{From: request.From{Client: client}, Method: "tools/call", Params: request.ToolParams("ask", nil), Times: request.Times{Timeout: time.Second, Idle: 500 * time.Millisecond}}
}

// TestAskClock: the clocks of a call stop while the user thinks, and go on after the answer.
func TestAskClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		spec.Introduction.Capabilities = caller.SharedCapabilities
		u := ready(t, spec)
		if got, err := textOf(u.Call(context.Background(), asking(withUser("a", 20*time.Minute)))); err != nil || !strings.Contains(got, "of a") {
			t.Errorf("got %q, %v", got, err)
		}
		// If the user does not answer, the question ends, and the server gets an error.
		began := time.Now()
		_, err := textOf(u.Call(context.Background(), asking(withUser("b", 100*time.Hour))))
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "did not answer") || took < 10*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		// Without a question, the timeout of a call runs as usual.
		began = time.Now()
		slow := asking(withUser("c", time.Minute))
		slow.Params = request.ToolParams("slow", json.RawMessage(`{"ms":5000}`))
		_, err = u.Call(context.Background(), slow)
		if timeout, ok := errors.AsType[*request.TimeoutError](err); !ok || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", timeout, time.Since(began))
		}
	})
}

// TestAskEnds: if the caller gives up a call, or the session ends, the question of the call ends too. Neither the
// call nor the end of the session waits for the user's answer.
func TestAskEnds(t *testing.T) {
	for name, end := range map[string]func(u *Upstream, cancel func()){
		"cancelled": func(_ *Upstream, cancel func()) { cancel() },
		"closed":    func(u *Upstream, _ func()) { u.Close(0) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spec, _ := inProcess(t, mcptest.Spec{})
				spec.Introduction.Capabilities = caller.SharedCapabilities
				u := ready(t, spec)
				asked, gone := make(chan struct{}), make(chan struct{})
				client := withUser("a", 0)
				client.Request = func(ctx context.Context, _ string, _ json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
					close(asked)
					<-ctx.Done()
					close(gone)
					return nil, ctx.Err()
				}
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = u.Call(ctx, asking(client))
				}()
				<-asked
				end(u, cancel)
				<-gone
				<-ended
				cancel()
			})
		})
	}
}

// TestAskBesideAnotherCall: a question may belong to any open call of the client, so it stays open when another
// call ends, even an older one.
func TestAskBesideAnotherCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		spec.Introduction.Capabilities = caller.SharedCapabilities
		u := ready(t, spec)
		client := withUser("a", time.Minute)
		older := asking(client)
		older.Params, older.Timeout, older.Idle = request.ToolParams("slow", json.RawMessage(`{"ms":5000}`)), time.Hour, 0
		ended := make(chan error, 1)
		go func() {
			_, err := u.Call(context.Background(), older)
			ended <- err
		}()
		pause(time.Second)
		if got, err := textOf(u.Call(context.Background(), asking(client))); err != nil || !strings.Contains(got, "of a") {
			t.Errorf("got %q, %v", got, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAskOfEachCall: if an open question was put to one of the client's calls, the next question is put to another call. A modern
// client gets a question as the answer to its call. So a second question to the same call would have to wait until the client has
// answered the first one.
func TestAskOfEachCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		spec.Introduction.Capabilities = caller.SharedCapabilities
		u := ready(t, spec)
		call := func(words string, after time.Duration) (said string) {
			client := withUser(words, after)
			client.ID, client.Name = "1", "agent" // all calls are of one client
			said, err := textOf(u.Call(context.Background(), asking(client)))
			if err != nil {
				t.Error(err)
			}
			return said
		}
		first := make(chan string, 1)
		go func() { first <- call("the first", time.Minute) }()
		pause(time.Second)
		began := time.Now()
		if got := call("the second", time.Second); !strings.Contains(got, "of the second") || time.Since(began) > 2*time.Second {
			t.Errorf("the second call got %q after %v", got, time.Since(began))
		}
		if got := <-first; !strings.Contains(got, "of the first") {
			t.Errorf("the first call got %q", got)
		}
	})
}

// TestAskAgain: if a call ends before its client has answered the question that mcpx put to it, the question must be from another
// call. mcpx then puts the question to that other call.
func TestAskAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		spec.Introduction.Capabilities = caller.SharedCapabilities
		u := ready(t, spec)
		over := make(chan struct{})
		older, newer := withUser("a", 0), withUser("a", time.Second)
		older.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
			<-over
			return nil, errors.New("the call that was to ask is over")
		}
		go func() {
			defer close(over)
			slow := asking(older)
			slow.Params, slow.Timeout, slow.Idle = request.ToolParams("slow", json.RawMessage(`{"ms":5000}`)), time.Hour, 0
			if _, err := u.Call(context.Background(), slow); err != nil {
				t.Error(err)
			}
		}()
		pause(time.Second)
		if got, err := textOf(u.Call(context.Background(), asking(newer))); err != nil || !strings.Contains(got, "of a") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestAskAfterAbandonedCalls: a client that gives up its calls, or whose calls time out, does not prevent other
// clients from getting questions.
func TestAskAfterAbandonedCalls(t *testing.T) {
	eachVariant(t, mcptest.Spec{HangTools: []string{"held"}}, func(t *testing.T, v variant, spec Spec, log func() mcptest.Log) {
		spec.Introduction.Capabilities = caller.SharedCapabilities
		u := ready(t, spec)
		asks := func() {
			t.Helper()
			honest := asking(withUser("b", 0))
			honest.Timeout, honest.Idle = patience, 0
			if got, err := textOf(u.Call(context.Background(), honest)); err != nil || !strings.Contains(got, "of b") {
				t.Errorf("got %q, %v", got, err)
			}
		}
		held := asking(withUser("a", 0))
		held.Params, held.Idle, held.Timeout = request.ToolParams("held", nil), 0, 100*time.Millisecond
		if _, err := u.Call(context.Background(), held); err == nil {
			t.Error("the call has not timed out")
		}
		asks()
		held.Timeout = patience
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = u.Call(ctx, held)
		}()
		mcptest.WaitFor(t, "the second call", patience, func() bool { return len(log().Calls("held")) == 2 })
		cancel()
		<-ended
		asks()
	})
}

// TestAskRefused: the code of the error says whether the client lacks a capability, or only the mode of a question.
func TestAskRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var call json.RawMessage
		u := ready(t, serving(answering(func(m sent, out io.Writer) (string, error) {
			switch m.Method {
			case "initialize":
				return `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`, nil
			case "tools/list":
				return `"result":{"tools":[]}`, nil
			case "tools/call":
				call = m.ID
				_, err := io.WriteString(out, `{"jsonrpc":"2.0","id":"q",`+m.Params.Name+"}\n")
				return "", err
			case "":
				_, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%d"}]}}`+"\n", call, m.Error.Code)
				return "", err
			}
			return unknownMethod, nil
		})))
		for question, code := range map[string]string{
			`"method":"elicitation/create","params":{"mode":"url"}`:   "-32602",
			`"method":"sampling/createMessage","params":{"tools":[]}`: "-32601",
			`"method":"roots/list"`:                                   "-32601",
			`"method":"no/such"`:                                      "-32601",
		} {
			r := asking(withUser("a", time.Minute))
			r.Params = request.ToolParams(question, nil)
			if got, err := textOf(u.Call(t.Context(), r)); err != nil || got != code {
				t.Errorf("%s: %s, %v", question, got, err)
			}
		}
	})
}

// TestInputRounds: if a server returns input_required again and again, the call fails after some rounds. A client
// that answers such questions itself gets the first input_required result.
func TestInputRounds(t *testing.T) {
	for name, tt := range map[string]struct {
		result string
		relay  bool
		want   string
	}{
		"again and again": {`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}},"requestState":"s"}`, false, "again and again"},
		"nothing":         {`{"resultType":"input_required","requestState":"s"}`, false, "again and again"},
		"odd":             {`{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}`, false, "method not found"},
		"no object":       {`{"resultType":"input_required","inputRequests":{"a":7}}`, false, "method not found"},
		"not declared":    {`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"roots/list"}}}`, false, "capability roots"},
		"relayed":         {`{"resultType":"input_required","requestState":"s"}`, true, ""},
		"relayed, asks":   {`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`, true, ""},
		"relayed, more":   {`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"roots/list"}}}`, true, "capability roots"},
		"relayed, url":    {`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}}}}`, true, "capability elicitation.url"},
		"relayed, odd":    {`{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}`, true, "method not found"},
		"in a text":       {`{"resultType":"complete","content":[{"type":"text","text":"\"input_required\""}]}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spec, _ := inProcess(t, mcptest.Spec{Era: mcptest.EraModern, MethodResults: map[string]json.RawMessage{"tools/call": json.RawMessage(tt.result)}})
				u := ready(t, spec)
				r := asking(withUser("a", time.Minute))
				r.Relay, r.Timeout = tt.relay, time.Minute
				got, err := u.Call(context.Background(), r)
				if _, ok := errors.AsType[*request.InputError](err); tt.want != "" && (!ok || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %s, %v", got, err)
				}
				if tt.want == "" && (err != nil || string(got) != tt.result) {
					t.Errorf("got %s, %v", got, err)
				}
			})
		})
	}
}

// TestInputRounds_Refused: a server that may not ask clients anything cannot do so either in a result that is passed on to the client.
func TestInputRounds_Refused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const result = `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`
		spec, _ := inProcess(t, mcptest.Spec{Era: mcptest.EraModern, MethodResults: map[string]json.RawMessage{"tools/call": json.RawMessage(result)}})
		spec.NoQuestions = true
		u := ready(t, spec)
		for _, relay := range []bool{false, true} {
			r := asking(withUser("a", time.Minute))
			r.Relay, r.Timeout = relay, time.Minute
			if got, err := u.Call(t.Context(), r); err == nil || !strings.Contains(err.Error(), "may not ask") {
				t.Errorf("relay is %t: got %s, %v", relay, got, err)
			}
		}
	})
}

// TestInputRounds_Legacy: a legacy server that returns input_required could not get the answers, so the call fails without a question.
func TestInputRounds_Legacy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const result = `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}},"requestState":"s"}`
		spec, _ := inProcess(t, mcptest.Spec{MethodResults: map[string]json.RawMessage{"tools/call": json.RawMessage(result)}})
		u := ready(t, spec)
		for _, relay := range []bool{false, true} {
			client := withUser("a", time.Minute)
			client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
				t.Errorf("relay is %t: the client was asked", relay)
				return nil, errors.New("never asked")
			}
			r := asking(client)
			r.Relay = relay
			if got, err := u.Call(t.Context(), r); err == nil || !strings.Contains(err.Error(), "only protocol revision "+modernVersion) {
				t.Errorf("relay is %t: got %s, %v", relay, got, err)
			}
		}
	})
}

// TestInputRounds_Last: the result after as many input_required as are allowed is not lost, since the call was executed.
func TestInputRounds_Last(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := 0
		u := ready(t, serving(answering(func(m sent, _ io.Writer) (string, error) {
			switch {
			case m.Method == "server/discover":
				return `"result":{"supportedVersions":["` + modernVersion + `"]}`, nil
			case m.Method != "tools/call":
				return unknownMethod, nil
			case asked == maxInputRounds:
				return `"result":{"resultType":"complete","content":[]}`, nil
			}
			asked++
			return `"result":{"resultType":"input_required","requestState":"s"}`, nil
		})))
		r := asking(withUser("a", time.Minute))
		r.Timeout = time.Minute
		if got, err := u.Call(t.Context(), r); err != nil || asked != maxInputRounds {
			t.Errorf("after %d rounds: %s, %v", asked, got, err)
		}
	})
}

// TestInputRounds_Unsent: after a question, mcpx cannot send the call to the server again, because of the concurrency limit, a lost
// session, or because it has stopped the server. The error says that the call may have been executed: the first request of the
// call has reached the server.
func TestInputRounds_Unsent(t *testing.T) {
	for name, hinder := range map[string]func(*Upstream){
		"busy":    func(u *Upstream) { _ = u.spec.Concurrency.Gate.Enter(context.Background(), "") },
		"lost":    func(u *Upstream) { u.current().link.Life().Fail(errors.New("gone")) },
		"stopped": func(u *Upstream) { go u.Stop(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				began := 0
				spec := serving(answering(func(m sent, _ io.Writer) (string, error) {
					switch m.Method {
					case "server/discover":
						if began++; began > 1 {
							return "", errors.New("out of order")
						}
						return `"result":{"supportedVersions":["` + modernVersion + `"]}`, nil
					case "tools/call":
						return `"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`, nil
					}
					return unknownMethod, nil
				}))
				spec.Concurrency.Gate = semaphore.New(1, semaphore.Queue{})
				u := ready(t, spec)
				r, answer := asking(withUser("a", time.Minute)), withUser("a", time.Minute).Request
				r.Timeout, r.Wait = time.Minute, time.Minute
				r.Client.Request = func(ctx context.Context, method string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
					hinder(u)
					return answer(ctx, method, params, nil)
				}
				_, err := u.Call(t.Context(), r)
				lost, isLost := errors.AsType[*request.LostError](err)
				timeout, timedOut := errors.AsType[*request.TimeoutError](err)
				if !(isLost && lost.MayHaveRun) && !(timedOut && timeout.MayHaveRun) {
					t.Errorf("got %#v", err)
				}
			})
		})
	}
}

// lively is a server that answers each call with the lines that say returns for the call's id.
func lively(say func(id string) []string) func(context.Context, io.Reader, io.Writer) error {
	return answering(func(m sent, out io.Writer) (string, error) {
		switch m.Method {
		case "initialize":
			return `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}`, nil
		case "tools/call":
			lines := say(string(m.ID))
			last := len(lines) - 1
			_, err := io.WriteString(out, strings.Join(append(lines[:last:last], ""), "\n"))
			return lines[last], err
		}
		return unknownMethod, nil
	})
}

// TestVisited: only the client that got a URL is notified that the user has completed it, also if the URL was in
// the data of an error.
func TestVisited(t *testing.T) {
	for name, lines := range map[string][]string{
		"question": {
			`{"jsonrpc":"2.0","id":"u","method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","url":"https://x.example","message":"go"}}`,
			`"result":{"content":[]}`,
		},
		"error": {`"error":{"code":-32042,"message":"go there","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://x.example","message":"go"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				calls := 0
				u := ready(t, serving(lively(func(string) []string {
					if calls++; calls == 1 {
						return slices.Clone(lines)
					}
					return []string{`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}`, `"result":{"content":[]}`}
				})))
				var heard, others atomic.Int32
				a, b := withUser("a", 0), withUser("b", 0)
				a.Capabilities = json.RawMessage(`{"elicitation":{"url":{}}}`)
				a.Notify = func(method string, params json.RawMessage) {
					if method != "notifications/elicitation/complete" || string(params) != `{"elicitationId":"e1"}` {
						t.Errorf("heard %s %s", method, params)
					}
					heard.Add(1)
				}
				b.Notify = func(string, json.RawMessage) { others.Add(1) }
				_, err := u.Call(context.Background(), asking(a))
				if rpc, ok := errors.AsType[*wire.RPCError](err); ok != (name == "error") || ok && (!a.OpensURLsOf(rpc) || b.OpensURLsOf(rpc)) {
					t.Errorf("got %v", err)
				}
				for range 2 {
					if _, err := u.Call(context.Background(), asking(b)); err != nil {
						t.Error(err)
					}
				}
				if heard.Load() != 1 || others.Load() != 0 {
					t.Errorf("heard %d times, by others %d times", heard.Load(), others.Load())
				}
			})
		})
	}
}

// TestAskAboutTask: a question about a task goes to the call that waits for the result of this task, although another call is open that
// is older: one of the same client, or one of another client.
func TestAskAboutTask(t *testing.T) {
	for _, other := range []string{"a", "b"} {
		bubble(t, func(t *testing.T) {
			calls := ""
			u := ready(t, serving(answering(func(m sent, out io.Writer) (member string, err error) {
				switch m.Method {
				case "initialize":
					member = `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}`
				case "tools/call":
					calls = string(m.ID)
				case "tasks/result":
					_, err = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which?","_meta":{%q:{"taskId":"7"}}}}`+"\n", caller.RelatedTask)
					calls += "," + string(m.ID)
				case "":
					for id := range strings.SplitSeq(calls, ",") {
						_, err = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
					}
				default:
					member = unknownMethod
				}
				return member, err
			})))
			ended := make(chan error, 1)
			older := asking(withUser(other, 0))
			older.Client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
				t.Error("the question went to another call")
				return json.RawMessage(`{"action":"decline"}`), nil
			}
			go func() {
				_, err := u.Call(context.Background(), older)
				ended <- err
			}()
			synctest.Wait()
			asked := withUser("a", 0)
			result := asking(asked)
			result.Method, result.Params = "tasks/result", json.RawMessage(`{"taskId":"7"}`)
			heard, ask := 0, asked.Request
			asked.Request = func(ctx context.Context, method string, params json.RawMessage, said func(json.RawMessage)) (json.RawMessage, error) {
				heard++
				return ask(ctx, method, params, said)
			}
			if _, err := u.Call(context.Background(), result); err != nil || heard != 1 {
				t.Errorf("beside %s: asked %d times, %v", other, heard, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAskAboutUnknownTask: a question about a task for whose result no call waits goes to the client that has a call open.
func TestAskAboutUnknownTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		call := ""
		u := ready(t, serving(answering(func(m sent, out io.Writer) (member string, err error) {
			switch m.Method {
			case "initialize":
				member = `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}`
			case "tools/call":
				call = string(m.ID)
				_, err = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which?","_meta":{%q:{"taskId":"7"}}}}`+"\n", caller.RelatedTask)
			case "":
				_, err = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", call)
			default:
				member = unknownMethod
			}
			return member, err
		})))
		asked := withUser("a", 0)
		heard, ask := 0, asked.Request
		asked.Request = func(ctx context.Context, method string, params json.RawMessage, said func(json.RawMessage)) (json.RawMessage, error) {
			heard++
			return ask(ctx, method, params, said)
		}
		if _, err := u.Call(context.Background(), asking(asked)); err != nil || heard != 1 {
			t.Errorf("asked %d times, %v", heard, err)
		}
	})
}

// TestVisited_Abandoned: URLs that nobody opens do not keep the client that gets the next one from being notified.
func TestVisited_Abandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := 0
		u := ready(t, serving(lively(func(string) []string {
			calls++
			if calls <= 2*lru.Usual {
				return []string{fmt.Sprintf(`"error":{"code":-32042,"message":"go there","data":{"elicitations":[{"mode":"url","elicitationId":"e%d","url":"https://x.example","message":"go"}]}}`, calls)}
			}
			return []string{fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e%d"}}`, 2*lru.Usual), `"result":{"content":[]}`}
		})))
		var heard atomic.Int32
		a := withUser("a", 0)
		a.Capabilities = json.RawMessage(`{"elicitation":{"url":{}}}`)
		a.Notify = func(string, json.RawMessage) { heard.Add(1) }
		for range 2*lru.Usual + 1 {
			_, _ = u.Call(context.Background(), asking(a)) // all but the last fail: they ask the user to open a URL
		}
		if heard.Load() != 1 {
			t.Errorf("the client was notified %d times", heard.Load())
		}
	})
}

// TestOwner: in a session that belongs to one client, mcpx declares the capabilities of that client that it relays, its name
// and its era, and passes questions and log messages to it even while no call is open.
func TestOwner(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraBoth}.HTTP(t)
	heard := make(chan string, 10)
	owner := withUser("bob", 0)
	owner.Version, owner.Capabilities = "2025-11-25", json.RawMessage(`{"roots":{"listChanged":true},"experimental":{}}`)
	owner.Notify = func(method string, params json.RawMessage) { heard <- method + " " + string(params) }
	u := ready(t, Spec{Options: over(transport.HTTP, fake.URL), Introduction: Introduction{Owner: func() *caller.Client { return owner }, Capabilities: caller.AllCapabilities}})
	said := fake.Log().Method("initialize")
	if len(said) != 1 || fake.Count("server/discover") != 0 {
		t.Fatalf("the session is not of the era of its client: %d", len(said))
	}
	for _, want := range []string{`"capabilities":{"roots":{"listChanged":true}}`, `"name":"bob-through-proxy"`} {
		if !strings.Contains(string(said[0].Message), want) {
			t.Errorf("no %s in %s", want, said[0].Message)
		}
	}
	mcptest.WaitFor(t, "a log message", patience, func() bool {
		fake.Notify("notifications/message", `{"level":"info","logger":"db","data":"x"}`) // the listening stream may open late
		return len(heard) > 0
	})
	if got := <-heard; got != `notifications/message {"logger":"fake/db","level":"info","data":"x","_meta":{"mcpx/origin":"fake"}}` {
		t.Errorf("heard %s", got)
	}
	u.Notify("notifications/roots/list_changed", nil)
	mcptest.WaitFor(t, "the notification", patience, func() bool { return fake.Count("notifications/roots/list_changed") == 1 })

	modern := ready(t, Spec{Options: over(transport.HTTP, mcptest.Spec{Era: mcptest.EraModern}.HTTP(t).URL), Introduction: Introduction{Owner: func() *caller.Client { return owner }}})
	if !modern.Status().Modern {
		t.Error("a server of the modern era is not spoken to in its era")
	}
	modern.Notify("notifications/roots/list_changed", nil)
}

// TestAskUnchecked: a server that handles one request at a time cannot answer health checks while a user thinks,
// and is not restarted because of that.
func TestAskUnchecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		call := ""
		serve := answering(func(m sent, out io.Writer) (answer string, err error) {
			switch {
			case m.Method == "initialize":
				return `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}`, nil
			case m.Method == "tools/call":
				call = string(m.ID)
				_, err = io.WriteString(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"x"}}`+"\n")
			case m.Method == "":
				_, err = io.WriteString(out, `{"jsonrpc":"2.0","id":`+call+`,"result":{"content":[{"type":"text","text":"done"}]}}`+"\n")
				call = ""
			case call == "":
				return unknownMethod, nil
			}
			return "", err
		})
		u := ready(t, Spec{Options: transport.Options{Type: transport.InProcess, Serve: serve}, Introduction: Introduction{Capabilities: caller.SharedCapabilities}, Health: conf.Health{Interval: 10 * time.Second}})
		r := asking(withUser("a", 40*time.Minute))
		r.Timeout, r.Idle = time.Minute, 0
		if got, err := textOf(u.Call(context.Background(), r)); err != nil || got != "done" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestListsForOwner: in a session that belongs to one client, mcpx declares that client's capabilities also when
// it reads the lists of a modern server. In a shared session it declares none there.
func TestListsForOwner(t *testing.T) {
	for _, owned := range []bool{true, false} {
		server := mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
		spec := at(transport.HTTP, server.URL)
		if owned {
			spec.Introduction.Owner = func() *caller.Client { return withUser("a", 0) }
		}
		ready(t, spec)
		lists := server.Log().Method("tools/list")
		if len(lists) == 0 || strings.Contains(string(lists[0].Message), `"elicitation":{}`) != owned {
			t.Errorf("owned %v: %d lists: %+v", owned, len(lists), lists)
		}
	}
}

// TestQuestions_TakenBack: a question that the server cancels ends, and no other.
func TestQuestions_TakenBack(t *testing.T) {
	var q questions
	open := make(map[string]context.Context)
	for _, id := range []string{`7`, `"7"`} {
		ctx, ok := q.begin(id)
		if !ok {
			t.Fatal("no question is possible")
		}
		defer q.done(id)
		open[id] = ctx
	}
	for _, params := range []string{`{"requestId":8}`, `{}`, ``, `{"requestId":"7","reason":"found it"}`} {
		q.cancelled(json.RawMessage(params))
	}
	if cause := context.Cause(open[`"7"`]); cause != errTakenBack {
		t.Errorf("the cancelled question: %v", cause)
	}
	if err := open[`7`].Err(); err != nil {
		t.Errorf("the other question: %v", err)
	}
}
