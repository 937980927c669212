package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// changing is a streamable HTTP server that needs no network, so it works in fake time. It reports changes only on
// the streams that are open at that moment.
type changing struct {
	modern bool
	// opening is how long a stream takes to open, life how long it stays open; life 0 means that it stays open
	// without end.
	opening, life time.Duration
	// endless: the server answers notifications with an event stream that never ends.
	endless bool
	// listed is called after each answered tools/list, with the number of them so far.
	listed func(n int)

	mu      sync.Mutex
	tool    string // the name, or the JSON definition, of the server's only tool
	refuse  int    // if not 0, the HTTP status with which the next stream is refused
	lists   int
	opened  int
	streams []*io.PipeWriter
	headers []http.Header // the HTTP headers of the calls
}

// RoundTrip implements http.RoundTripper.
func (c *changing) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{"Content-Type": {"application/json"}}, Body: http.NoBody, Request: r}
	var m struct {
		ID     json.Number
		Method string
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
	}
	info := `{"supportedVersions":["2026-07-28"],"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}`
	var result string
	switch {
	case r.Method == http.MethodGet && !c.modern, m.Method == "subscriptions/listen" && c.modern:
		return c.stream(r, response)
	case m.Method == "server/discover" && c.modern, m.Method == "initialize" && !c.modern:
		result = info
	case m.Method == "tools/list":
		c.mu.Lock()
		result = c.toolList()
		c.lists++
		n := c.lists
		c.mu.Unlock()
		if c.listed != nil {
			c.listed(n)
		}
	case m.Method == "tools/call":
		c.mu.Lock()
		c.headers = append(c.headers, r.Header.Clone())
		c.mu.Unlock()
		result = `{"content":[{"type":"text","text":"called"}]}`
	case m.ID == "" && c.endless:
		stream, _ := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = stream.CloseWithError(context.Canceled) })
		response.Header.Set("Content-Type", "text/event-stream")
		response.Body = stream
		return response, nil
	case m.ID == "":
		response.StatusCode, response.Status = http.StatusAccepted, "202 Accepted"
		return response, nil
	default:
		response.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32601,"message":"no such method"}}`))
		return response, nil
	}
	response.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + result + `}`))
	return response, nil
}

func (c *changing) toolList() string {
	tool := c.tool
	if !strings.HasPrefix(tool, "{") {
		tool = fmt.Sprintf(`{"name":%q}`, tool)
	}
	return `{"tools":[` + tool + `]}`
}

func (c *changing) stream(r *http.Request, response *http.Response) (*http.Response, error) {
	timer := time.NewTimer(c.opening)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened++
	if c.refuse != 0 {
		response.StatusCode, response.Status = c.refuse, fmt.Sprintf("%d no", c.refuse)
		c.refuse = 0
		return response, nil
	}
	stream, events := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = stream.CloseWithError(context.Canceled) })
	if c.life > 0 {
		time.AfterFunc(c.life, func() { _ = events.Close() })
	}
	if c.modern {
		go say(events, "notifications/subscriptions/acknowledged") // the goroutine ends when the event has been read, or with the stream
	}
	c.streams = append(c.streams, events)
	response.Header.Set("Content-Type", "text/event-stream")
	response.Body = stream
	return response, nil
}

func say(events io.Writer, method string) {
	_, _ = io.WriteString(events, `data: {"jsonrpc":"2.0","method":"`+method+`"}`+"\n\n")
}

// change replaces the tool and reports that on the open streams. If broken is set, it closes the streams first, so
// that nothing is reported.
func (c *changing) change(tool string, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool = tool
	for _, events := range c.streams {
		if broken {
			_ = events.Close()
			continue
		}
		go say(events, "notifications/tools/list_changed") // the goroutine ends when the event has been read, or with the stream
	}
	if broken {
		c.streams = nil
	}
}

func (c *changing) counts() (lists, opened int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists, c.opened
}

func eachEra(t *testing.T, run func(t *testing.T, server *changing)) {
	t.Helper()
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { run(t, &changing{modern: modern, tool: "old"}) })
		})
	}
}

func (c *changing) spec() Spec {
	return Spec{Options: transport.Options{Name: "changing", Type: transport.HTTP, Remote: transport.Remote{URL: "http://nowhere.example/mcp", Transport: c}}}
}

func toolNames(u *Upstream) string {
	var names []string
	for _, tool := range u.Status().Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// TestChangeAfterFirstList: mcpx notices a change right after the first tools/list, whether the notification
// stream opens at once or late. Without a change mcpx does not list the tools twice.
func TestChangeAfterFirstList(t *testing.T) {
	for _, opening := range []time.Duration{0, 100 * time.Millisecond, 3 * time.Second} {
		eachEra(t, func(t *testing.T, server *changing) {
			server.opening = opening
			server.listed = func(n int) {
				if n == 1 {
					server.change("new", false)
				}
			}
			u := connect(t, server.spec())
			pause(10 * time.Second)
			if got := toolNames(u); got != "new" {
				t.Errorf("opening in %v: got %q", opening, got)
			}
			if lists, opened := server.counts(); lists != 2 || opened != 1 {
				t.Errorf("opening in %v: %d lists, %d streams", opening, lists, opened)
			}
		})
	}
	eachEra(t, func(t *testing.T, server *changing) {
		connect(t, server.spec())
		pause(time.Hour)
		if lists, opened := server.counts(); lists != 1 || opened != 1 {
			t.Errorf("%d lists, %d streams in a quiet hour", lists, opened)
		}
	})
}

// TestChangeWhileStreamIsBroken: mcpx finds a change made while the stream was broken as soon as the stream is
// open again. That holds even if the server refuses the new stream once, because it has not yet noticed that the
// old one broke.
func TestChangeWhileStreamIsBroken(t *testing.T) {
	for _, refuse := range []int{0, http.StatusConflict, http.StatusTooManyRequests, http.StatusForbidden} {
		eachEra(t, func(t *testing.T, server *changing) {
			u := connect(t, server.spec())
			pause(10 * time.Second)
			server.mu.Lock()
			server.refuse = refuse
			server.mu.Unlock()
			server.change("new", true)
			pause(10 * time.Second)
			if got := toolNames(u); got != "new" {
				t.Errorf("refused with %d: got %q", refuse, got)
			}
			if lists, _ := server.counts(); lists != 2 {
				t.Errorf("refused with %d: %d lists", refuse, lists)
			}
			server.change("newer", false)
			pause(2 * time.Second)
			if got := toolNames(u); got != "newer" {
				t.Errorf("refused with %d: got %q on the new stream", refuse, got)
			}
		})
	}
}

// TestStreamsThatEnd: if a server ends its streams again and again, mcpx does not send it a tools/list each time,
// but still finds changes soon.
func TestStreamsThatEnd(t *testing.T) {
	for _, life := range []time.Duration{time.Second, 70 * time.Second} {
		eachEra(t, func(t *testing.T, server *changing) {
			server.life = life
			u := connect(t, server.spec())
			pause(time.Minute)
			if lists, opened := server.counts(); opened < int(time.Minute/life)/12 || lists > 2 {
				t.Errorf("%d lists for %d streams of %v in a minute", lists, opened, life)
			}
			pause(time.Hour)
			if lists, opened := server.counts(); opened < 40 || lists > 62 {
				t.Errorf("%d lists for %d streams of %v in an hour", lists, opened, life)
			}
			server.change("new", true)
			pause(3 * time.Minute)
			if got := toolNames(u); got != "new" {
				t.Errorf("streams of %v: got %q", life, got)
			}
			if state := u.Status().State; state != catalog.Ready {
				t.Errorf("streams of %v: %s", life, state)
			}
		})
	}
}

// TestStreamNotOffered: if the server does not offer a stream, mcpx requests it only once, and does not wait for it.
func TestStreamNotOffered(t *testing.T) {
	for _, refuse := range []int{http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden} {
		eachEra(t, func(t *testing.T, server *changing) {
			server.refuse = refuse
			u := connect(t, server.spec())
			synctest.Wait()
			if state := u.Status().State; state != catalog.Ready {
				t.Errorf("%d: %s at once", refuse, state)
			}
			pause(time.Hour)
			if lists, opened := server.counts(); lists != 1 || opened != 1 {
				t.Errorf("%d: %d lists, %d streams", refuse, lists, opened)
			}
		})
	}
}

// TestSubscriptionAnsweredAtOnce: a server that answers a subscription with a result at once, or refuses it,
// offers no subscriptions. mcpx sends it one such request, and one tools/list.
func TestSubscriptionAnsweredAtOnce(t *testing.T) {
	for _, answer := range []string{
		`"result":{"resultType":"complete"}`, `"error":{"code":-32601,"message":"no"}`,
		// The server grants an empty subscription, with the messages in the order in which mcp-go sends them over
		// stdio.
		`"result":{"resultType":"complete"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}`,
	} {
		bubble(t, func(t *testing.T) {
			serve := scripted(map[string]string{
				"server/discover":      `"result":{"supportedVersions":["2026-07-28"]}`,
				"subscriptions/listen": answer,
				"tools/list":           `"result":{"tools":[]}`,
			})
			var mu sync.Mutex
			asked := map[string]int{}
			u := connect(t, serving(func(ctx context.Context, in io.Reader, out io.Writer) error {
				return serve(ctx, io.TeeReader(in, writerFunc(func(p []byte) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					for _, method := range []string{"subscriptions/listen", "tools/list"} {
						asked[method] += strings.Count(string(p), `"`+method+`"`)
					}
					return len(p), nil
				})), out)
			}))
			synctest.Wait()
			if state := u.Status().State; state != catalog.Ready {
				t.Errorf("%s: %s at once", answer, state)
			}
			pause(time.Hour)
			mu.Lock()
			defer mu.Unlock()
			if asked["subscriptions/listen"] != 1 || asked["tools/list"] != 1 {
				t.Errorf("%s: asked for %v", answer, asked)
			}
		})
	}
}

// TestSubscriptionComesFirst: also over a pipe, mcpx sends a modern server the subscription for changes before the
// tools/list, so that it misses no change between the two.
func TestSubscriptionComesFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{Era: mcptest.EraModern})
		connect(t, spec)
		synctest.Wait()
		var methods []string
		for _, entry := range all.all().Event(mcptest.EventMessage) {
			methods = append(methods, entry.Method)
		}
		if want := []string{"server/discover", "subscriptions/listen", "tools/list"}; !slices.Equal(methods, want) {
			t.Errorf("got %v, want %v", methods, want)
		}
	})
}

// TestParamHeadersOfSharedCatalogue: a session that does not read lists itself learns from the shared catalogue
// which arguments of a tool go into HTTP headers, also after a change of that catalogue.
func TestParamHeadersOfSharedCatalogue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tool := func(header string) string {
			return `{"name":"query","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"` + header + `"},"limit":{"type":"integer"}}}}`
		}
		server := &changing{modern: true, tool: tool("Region")}
		shared := connect(t, server.spec())
		spec := server.spec()
		spec.Catalogue.Shared = func() []catalog.Tool { return shared.Status().Tools }
		own := connect(t, spec)
		pause(time.Second)
		call := func(u *Upstream) http.Header {
			t.Helper()
			if got, err := text(u, "query", `{"region":"eu-1","limit":5}`); err != nil || got != "called" {
				t.Fatalf("got %q, %v", got, err)
			}
			server.mu.Lock()
			defer server.mu.Unlock()
			return server.headers[len(server.headers)-1]
		}
		for name, u := range map[string]*Upstream{"shared": shared, "own": own} {
			if got := call(u); got.Get("Mcp-Param-Region") != "eu-1" || got.Get("Mcp-Name") != "query" {
				t.Errorf("%s: got %v", name, got)
			}
		}
		server.change(tool("Zone"), false)
		pause(2 * time.Second)
		if got := call(own); got.Get("Mcp-Param-Zone") != "eu-1" || got.Get("Mcp-Param-Region") != "" {
			t.Errorf("after a change: got %v", got)
		}
		server.change(`{"name":"query"}`, false)
		pause(2 * time.Second)
		if got := call(own); got.Get("Mcp-Param-Zone") != "" {
			t.Errorf("after another change: got %v", got)
		}
		if lists, opened := server.counts(); lists != 3 || opened != 1 {
			t.Errorf("%d lists, %d streams, want those of the shared session", lists, opened)
		}
	})
}
