package mcptest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestBytes_Noise(t *testing.T) {
	NoLeaks(t)
	c, log := piped(t, Spec{Noise: true, BOM: true, CRLF: true})
	for id := 1; id <= 20; id++ {
		c.call(id, "pid", `{}`)
		textOf(t, c.answer(fmt.Sprint(id)))
	}
	if len(log().Event(EventGarbage)) != 0 {
		t.Error("the fake misread its client")
	}
	in, out, _ := Spec{Noise: true, BOM: true, CRLF: true}.Pipe(t)
	go fmt.Fprintf(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`+"\n", initParams)
	r := bufio.NewReader(out)
	var got []string
	for range 3 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if got[0] != noise[0] || got[1] != noise[5] || !strings.HasPrefix(got[2], bom+"{") || !strings.HasSuffix(got[2], "}\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestBytes_Text(t *testing.T) {
	NoLeaks(t)
	c, _ := piped(t, Spec{InvalidUTF8: true})
	c.call(1, "echo", `{"text":"hi"}`)
	if r := c.answer("1"); utf8.ValidString(r.raw) || !strings.Contains(r.raw, "\"text\":\"\xff\xfehi\"") {
		t.Errorf("got %q", r.raw)
	}
	c, _ = piped(t, Spec{TruncateAnswers: true})
	c.call(1, "echo", `{"text":"hi"}`)
	if line := c.line(); !strings.HasPrefix(line, `{"jsonrpc"`) || strings.HasSuffix(line, "}") {
		t.Errorf("got %q", line)
	}
}

func TestBytes_OneByteWrites(t *testing.T) {
	NoLeaks(t)
	in, out, _ := Spec{OneByteWrites: true}.Pipe(t)
	go fmt.Fprintf(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`+"\n", initParams)
	buf := make([]byte, 100)
	for i := 0; ; i++ {
		n, err := out.Read(buf)
		if n != 1 || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		if buf[0] == '\n' {
			break
		}
	}
}

func TestBytes_Huge(t *testing.T) {
	NoLeaks(t)
	const size = 200 << 20
	in, out, _ := Spec{HugeLine: size}.Pipe(t)
	go func() {
		fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		fmt.Fprintln(in, callMessage(1, "big", `{}`))
	}()
	r := bufio.NewReaderSize(out, 64<<10)
	xs := 0
	for end := false; !end; {
		part, err := r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			t.Fatal(err)
		}
		xs += bytes.Count(part, []byte("x"))
		end = err == nil
	}
	if xs != size+2 { // two more are in "type":"text","text"
		t.Errorf("%d x, want %d", xs, size+2)
	}
	// A text of endless length is sent until the reader stops.
	go fmt.Fprintln(in, callMessage(2, "big", `{"bytes":-1}`))
	if _, err := io.CopyN(io.Discard, r, 8<<20); err != nil {
		t.Error(err)
	}
	out.Close()
}

func TestBytes_ContentLength(t *testing.T) {
	NoLeaks(t)
	for _, anyFraming := range []bool{false, true} {
		in, out, log := Spec{ContentLength: true, AnyFraming: anyFraming, BOM: false}.Pipe(t)
		msg := `{"jsonrpc":"2.0","id":0,"method":"server/discover"}`
		go func() {
			fmt.Fprintf(in, "%s\n", msg)
			fmt.Fprintf(in, "Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(msg), msg)
		}()
		want := 1
		if anyFraming {
			want = 2
		}
		r := bufio.NewReader(out)
		for range want {
			var n int
			if _, err := fmt.Fscanf(r, "Content-Length: %d\r\n", &n); err != nil {
				t.Fatal(err)
			}
			body := make([]byte, n+2)
			if _, err := io.ReadFull(r, body); err != nil || !strings.HasPrefix(string(body), "\r\n{") || !strings.HasSuffix(string(body), "}") {
				t.Fatalf("body %q, %v", body, err)
			}
		}
		if got := len(log().Event(EventGarbage)); got != 2-want {
			t.Errorf("%d times garbage, want %d", got, 2-want)
		}
	}
}

func TestIDs(t *testing.T) {
	NoLeaks(t)
	c, _ := piped(t, Spec{StringIDs: true})
	c.call(7, "pid", `{}`)
	if r := c.next(); string(r.ID) != `"7"` {
		t.Errorf("StringIDs: got %s", r.raw)
	}
	c, _ = piped(t, Spec{UnknownIDs: true})
	c.call(7, "pid", `{}`)
	var ids []string
	for range 4 {
		ids = append(ids, string(c.next().ID))
	}
	if got := strings.Join(ids, " "); got != `987654321 "nobody" null 7` {
		t.Errorf("UnknownIDs: got %s", got)
	}
	c, _ = piped(t, Spec{DuplicateAnswers: true})
	c.answer("0") // skips the second answer to initialize
	c.call(7, "echo", `{"text":"first"}`)
	if a, b := textOf(t, c.answer("7")), textOf(t, c.answer("7")); a != "first" || b != "second answer" {
		t.Errorf("DuplicateAnswers: got %q, %q", a, b)
	}
	c, _ = piped(t, Spec{AnswerBeforeRequest: true})
	c.list(7, `{}`)
	for _, id := range []string{"8", "9", "10"} {
		if r := c.next(); string(r.ID) != id || textOf(t, r) != "answered too early" {
			t.Errorf("AnswerBeforeRequest: got %s, want %s", r.raw, id)
		}
	}
	c.call(8, "pid", `{}`)
	if got := textOf(t, c.answer("8")); got == "answered too early" {
		t.Error("the real answer did not come")
	}
}

func TestProgress(t *testing.T) {
	NoLeaks(t)
	c, _ := piped(t, Spec{LateProgress: true})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":"tok"}}}`)
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1,"total":2,"message":"step 1"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":2,"total":2,"message":"step 2"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"did 2 steps"}]}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1e+06,"message":"step 1e+06"}}`,
	}
	for _, w := range want {
		if r := c.next(); r.raw != w {
			t.Errorf("got  %s\nwant %s", r.raw, w)
		}
	}
}

