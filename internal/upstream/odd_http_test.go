package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// says returns a fault: the server answers with this status, content type and body.
func says(status int, media, body string) mcptest.Fault {
	f := mcptest.Fault{Kind: mcptest.FaultStatus, Status: status, Header: map[string]string{}, Body: body}
	if media != "" {
		f.Header["Content-Type"] = media
	}
	return f
}

// TestOddAnswersToTheProbe: hand-written legacy servers answer the probe in the way they answer any unknown
// method. mcpx recognizes each such answer as one of a legacy server.
func TestOddAnswersToTheProbe(t *testing.T) {
	tests := map[string]mcptest.Fault{
		"500":                says(500, "text/plain", "Internal Server Error"),
		"501":                says(501, "", ""),
		"500 as HTML":        says(500, "text/html", "<html>err</html>"),
		"401, no challenge":  says(401, "", ""),
		"403":                says(403, "", ""),
		"406":                says(406, "", ""),
		"422":                says(422, "application/json", `{"detail":[{"msg":"x"}]}`),
		"empty":              says(200, "", ""),
		"202":                says(202, "", ""),
		"204":                says(204, "", ""),
		"reset":              mcptest.Drop(),
		"an empty result":    says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{}}`),
		"a null result":      says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":null}`),
		"no revision":        says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":[]}}`),
		"another revision":   says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":["2099-01-01"]}}`),
		"an error, no id":    says(200, "application/json", `{"jsonrpc":"2.0","error":{"code":-32601,"message":"what?"}}`),
		"odd kind of result": says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":"ok"}`),
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{}.HTTP(t)
			server.Script(fault.On("server/discover").Always())
			u := ready(t, at(transport.HTTP, server.URL))
			if status := u.Status(); status.Modern || server.Count("initialize") != 1 {
				t.Errorf("modern is %t, after %d initialize", status.Modern, server.Count("initialize"))
			}
			mustEcho(t, u)
		})
	}
	t.Run("an empty result/stdio", func(t *testing.T) {
		mcptest.NoLeaks(t)
		u := ready(t, serving(scripted(map[string]string{
			"server/discover": `"result":{}`,
			"initialize":      `"result":{"protocolVersion":"2025-06-18"}`,
			"tools/list":      `"result":{"tools":[]}`,
		})))
		if status := u.Status(); status.Modern || status.Protocol != "2025-06-18" {
			t.Errorf("%+v", status)
		}
	})
}

