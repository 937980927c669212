package front

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

func listenLine(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `,` + modernMeta + `}}` + "\n"
}

func tagged(id string) string { return `"_meta":{"io.modelcontextprotocol/subscriptionId":` + id }

// TestListen_Stdio: all messages of a subscription have the id that the client chose. The first is the acknowledgement, the
// last is the result. After the client has cancelled the subscription, no message of it comes.
func TestListen_Stdio(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connect(t, view.Options{})
	p := dialSilent(t, f, StdioOptions{})
	p.send(t, listenLine(`"u1"`, `{"toolsListChanged":true,"promptsListChanged":true}`)+listenLine("2", `{"toolsListChanged":true}`)+listenLine("3", `{}`)+
		strings.Replace(listenLine("4", ""), `"notifications":,`, "", 1))
	mcptest.WaitFor(t, "the acknowledgements", patience, func() bool { return p.with("subscriptions/acknowledged") == 4 })
	if p.with(tagged(`"u1"`)+`},"notifications":{"toolsListChanged":true,"promptsListChanged":true}`) != 1 || p.with(tagged("3")+`},"notifications":{}`) != 1 {
		t.Errorf("acknowledged: %v", p.lines)
	}
	mcptest.WaitFor(t, "the end of what asks for nothing", patience, func() bool { return len(p.answers("3")) == 1 && len(p.answers("4")) == 1 })
	changed := func(id string) int { return p.with(`"notifications/tools/list_changed","params":{` + tagged(id)) }
	f.changes.announce(catalog.Tools)
	mcptest.WaitFor(t, "both to be told", patience, func() bool { return changed(`"u1"`) == 1 && changed("2") == 1 })
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"u1"}}`+"\n")
	mcptest.WaitFor(t, "the end of the first", patience, func() bool {
		f.changes.mu.Lock()
		defer f.changes.mu.Unlock()
		return len(f.changes.subscribers) == 2 // one is the session's
	})
	f.changes.announce(catalog.Tools)
	mcptest.WaitFor(t, "the other to be told", patience, func() bool { return changed("2") == 2 })
	if changed(`"u1"`) != 1 || len(p.answers(`"u1"`)) != 0 || p.with("list_changed") != 3 {
		t.Errorf("after the cancellation: %v", p.lines)
	}
	p.in.Close()
	mcptest.WaitFor(t, "the result at the end", patience, func() bool {
		return p.with(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete",`+tagged("2")) == 1
	})
}

// TestListen_Unasked: a modern client that has not subscribed gets no notifications of changes, whatever requests it sends.
func TestListen_Unasked(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connect(t, view.Options{})
	p := dialSilent(t, f, StdioOptions{})
	p.send(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`+"\n")
	mcptest.WaitFor(t, "discover", patience, func() bool { return len(p.answers("1")) == 1 })
	f.changes.announce(catalog.Tools)
	p.send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{`+modernMeta+`}}`+"\n")
	mcptest.WaitFor(t, "tools/list", patience, func() bool { return len(p.answers("2")) == 1 })
	if n := p.with("list_changed"); n != 0 {
		t.Errorf("%d notifications: %v", n, p.lines)
	}
}

// TestListen_HTTP: like TestListen_Stdio, but over HTTP, where the messages are events of one response.
func TestListen_HTTP(t *testing.T) {
	mcptest.NoLeaks(t)
	f, web := site(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", web.URL, strings.NewReader(listenLine(`"u1"`, `{"toolsListChanged":true}`)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": modernEra, "Mcp-Method": "subscriptions/listen",
	} {
		request.Header.Set(name, value)
	}
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %s, %v", response.Status, response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return "the end"
	}
	if got := next(); !strings.Contains(got, "subscriptions/acknowledged") || !strings.Contains(got, tagged(`"u1"`)) {
		t.Errorf("first %s", got)
	}
	f.changes.announce(catalog.Tools)
	if got := next(); !strings.Contains(got, "notifications/tools/list_changed") || !strings.Contains(got, tagged(`"u1"`)) {
		t.Errorf("then %s", got)
	}
}