func TestStorms(t *testing.T) {
	NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		in, out, _ := Spec{ListChangedStorm: 1000, ProgressStorm: 500}.Pipe(t)
		c := newLineClient(t, in, out)
		c.handshake()
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"ms":1000},"_meta":{"progressToken":7}}}`)
		changes, progresses, after := 0, 0, false
		for !after {
			r := c.next()
			switch {
			case r.Method == "notifications/tools/list_changed":
				changes++
			case r.Method == "notifications/progress":
				progresses++
			default:
				after = string(r.ID) == "1"
			}
		}
		if changes < 990 || changes > 1010 || progresses < 490 || progresses > 510 {
			t.Errorf("%d list_changed and %d progress in a second, want 1000 and 500", changes, progresses)
		}
		// After the answer, the call sends no more notifications; list_changed notifications continue.
		deadline := time.After(time.Second)
		for more := true; more; {
			select {
			case line := <-c.lines:
				if strings.Contains(line, "progress") {
					t.Fatalf("after the answer: %s", line)
				}
			case <-deadline:
				more = false
			}
		}
		in.Close()
		for range c.lines {
		}
	})
}

func TestAsk(t *testing.T) {
	NoLeaks(t)
	c, _ := piped(t, Spec{})
	c.call(1, "ask", `{}`)
	r := c.next()
	if r.Method != "elicitation/create" || string(r.ID) != `"ask-1"` || !strings.Contains(string(r.Params), "Which word?") {
		t.Fatalf("got %s", r.raw)
	}
	c.send(`{"jsonrpc":"2.0","id":"ask-1","result":{"action":"accept","content":{"word":"w"}}}`)
	if got := textOf(t, c.answer("1")); got != `answered: {"action":"accept","content":{"word":"w"}}` {
		t.Errorf("got %s", got)
	}
	in, out, _ := Spec{}.Pipe(t)
	c = newLineClient(t, in, out)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`)
	c.answer("0")
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.call(1, "ask", `{}`)
	if r := c.answer("1"); !strings.Contains(r.raw, `"isError":true`) {
		t.Errorf("without the capability: %s", r.raw)
	}
}

// modern sends a request of the modern era over stdio.
func (c *lineClient) modern(id int, method, params string) {
	c.t.Helper()
	if params != "" {
		params += ","
	}
	c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, params, modernMeta)
}

func TestModern_Stdio(t *testing.T) {
	NoLeaks(t)
	in, out, log := Spec{Era: EraModern, Instructions: "I."}.Pipe(t)
	c := newLineClient(t, in, out)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`, initParams)
	if r := c.answer("0"); r.Error == nil || r.Error.Code != -32601 {
		t.Errorf("initialize: %s", r.raw)
	}
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if r := c.answer("1"); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("without _meta: %s", r.raw)
	}
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`)
	if r := c.answer("1"); r.Error == nil || r.Error.Code != -32022 || !strings.Contains(r.raw, `"supported":["2026-07-28"]`) {
		t.Errorf("unknown version: %s", r.raw)
	}
	c.modern(2, "server/discover", "")
	if r := c.answer("2"); !strings.HasPrefix(string(r.Result), `{"resultType":"complete","supportedVersions":["2026-07-28"]`) || !strings.Contains(r.raw, `"instructions":"I."`) {
		t.Errorf("discover: %s", r.raw)
	}
	c.modern(3, "tools/list", "")
	if r := c.answer("3"); !strings.Contains(r.raw, `"ttlMs":0,"cacheScope":"public"`) {
		t.Errorf("tools/list: %s", r.raw)
	}
	c.modern(4, "tools/call", `"name":"content"`)
	if r := c.answer("4"); string(r.Result) != `{"resultType":"complete",`+ContentResult[1:] {
		t.Errorf("content: %s", r.raw)
	}
	c.modern(5, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true}`)
	if r := c.next(); r.raw != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5},"notifications":{"toolsListChanged":true}}}` {
		t.Errorf("acknowledged: %s", r.raw)
	}
	WaitFor(t, "the subscription", patience, func() bool {
		c.modern(6, "tools/call", `"name":"notify"`)
		r := c.next()
		if r.Method == "" {
			return false
		}
		if r.raw != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}` {
			t.Errorf("list_changed: %s", r.raw)
		}
		c.answer("6")
		return true
	})
	c.modern(7, "tools/call", `"name":"ask"`)
	if r := c.answer("7"); !strings.HasPrefix(string(r.Result), `{"resultType":"input_required","inputRequests":{"word":{"method":"elicitation/create",`) {
		t.Errorf("ask: %s", r.raw)
	}
	c.modern(8, "tools/call", `"name":"ask","requestState":`+quote(askState)+`,"inputResponses":{"word":{"action":"accept"}}`)
	if got := textOf(t, c.answer("8")); got != `answered: {"word":{"action":"accept"}}` {
		t.Errorf("ask again: %s", got)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	WaitFor(t, "the end of the subscription", patience, func() bool { return len(log().Event(EventCancel)) == 1 })
}
