package front

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// bodyOf reads the body of a response, and closes it.
func bodyOf(t *testing.T, response *http.Response) []byte {
	t.Helper()
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// post sends a message with these headers and returns the status, the content type and the body of the
// response.
func post(t *testing.T, web *httptest.Server, body string, header map[string]string) (status int, media, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), strings.TrimSpace(string(bodyOf(t, response)))
}

// TestHTTP_Body: a body may have up to MaxMessage bytes, whether or not its length is declared. A larger body
// gets an error in plain text.
func TestHTTP_Body(t *testing.T) {
	mcptest.NoLeaks(t)
	const limit = 1<<20 + 5000 // larger than the memory that mcpx allocates because of a Content-Length alone
	web := httptest.NewServer(connectWith(t, Options{MaxMessage: limit}, view.Options{}))
	t.Cleanup(web.Close)
	message := func(size int) string {
		frame := `{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":""}}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
	}
	for _, test := range []struct {
		name string
		body io.Reader
		want int
	}{
		{"small", strings.NewReader(message(100)), 400}, // refused only because it names no session
		{"at the limit", strings.NewReader(message(limit)), 400},
		{"over it", strings.NewReader(message(limit + 1)), 413},
		{"chunked, at the limit", io.MultiReader(strings.NewReader(message(limit))), 400},
		{"chunked, over it", io.MultiReader(strings.NewReader(message(limit + 1))), 413},
	} {
		response, err := http.Post(web.URL, "application/json", test.body)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(response.Body)
		response.Body.Close()
		read := strings.Contains(string(answer), "Mcp-Session-Id is missing")
		if response.StatusCode != test.want || read != (test.want == 400) || strings.Contains(string(answer), `"error"`) != read {
			t.Errorf("%s: %s %s", test.name, response.Status, answer)
		}
	}
	// A Content-Length over the limit is refused at once, without waiting for the body.
	connection, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(patience))
	io.WriteString(connection, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n")
	if answer, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413") {
		t.Errorf("a claimed length: %v, %s", err, answer)
	}
}

// TestHTTP_Calls: every valid call gets its complete result, however unusual the request is. A call whose
// headers contradict its body is refused.
func TestHTTP_Calls(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	legacy := newWebClient(t, web, legacyEra)
	const raw = `{"name":"exec","arguments":{"server_name":"fake","tool_name":"raw","arguments":{"result":"{\"_meta\":{\"z\":1,\"a\":2.50},\"content\":[]}"}}`
	const meta = `"_meta":{"z":1,"a":2.50`
	modern := map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "tools/call", "Mcp-Name": "exec", "Accept": "application/json"}
	session := map[string]string{"Mcp-Session-Id": legacy.session, "Accept": "application/json, text/event-stream"}
	with := func(base map[string]string, name, value string) map[string]string {
		all := map[string]string{name: value}
		for k, v := range base {
			if k != name {
				all[k] = v
			}
		}
		return all
	}
	tests := []struct {
		name, params string
		header       map[string]string
		status       int
		media, want  string
	}{
		{"legacy", raw + `}`, session, 200, "application/json", meta},
		{"legacy, with a token", raw + `,"_meta":{"progressToken":1}}`, session, 200, "application/json", meta},
		{"legacy, a task", raw + `,"task":{"ttl":1}}`, session, 200, "application/json", meta},
		{"legacy, only streams", raw + `}`, with(session, "Accept", "text/event-stream"), 200, "text/event-stream", meta},
		{"legacy, no Accept", raw + `}`, with(session, "Accept", ""), 200, "application/json", meta},
		{"modern", raw + `,` + modernMeta + `}`, modern, 200, "application/json", meta},
		{"modern, the name in base64", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Name", "=?base64?ZXhlYw==?="), 200, "application/json", meta},
		{"modern, another name", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Name", "inspect"), 400, "application/json", `"code":-32020`},
		{"modern, no name", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Name", ""), 400, "application/json", `"code":-32020`},
		{"modern, another version", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Protocol-Version", "2025-06-18"), 400, "application/json", `"code":-32020`},
		{"modern, no capabilities", raw + `,` + strings.Replace(modernMeta, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1) + `}`, modern, 400, "application/json", `"code":-32602`},
		{"no such tool", `{"name":"other",` + modernMeta + `}`, with(modern, "Mcp-Name", "other"), 400, "application/json", `"code":-32602`},
		{"name in other letters", `{"Name":"inspect",` + modernMeta + `}`, with(modern, "Mcp-Name", "inspect"), 400, "application/json", `"code":-32020`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, media, answer := post(t, web, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+test.params+`}`, test.header)
			if status != test.status || media != test.media || !strings.Contains(answer, test.want) {
				t.Errorf("got %d, %s: %s", status, media, answer)
			}
		})
	}
}

// TestHTTP_Methods: HTTP methods that the endpoint does not support are refused.
func TestHTTP_Methods(t *testing.T) {
	_, web := site(t)
	for _, verb := range []string{"PUT", "PATCH", "OPTIONS", "HEAD"} {
		request, err := http.NewRequestWithContext(t.Context(), verb, web.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := web.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 405 || response.Header.Get("Allow") != "GET, POST, DELETE" {
			t.Errorf("%s: %s, %v", verb, response.Status, response.Header)
		}
	}
}

// TestHTTP_Idle: a session that is not used is removed from memory. When the client sends its next request, the session is in
// memory again. It stays there while it has an open call or stream, and for a while after its last request.
func TestHTTP_Idle(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	f, web := site(t, remote("fake", fake))
	busy, streams, left := newWebClient(t, web, legacyEra), newWebClient(t, web, legacyEra), newWebClient(t, web, legacyEra)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ends := make(chan error, 1)
	go func() { // the goroutine ends with leave
		_, err := busy.exec(ctx, "1", "slow", `{"ms":3600000}`, "")
		ends <- err
	}()
	stream, err := streams.send(ctx, "GET", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) == 1 })
	there := func() (n int) {
		f.sessions.each(func(*session) { n++ })
		return n
	}
	f.endIdle(time.Now().Add(-time.Minute))
	if there() != 3 {
		t.Errorf("%d of 3 sessions are left, and all were used in this minute", there())
	}
	f.endIdle(time.Now())
	if there() != 2 || f.sessions.get(left.session) != nil {
		t.Errorf("%d sessions are left, and two are used", there())
	}
	if status, _, answer := post(t, web, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Session-Id": left.session}); status != 200 || !strings.Contains(answer, `"id":1`) || there() != 3 {
		t.Errorf("if it goes on: %d, %s", status, answer)
	}
	leave()
	<-ends
	mcptest.WaitFor(t, "the end of the others", patience, func() bool {
		f.endIdle(time.Now())
		return there() == 0
	})
}

// TestHTTP_IDs: the answer has the request's id exactly as the client wrote it, whatever its digits. A value
// that is not a valid id is refused.
func TestHTTP_IDs(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t)
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session}
	modern := map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "server/discover"}
	for _, id := range []string{`1`, `-1`, `0`, `9007199254740993`, `-9007199254740993`, `123456789012345678901234567890`, `1.50`, `1e3`, `"12345678901234567890"`, `"\u00e9"`} {
		for _, message := range []struct {
			rest   string
			header map[string]string
		}{{`"method":"ping"`, session}, {`"method":"tools/list"`, session}, {`"method":"server/discover","params":{` + modernMeta + `}`, modern}} {
			status, _, answer := post(t, web, `{"jsonrpc":"2.0","id":`+id+`,`+message.rest+`}`, message.header)
			if status != 200 || !strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":`+id+`,"result":`) {
				t.Errorf("id %s: %d %s", id, status, answer)
			}
		}
	}
	for _, id := range []string{`{}`, `[1]`, `true`, `null`} {
		for method, header := range map[string]map[string]string{`"ping"`: session, `"server/discover","params":{` + modernMeta + `}`: modern} {
			status, media, answer := post(t, web, `{"jsonrpc":"2.0","id":`+id+`,"method":`+method+`}`, header)
			if status != 400 || !strings.HasPrefix(media, "text/plain") {
				t.Errorf("id %s of %s: %d %s", id, method, status, answer)
			}
		}
	}
}