// TestOtherRevisionsOnly: the error for a server that supports only unknown revisions differs from the error for a
// broken server.
func TestOtherRevisionsOnly(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
	server.Script(says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":["2099-01-01"]}}`).On("server/discover").Always())
	status := awaitState(t, connect(t, at(transport.HTTP, server.URL)), catalog.Unavailable)
	contains(t, "reason", status.Reason, `revisions ["2099-01-01"]`, modernVersion)
}

// TestChallengeOfTheProbe: if a server rejects the token in the probe, mcpx does not send it initialize as well.
func TestChallengeOfTheProbe(t *testing.T) {
	server := mcptest.Spec{}.HTTP(t)
	server.Script(mcptest.Unauthorized().Always())
	awaitState(t, connect(t, at(transport.HTTP, server.URL)), catalog.Unavailable)
	if n := server.Count("initialize"); n != 0 {
		t.Errorf("%d initialize", n)
	}
}

// TestOddAnswersToCalls: mcpx finds the answer to a call in an odd response, or returns an error that names what is odd. No
// such response ends the session.
func TestOddAnswersToCalls(t *testing.T) {
	const (
		fine    = `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"fine"}]}}`
		note    = `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`
		nullID  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"need x"}}`
		noID    = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"need x"}}`
		foreign = `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32602,"message":"need x"}}`
		other   = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"need x"}}`
		plain   = "application/json"
		stream  = "text/event-stream"
	)
	encoded := says(200, plain, "\x78\x9c\x03\x00")
	encoded.Header["Content-Encoding"] = "deflate"
	busy := says(503, "", "")
	busy.Header["Retry-After"] = "9"
	tests := []struct {
		name  string
		fault mcptest.Fault
		// want is the text of the result, or a part of the error's text.
		want string
		err  error // an error of the expected type
	}{
		{"batch", says(200, plain, "["+note+","+fine+","+note+"]"), "fine", nil},
		{"batch in an event", says(200, stream, "data: ["+note+","+fine+"]\n\n"), "fine", nil},
		{"batch with an error for nobody", says(200, stream, "data: ["+nullID+","+fine+"]\n\n"), "fine", nil},
		{"error for nobody before", says(200, stream, "data: "+nullID+"\n\ndata: "+fine+"\n\n"), "fine", nil},
		{"byte order mark", says(200, plain, "\xef\xbb\xbf"+fine), "fine", nil},
		{"charset", says(200, "application/json; charset=utf-8", fine), "fine", nil},
		{"broken parameter", says(200, "application/json; charset", fine), "fine", nil},
		{"content type twice", says(200, "application/json, application/json", fine), "fine", nil},
		{"as text", says(200, "text/plain; charset=utf-8", fine), "fine", nil},
		{"as JSON-RPC", says(200, "application/json-rpc", " "+fine), "fine", nil},
		{"as bytes", says(200, "application/octet-stream", "["+fine+"]"), "fine", nil},
		{"no content type", says(200, "", fine), "fine", nil},
		{"201", says(201, plain, fine), "fine", nil},
		{"null id", says(200, plain, nullID), "need x", &wire.RPCError{}},
		{"no id", says(200, plain, noID), "need x", &wire.RPCError{}},
		{"foreign id", says(200, plain, foreign), "need x", &wire.RPCError{}},
		{"null id, 400", says(400, plain, nullID), "need x", &wire.RPCError{}},
		{"null id, 400 as text", says(400, "text/plain", nullID), "need x", &wire.RPCError{}},
		{"null id in an event", says(200, stream, "data: "+nullID+"\n\n"), "need x", &wire.RPCError{}},
		{"no id in an event", says(200, stream, "data: "+noID+"\n\n"), "need x", &wire.RPCError{}},
		{"id of another", says(200, plain, other), "not a JSON-RPC response to the request, but an error for another id: need x (code -32602)", &request.AnswerError{}},
		{"empty", says(200, plain, ""), "200 OK without a body", &request.AnswerError{}},
		{"202", says(202, "", ""), "202 Accepted without a body", &request.AnswerError{}},
		{"204", says(204, "", ""), "204 No Content without a body", &request.AnswerError{}},
		{"text", says(200, "text/plain", "hello"), `content type "text/plain", which is not MCP`, &request.AnswerError{}},
		{"HTML", says(200, "text/html", fine), `content type "text/html", which is not MCP`, &request.AnswerError{}},
		{"encoding", encoded, `the content encoding "deflate", which was not asked for`, &request.AnswerError{}},
		{"500 with a result", says(500, plain, fine), "500 Internal Server Error: {", &request.HTTPError{}},
		{"500 with a text", says(500, "text/plain", "boom\x1b[0m"), "500 Internal Server Error: boom", &request.HTTPError{}},
		{"403 with a text", says(403, "text/plain", "scope repo:write needed"), "403 Forbidden: scope repo:write needed; check the headers", &request.UnavailableError{}},
		{"429 with an error", says(429, plain, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32029,"message":"10 per minute"}}`), `"message":"10 per minute"`, &request.UnavailableError{}},
		{"202 with a text", says(202, plain, `{"ok":true}`), `202 Accepted and no JSON-RPC response to the request: {"ok":true}`, &request.AnswerError{}},
		{"hollow", says(200, plain, `{"jsonrpc":"2.0","id":$ID}`), "the answer has neither result nor error", &wire.RPCError{}},
		{"hollow in an event", says(200, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":$ID}\n\n"), "the answer has neither result nor error", &wire.RPCError{}},
		{"500 with an error", says(500, plain, nullID), "need x", &wire.RPCError{}},
		{"503", busy, "503 Service Unavailable, retry after 9", &request.HTTPError{}},
	}
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		server := mcptest.Spec{Era: era}.HTTP(t)
		u := ready(t, at(transport.HTTP, server.URL))
		for _, tt := range tests {
			server.Script(tt.fault.On("tools/call"))
			got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("destroy_echo", nil), Times: request.Times{Timeout: patience}}))
			var ok bool
			switch tt.err.(type) {
			case nil:
				ok = err == nil && got == tt.want
			case *wire.RPCError:
				var e *wire.RPCError
				ok = errors.As(err, &e) && e.Message == tt.want
			case *request.AnswerError:
				var e *request.AnswerError
				ok = errors.As(err, &e) && strings.Contains(e.Reason, tt.want)
			case *request.HTTPError:
				var e *request.HTTPError
				ok = errors.As(err, &e) && strings.Contains(e.Reason, tt.want)
			case *request.UnavailableError:
				var e *request.UnavailableError
				ok = errors.As(err, &e) && strings.Contains(e.Reason, tt.want)
			}
			if !ok {
				t.Errorf("%s, %s: got %q, %#v", era, tt.name, got, err)
			}
		}
		mustEcho(t, u)
		if n := u.Status().Restarts; n != 0 {
			t.Errorf("%s: %d sessions were lost", era, n)
		}
	}
}