// TestSessions: a missing or unknown session id is an error. When a session ends, its stream and its calls
// end, and each call gets an answer.
func TestSessions(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	c := newWebClient(t, web, legacyEra)
	for session, want := range map[string]int{"": 400, "nonsense": 404} {
		odd := *c
		odd.session = session
		for verb, method := range map[string]string{"GET": "", "DELETE": "", "POST": "tools/list"} {
			response, err := odd.send(t.Context(), verb, method, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s with session %q: %s", verb, session, response.Status)
			}
		}
	}
	stream, err := c.send(t.Context(), "GET", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	answer := make(chan webMessage, 1)
	go func() { // the goroutine ends with the answer
		got, err := c.exec(context.Background(), "1", "slow", `{"ms":3600000}`, "")
		m, idErr := answerOf(got, "1")
		if err != nil || idErr != nil {
			t.Errorf("got %+v, %v, %v", got, err, idErr)
		}
		answer <- m
	}()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) == 1 })
	response, err := c.send(t.Context(), "DELETE", "", "")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if m := <-answer; !strings.Contains(string(m.Error), "the session was ended") {
		t.Errorf("got %+v", m)
	}
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == 1 })
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() { // the stream ends
	}
}

// TestListen_Legacy: the streams of two sessions announce all changes, also those from before the stream was opened.
func TestListen_Legacy(t *testing.T) {
	mcptest.NoLeaks(t)
	f, web := site(t)
	one, other := newWebClient(t, web, legacyEra), newWebClient(t, web, legacyEra)
	f.changes.announce(catalog.Tools)
	for _, c := range []*webClient{one, other} {
		stream, err := c.send(t.Context(), "GET", "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		lines := bufio.NewScanner(stream.Body)
		for range 2 {
			for lines.Scan() && lines.Text() != `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
			}
			if lines.Err() != nil {
				t.Fatal(lines.Err())
			}
			f.changes.announce(catalog.Tools)
		}
	}
}

// TestFollow: follow calls alive at intervals while there are no changes, and returns when its context ends.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*keepAlive+time.Second)
		defer cancel()
		announced, alive := 0, 0
		changed := newPending()
		for range 2 { // two changes of one list are one notification
			changed.add(note{method: catalog.Tools.Changed()})
		}
		follow(ctx, changed, func(note) { announced++ }, func() { alive++ })
		if announced != 1 || alive != 3 {
			t.Errorf("announced %d times, alive %d times", announced, alive)
		}
	})
}

// TestListen_BothEras: when a server's tools change, the clients of both eras on one view are notified if they
// asked for it: a legacy client by its handshake, a modern client by its subscription. A client that did not
// ask is not notified. The same holds after a restart of the server.
func TestListen_BothEras(t *testing.T) {
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraBoth} {
		t.Run(era, func(t *testing.T) {
			mcptest.NoLeaks(t)
			fake := mcptest.Spec{Era: era}.HTTP(t)
			spec := upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}
			f := connect(t, view.Options{}, registry.Server{Spec: spec})
			legacy, asked, other := dialSilent(t, f, StdioOptions{}), dialSilent(t, f, StdioOptions{}), dialSilent(t, f, StdioOptions{})
			legacy.send(t, hello("legacy"))
			asked.send(t, listenLine("1", `{"toolsListChanged":true}`))
			other.send(t, listenLine("1", `{"promptsListChanged":true}`))
			for _, p := range []*pipe{asked, other} {
				mcptest.WaitFor(t, "the acknowledgement", patience, func() bool { return p.with("subscriptions/acknowledged") == 1 })
			}
			const changed = "notifications/tools/list_changed"
			for i, name := range []string{"first", "second"} {
				if i == 1 {
					fake.Restart()
				}
				before := []int{legacy.with(changed), asked.with(changed)}
				fake.SetTools(json.RawMessage(`[{"name":"` + name + `","inputSchema":{"type":"object"}}]`))
				mcptest.WaitFor(t, "both to be notified of the "+name+" change", patience, func() bool {
					fake.Notify(changed, `{}`) // repeated, as the stream from the server may open later
					return legacy.with(changed) > before[0] && asked.with(changed) > before[1]
				})
			}
			if n := other.with("list_changed"); n != 0 {
				t.Errorf("one that did not ask: %d notifications, %v", n, other.lines)
			}
		})
	}
}

// TestPending_Unknown: at most maxUnknown notifications with unknown methods are pending. Pending changes of resources do not count
// towards that limit.
func TestPending_Unknown(t *testing.T) {
	n := newPending()
	for i := range maxUnknown + 10 {
		n.add(note{method: "notifications/resources/updated", uri: strconv.Itoa(i)})
	}
	for range 2 {
		for i := range maxUnknown + 10 {
			n.add(note{method: "notifications/x", params: json.RawMessage(strconv.Itoa(i)), unknown: true})
		}
		unknown := 0
		for _, one := range n.take() {
			if one.unknown {
				unknown++
			}
		}
		if unknown != maxUnknown {
			t.Errorf("%d unknown notifications, want %d", unknown, maxUnknown)
		}
	}
}