// TestHTTP_Odd: invalid or ambiguous messages are refused: with the request's id if it is known, otherwise in
// plain text, because some clients wait for ever after a JSON-RPC error without an id.
func TestHTTP_Odd(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t)
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session}
	for _, body := range []string{"", "5", "nonsense", "[]", `{"jsonrpc":`, `{}`, "{\"jsonrpc\":\"2.0\",\"method\":\"x\xff\"}", `{"jsonrpc":"2.0","method":"ping","Method":"notifications/cancelled"}`} {
		if status, media, answer := post(t, web, body, session); status != 400 || !strings.HasPrefix(media, "text/plain") {
			t.Errorf("%q: %d %s %s", body, status, media, answer)
		}
	}
	for members, code := range map[string]string{
		`"method":"ping","Method":"notifications/cancelled"`:                             "-32600",
		`"METHOD":"notifications/cancelled","method":"ping"`:                             "-32600",
		`"method":"notifications/cancelled","method":"ping"`:                             "-32600",
		`"method":"ping","param\u017f":{}`:                                               "-32600",
		`"method":"ping","params":{},"params":{"_meta":{}}`:                              "-32600",
		`"method":"ping","ID":2`:                                                         "-32600",
		`"extra":1`:                                                                      "-32600",
		`"method":"ping","params":{"x":NaN}`:                                             "-32700",
		"\"method\":\"tools/call\",\"params\":{\"x\":\"\xff\"}":                          "-32700",
		`"method":"ping","params":[1]`:                                                   "-32602",
		`"method":"tools/list","params":{"_meta":1}`:                                     "-32602",
		`"method":"tools/call","params":{"name":"inspect","arguments":{},"name":"exec"}`: "-32602",
		`"method":"tools/call","params":{"name":"inspect","na\u006de":"exec"}`:           "-32602",
		`"method":"tools/call","params":{"name":"inspect","Name":"exec"}`:                "-32602",
		`"method":"ping","params":{"x":1,"x":2}`:                                         "-32602",
		`"method":"ping","params":{"_meta":{"progressToken":1,"progressToken":2}}`:       "-32602",
		`"method":"ping","params":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"n":2}`: "-32602",
		`"method":"tools/list","params":{"_meta":{"progressToken":1`:                                                                 "-32700",
	} {
		status, _, answer := post(t, web, `{"id":7,`+members+`}`, session)
		if status != 400 || !strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":7,"error":{"code":`+code) {
			t.Errorf("%s: %d %s", members, status, answer)
		}
	}
	if status, _, answer := post(t, web, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"METHOD":1,"id":2},"extra":1}`, session); status != 200 {
		t.Errorf("what is inside of params: %d %s", status, answer)
	}
	if status, _, answer := post(t, web, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,`+modernMeta+`}}`,
		map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "notifications/cancelled"}); status != 202 || answer != "" {
		t.Errorf("a notification of the modern era: %d %s", status, answer)
	}
	for header, status := range map[string]int{"": 400, "nonsense": 404} {
		got, _, answer := post(t, web, `{"jsonrpc":"2.0","id":"a","method":"ping"}`, map[string]string{"Mcp-Session-Id": header})
		if got != status || !strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":"a","error":{"code":-32000,`) {
			t.Errorf("session %q: %d %s", header, got, answer)
		}
	}
}

