package front

import (
	"io"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/view"
)

// hearing is told of requests and of calls.
type hearing struct {
	heard []string
	hold  chan struct{} // Answered waits until it is closed; nil = it does not
}

func (*hearing) Relaying(*Operation) error                  { return nil }
func (*hearing) SessionEnded(*caller.Client, time.Duration) {}
func (h *hearing) call(r executor.Record)                   { h.heard = append(h.heard, r.Outcome) }
func (h *hearing) front(t *testing.T) shown {
	return connectTo(t, Options{Observer: h}, view.Options{}, executor.Options{Observers: []func(executor.Record){h.call}})
}

func (h *hearing) Answered(o *Operation) {
	if h.hold != nil && o.Method == "tools/call" {
		<-h.hold
	}
	h.heard = append(h.heard, o.Method)
}

// lastly is a ResponseWriter that keeps what happens after the answer.
type lastly struct {
	*httptest.ResponseRecorder
	after []func()
}

func (l *lastly) Afterwards(do func()) { l.after = append(l.after, do) }

// TestObserver_AfterAnswer: nobody who waits for an answer waits for the log too.
func TestObserver_AfterAnswer(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"none","tool_name":"x","arguments":{}}}}`
	var h hearing
	f := h.front(t)
	post := func(body string, headers ...string) *lastly {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := &lastly{ResponseRecorder: httptest.NewRecorder()}
		h.heard = nil
		f.ServeHTTP(w, r)
		return w
	}
	check := func(name string, w *lastly, before, after []string) {
		t.Helper()
		if body := w.Body.String(); !strings.Contains(body, `"id":5`) || !strings.Contains(body, executor.CodeServerNotFound) || w.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
			t.Errorf("%s: %v %s", name, w.Header(), body)
		}
		if !slices.Equal(h.heard, before) {
			t.Errorf("%s: before the answer: %q, want %q", name, h.heard, before)
		}
		for _, do := range w.after {
			do()
		}
		if !slices.Equal(h.heard, after) {
			t.Errorf("%s: at the end: %q, want %q", name, h.heard, after)
		}
	}
	session := post(strings.SplitN(hello("a"), "\n", 2)[0]).Header().Get("Mcp-Session-Id")
	both := []string{executor.CodeServerNotFound, "tools/call"}
	check("legacy", post(call, "Mcp-Session-Id", session), nil, both)
	// The call of a client that can be asked may end after the answer.
	check("modern", post(strings.Replace(modernCall("5", "x", "{}", ""), `"fake"`, `"none"`, 1),
		"Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", "exec"), both[:1], both)

	t.Run("stdio", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hearing{hold: make(chan struct{})}
			p := dial(t, h.front(t), "a")
			p.send(t, call+"\n")
			synctest.Wait()
			if p.with(`"id":5`) != 1 || !slices.Equal(h.heard, []string{"initialize", both[0]}) {
				t.Errorf("%q, heard %q", p.lines, h.heard)
			}
			close(h.hold)
			synctest.Wait()
			if !slices.Equal(h.heard[1:], both) {
				t.Errorf("heard %q", h.heard)
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
			if !slices.Equal(h.heard[1:], both) {
				t.Errorf("heard %q", h.heard)
			}
		})
	})
}