// TestBatchOnListeningStream: mcpx also reads a batch on the listening stream.
func TestBatchOnListeningStream(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	server.Script(says(200, "text/event-stream", `data: [{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"are you there","method":"ping"}]`+"\n\n").On("GET"))
	ready(t, at(transport.HTTP, server.URL))
	mcptest.WaitFor(t, "the answer to the ping", patience, func() bool {
		for _, entry := range server.Log().Event(mcptest.EventMessage) {
			if string(entry.ID) == `"are you there"` {
				return true
			}
		}
		return false
	})
}

// TestRedirectAndCompression: mcpx follows redirects on the same host, and reads compressed responses.
func TestRedirectAndCompression(t *testing.T) {
	mcptest.Parallel(t)
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := mcptest.Spec{AnswerSSE: status == http.StatusPermanentRedirect}.HTTP(t)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mcp/" {
				http.Redirect(w, r, "/mcp/", status)
				return
			}
			onward, err := http.NewRequestWithContext(r.Context(), r.Method, server.URL, r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			onward.Header = r.Header.Clone()
			onward.Header.Del("Accept-Encoding")
			resp, err := http.DefaultTransport.RoundTrip(onward)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			for name, values := range resp.Header {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length")
			if r.Method == http.MethodGet || r.Header.Get("Accept-Encoding") != "gzip" {
				w.WriteHeader(resp.StatusCode)
				_, _ = io.Copy(w, resp.Body)
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(resp.StatusCode)
			zip := gzip.NewWriter(w)
			_, _ = io.Copy(zip, resp.Body)
			_ = zip.Close()
		}))
		t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
		mustEcho(t, ready(t, at(transport.HTTP, front.URL+"/mcp")))
	}
}

// TestInitializedRefused: the session works however the server answers notifications/initialized. Only 404 ends the session,
// and mcpx opens another.
func TestInitializedRefused(t *testing.T) {
	faults := map[string]mcptest.Fault{"an open stream": mcptest.StallAfter()}
	for _, status := range []int{400, 405, 500} {
		f := says(status, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no id"}}`)
		f.Kind = mcptest.FaultStatusAfter
		faults[http.StatusText(status)] = f
	}
	for name, fault := range faults {
		for _, kind := range []string{transport.HTTP, transport.SSE} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				mcptest.NoLeaks(t)
				fake := mcptest.Spec{}
				server := fake.HTTP(t)
				if kind == transport.SSE {
					server = fake.SSE(t)
				}
				server.Script(fault.On("notifications/initialized").Always())
				u := ready(t, at(kind, server.URL))
				mustEcho(t, u)
				if n := server.Count("initialize"); n != 1 {
					t.Errorf("%d attempts", n)
				}
			})
		}
	}
	t.Run("404", func(t *testing.T) {
		mcptest.NoLeaks(t)
		server := mcptest.Spec{}.HTTP(t)
		server.Script(mcptest.LostSession().On("notifications/initialized"))
		u := ready(t, at(transport.HTTP, server.URL))
		mustEcho(t, u)
		if n := server.Count("initialize"); n != 2 {
			t.Errorf("%d sessions, want one that was lost and one", n)
		}
	})
}

// roundTripper is an HTTP server that needs no network, so it works in fake time.
type roundTripper func(method string, id json.RawMessage, r *http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return nil, err
		}
	}
	resp := f(m.Method, m.ID, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp.Status, resp.Request, resp.ProtoMajor = http.StatusText(resp.StatusCode), r, 1
	return resp, nil
}

func httpResponse(status int, media, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}
}

