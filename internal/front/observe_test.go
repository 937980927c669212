package front

import (
	"io"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// hearing observes events.
type hearing struct {
	hold chan struct{} // the end of a client's call waits until it is closed; nil = it does not

	mu    sync.Mutex
	heard []string
}

func (h *hearing) add(e *request.Event) {
	if h.hold != nil && e.Request && e.IsCall() {
		<-h.hold
	}
	of := "request "
	if !e.Request {
		of = "message "
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, of+e.Method+" "+e.Outcome)
}

// take returns what was heard, and forgets it.
func (h *hearing) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	heard := h.heard
	h.heard = nil
	return heard
}

func (h *hearing) journal() *request.Journal {
	journal := &request.Journal{}
	journal.Observe(h.add)
	return journal
}

func (h *hearing) front(t *testing.T, servers ...registry.Server) shown {
	return connectWith(t, Options{Journal: h.journal()}, view.Options{}, servers...)
}

// answered is a response over HTTP with the events of its requests.
type answered struct {
	*httptest.ResponseRecorder
	events []*request.Event
}

// TestEvents_AfterAnswer: nobody who waits for an answer waits for the log too.
func TestEvents_AfterAnswer(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"none","tool_name":"x","arguments":{}}}}`
	var h hearing
	f := h.front(t)
	post := func(body string, headers ...string) *answered {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.take()
		return &answered{w, f.Serve(w, r)}
	}
	check := func(name string, w *answered, before, after []string) {
		t.Helper()
		if body := w.Body.String(); !strings.Contains(body, `"id":5`) || !strings.Contains(body, executor.CodeServerNotFound) || w.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
			t.Errorf("%s: %v %s", name, w.Header(), body)
		}
		if heard := h.take(); !slices.Equal(heard, before) {
			t.Errorf("%s: before the answer: %q, want %q", name, heard, before)
		}
		f.ended(w.events...)
		if heard := h.take(); !slices.Equal(heard, after) {
			t.Errorf("%s: after it: %q, want %q", name, heard, after)
		}
	}
	session := post(strings.SplitN(hello("a"), "\n", 2)[0]).Header().Get("Mcp-Session-Id")
	whole := []string{"request tools/call " + executor.CodeServerNotFound}
	check("legacy", post(call, "Mcp-Session-Id", session), nil, whole)
	// The call of a client that can be asked may end after the answer, and is an event of its own.
	check("modern", post(strings.Replace(modernCall("5", "x", "{}", ""), `"fake"`, `"none"`, 1),
		"Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", "exec"),
		[]string{"message tools/call " + executor.CodeServerNotFound}, whole)

	t.Run("stdio", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hearing{hold: make(chan struct{})}
			p := dial(t, h.front(t), "a")
			p.send(t, call+"\n")
			synctest.Wait()
			if heard := h.take(); p.with(`"id":5`) != 1 || !slices.Equal(heard, []string{"request initialize RESULT"}) {
				t.Errorf("%q, heard %q", p.lines, heard)
			}
			close(h.hold)
			synctest.Wait()
			if heard := h.take(); !slices.Equal(heard, whole) {
				t.Errorf("heard %q", heard)
			}
		})
	})
	t.Run("end of stdin", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hearing{hold: make(chan struct{})}
			served := make(chan struct{})
			go func() { // ends with the input, below
				defer close(served)
				_ = h.front(t).ServeStdio(t.Context(), strings.NewReader(hello("a")+call+"\n"), io.Discard, StdioOptions{})
			}()
			time.Sleep(2 * lastAnswers)
			select {
			case <-served:
				t.Error("nobody waited for the observers")
			default:
			}
			close(h.hold)
			<-served
			if heard := h.take(); !slices.Equal(heard[1:], whole) {
				t.Errorf("heard %q", heard)
			}
		})
	})
}