// TestHTTP_Absent: a value by which clients mean "absent", such as null, is treated as absent; so is the id of a notification.
// Invalid params of a notification are not an error.
func TestHTTP_Absent(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t)
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session}
	for _, members := range []string{`"method":"ping","params":null`, `"method":"tools/list","params":null`, `"method":"tools/list","params":{"cursor":""}`, `"method":"tools/list","params":{"cursor":null}`} {
		if status, _, answer := post(t, web, `{"jsonrpc":"2.0","id":7,`+members+`}`, session); status != 200 || !strings.Contains(answer, `"result":`) {
			t.Errorf("%s: %d %s", members, status, answer)
		}
	}
	for _, params := range []string{"null", "[1]", "5", `{"_meta":5}`} {
		if status, _, answer := post(t, web, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+params+`}`, session); status != 202 || answer != "" {
			t.Errorf("a notification with params %s: %d %s", params, status, answer)
		}
	}
	if status, _, answer := post(t, web, `{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`, session); status != 202 || answer != "" {
		t.Errorf("a notification with the id null: %d %s", status, answer)
	}
}

// TestHTTP_BatchProgress: each request of a batch gets only its own progress notifications.
func TestHTTP_BatchProgress(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session, "Accept": "application/json, text/event-stream"}
	call := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"progress","arguments":{"steps":1}},"_meta":{"progressToken":` + id + `}}}`
	}
	_, _, answer := post(t, web, "["+call("1")+","+call("2")+"]", session)
	for _, id := range []string{"1", "2"} {
		if !strings.Contains(answer, `"progressToken":`+id) {
			t.Errorf("no progress of call %s: %s", id, answer)
		}
	}
}

// TestHTTP_OwnProgress: progress that mcpx itself reports, here of several calls in one, has the token of the request too.
func TestHTTP_OwnProgress(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session, "Accept": "application/json, text/event-stream"}
	_, _, answer := post(t, web, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"echo",`+
		`"each":[{"text":"a"},{"text":"b"}]},"_meta":{"progressToken":"p"}}}`, session)
	if told, mine := strings.Count(answer, "notifications/progress"), strings.Count(answer, `"progressToken":"p"`); told < 2 || mine != told {
		t.Errorf("%d of %d notifications have the token: %s", mine, told, answer)
	}
}