// legacyRPC is a legacy server that answers the handshake itself, and calls with the func call.
func legacyRPC(call func(id json.RawMessage, r *http.Request) *http.Response) roundTripper {
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18"}`,
		"tools/list": `{"tools":[{"name":"echo"}]}`,
	}
	return func(method string, id json.RawMessage, r *http.Request) *http.Response {
		switch {
		case method == "tools/call":
			return call(id, r)
		case answers[method] != "":
			return httpResponse(200, "application/json", `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+answers[method]+`}`)
		case method == "notifications/initialized":
			<-r.Context().Done() // the server sends no answer at all
			return nil
		}
		return httpResponse(405, "", "")
	}
}

// TestNamelessErrorOnOpenStream: neither a notification that the server does not answer, nor an error without an
// id on a stream that stays open, delays mcpx for long.
func TestNamelessErrorOnOpenStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := connect(t, Spec{Options: transport.Options{Type: transport.HTTP, Remote: transport.Remote{URL: "http://nowhere.example/mcp", Transport: legacyRPC(func(_ json.RawMessage, r *http.Request) *http.Response {
			resp := httpResponse(200, "text/event-stream", "")
			stream, w := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(context.Canceled) })
			go func() { // the goroutine ends when the event has been read, or with the request
				_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"need x"}}`+"\n\n")
			}()
			resp.Body = stream
			return resp
		})}}})
		pause(5 * time.Second)
		if status := u.Status(); status.State != catalog.Ready {
			t.Fatalf("%s: %s", status.State, status.Reason)
		}
		began := time.Now()
		_, err := text(u, "echo", `{}`)
		var rpc *wire.RPCError
		if took := time.Since(began); !errors.As(err, &rpc) || rpc.Message != "need x" || took != time.Second {
			t.Errorf("got %v after %v", err, took)
		}
		synctest.Wait()
	})
}

// thinking is how long nameless works on a call.
const thinking = 10 * time.Millisecond

// nameless is a server in this process that answers notifications/initialized and every call with an error without
// an id. It answers tools/list after the time listing.
func nameless(listing time.Duration) func(context.Context, io.Reader, io.Writer) error {
	return answering(func(m sent, out io.Writer) (string, error) {
		switch m.Method {
		case "initialize":
			return `"result":{"protocolVersion":"2025-06-18"}`, nil
		case "tools/list":
			<-time.After(listing)
			return `"result":{"tools":[{"name":"echo"}]}`, nil
		case "tools/call":
			<-time.After(thinking)
		}
		_, err := io.WriteString(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"not `+m.Method+`"}}`+"\n")
		return "", err
	})
}

// TestNamelessErrorOnStdio: on stdio an error without an id answers no request. The call ends when its time has
// passed, and its error quotes what the server wrote.
func TestNamelessErrorOnStdio(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := connect(t, serving(nameless(5*time.Second)))
		pause(10 * time.Second)
		if status := u.Status(); status.State != catalog.Ready || len(status.Tools) != 1 {
			t.Fatalf("%s: %s, %d tools", status.State, status.Reason, len(status.Tools))
		}
		began := time.Now()
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Timeout: time.Minute}})
		var timeout *request.TimeoutError
		if took := time.Since(began); !errors.As(err, &timeout) || took != time.Minute || !strings.Contains(timeout.Noise, "not tools/call") {
			t.Errorf("got %#v after %v", err, took)
		}
	})
}

// TestLogLineWithAnError: a log line in JSON that has a member "error" is not taken for the answer to the open
// call.
func TestLogLineWithAnError(t *testing.T) {
	for _, line := range []string{
		`{"level":"warn","error":"retrying the db","msg":"x"}`,
		`{"level":"error","error":{"code":7,"message":"retrying"},"msg":"x"}`,
		`{"jsonrpc":"2.0","id":"req-12","error":{"code":7,"message":"retrying"}}`,
		`{"result":"ok","took":5}`,
	} {
		bubble(t, func(t *testing.T) {
			u := connect(t, serving(answering(func(m sent, out io.Writer) (string, error) {
				switch m.Method {
				case "initialize":
					return `"result":{"protocolVersion":"2025-06-18"}`, nil
				case "tools/list":
					return `"result":{"tools":[{"name":"echo"}]}`, nil
				case "tools/call":
					_, err := io.WriteString(out, line+"\n")
					<-time.After(time.Second)
					return `"result":{"content":[{"type":"text","text":"done"}]}`, err
				}
				return "", nil
			})))
			pause(10 * time.Second)
			if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil)})); err != nil || got != "done" {
				t.Errorf("%s: got %q, %v", line, got, err)
			}
		})
	}
}

// TestLargeNoteBeforeTheAnswer: mcpx skips a message over the size limit that is not the answer, and the call goes
// on.
func TestLargeNoteBeforeTheAnswer(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, Spec{Options: transport.Options{Type: transport.HTTP, Remote: transport.Remote{URL: server.URL}, MaxMessage: 64 << 10}})
	note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 100<<10) + `"}}`
	server.Script(says(200, "text/event-stream", "data: "+note+"\n\n"+`data: {"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"here"}]}}`+"\n\n").On("tools/call"))
	if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil)})); err != nil || got != "here" {
		t.Errorf("got %q, %v", got, err)
	}
}