// TestHTTP_Batch: each request of a batch is answered. A batch of notifications gets no JSON-RPC answer.
func TestHTTP_Batch(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session, "Accept": "application/json, text/event-stream"}
	call := strings.TrimSpace(execLine("2", "fake", "echo", `{"text":"here"}`))
	status, media, answer := post(t, web, `[{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},`+
		call+`,{"jsonrpc":"2.0","id":3,"method":"initialize"},{"jsonrpc":"2.0","id":4}]`, session)
	got, err := messagesIn(media, strings.NewReader(answer))
	if err != nil || status != 200 || len(got) != 4 {
		t.Fatalf("got %d, %v: %s", status, err, answer)
	}
	if string(got[0].ID) != "9007199254740993" || got[1].text() != "here" || got[2].Error == nil || string(got[3].ID) != "4" || got[3].Error == nil {
		t.Errorf("got %s", answer)
	}
	if status, _, answer := post(t, web, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, session); status != 202 || answer != "" {
		t.Errorf("notifications: %d %s", status, answer)
	}
	if status, _, answer := post(t, web, `[`+call+`]`, nil); status != 400 {
		t.Errorf("without a session: %d %s", status, answer)
	}
}

// TestHTTP_BatchOver: the stream of a batch takes a call's questions and notifications only until the call is answered. A call
// that goes on after its answer may ask its client later, when the response to the batch has ended.
func TestHTTP_BatchOver(t *testing.T) {
	mcptest.NoLeaks(t)
	f, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	session := newWebClient(t, web, legacyEra).session
	for _, body := range []string{
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"initialize"}]`,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, sessionHeader: {session}}
		answered := httptest.NewRecorder()
		e := f.newExchange(answered, r)
		f.post(e)
		e.free()
		if e.send([]byte("{}")) {
			e.close()
			t.Errorf("%s: the ended response took a question: %s", body, answered.Body)
		}
	}
}

// TestHTTP_LargeBatch: mcpx answers all requests of a batch or, if the batch is too large, none. The session
// and other clients are not affected.
func TestHTTP_LargeBatch(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	session := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session, "Accept": "application/json, text/event-stream"}
	call := strings.TrimSpace(execLine("2", "fake", "echo", `{"text":"here"}`))
	const ping = `,{"jsonrpc":"2.0","id":1,"method":"ping"}`
	status, media, answer := post(t, web, "["+call+strings.Repeat(ping, 10_000)+"]", session)
	if status != 400 || !strings.HasPrefix(media, "text/plain") || !strings.Contains(answer, "a batch of more than 10000 messages") {
		t.Errorf("10,001 messages: %d %.200s", status, answer)
	}
	if n := len(fake.Log().Calls("echo")); n != 0 {
		t.Errorf("%d calls of a refused batch were executed", n)
	}
	other := map[string]string{"Mcp-Session-Id": newWebClient(t, web, legacyEra).session, "Accept": "application/json, text/event-stream"}
	for who, headers := range map[string]map[string]string{"the same client": session, "another client": other} {
		if status, _, answer := post(t, web, "["+call+strings.Repeat(ping, 9_999)+"]", headers); status != 200 || strings.Count(answer, `"jsonrpc"`) != 10_000 {
			t.Errorf("%s, 10,000 messages: %d, %d answers", who, status, strings.Count(answer, `"jsonrpc"`))
		}
	}
}
