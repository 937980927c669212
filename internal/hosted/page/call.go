package page

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// linesType is the media type of answers that have one JSON value in each line.
const linesType = "application/x-ndjson"

// answered is the response for a call that has ended.
type answered struct {
	found
	Error        bool  `json:"error"`
	Milliseconds int64 `json:"milliseconds"`
}

// call runs a tool for the viewer, until the tool ends or the viewer disconnects. If the call needs consent, it does not run, and
// the response is a question. After the viewer has agreed, the page repeats the call, with this question in the member Confirmed.
func (p *Page) call(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Server, Tool string
		Arguments    json.RawMessage
		Confirmed    string
	}
	if !Read(w, r, maxArguments, &body) {
		return
	}
	writing := http.NewResponseController(w)
	_ = writing.SetWriteDeadline(time.Time{}) // no write deadline: the executor limits how long a call takes
	lines := &lineWriter{w: w}
	var sink request.Sink
	if strings.Contains(r.Header.Get("Accept"), linesType) {
		w.Header().Set("Content-Type", linesType)
		w.Header().Set("X-Accel-Buffering", "no")
		_ = writing.Flush()
		lines.follow()
		defer lines.end()
		sink.Progress = lines.progress
	}
	c, question := p.client(r.Context()), ""
	defer p.View.Attach(c, view.Attachment{})()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	began := time.Now()
	result, err := p.Executor.Exec(ctx, executor.Request{
		From:   request.From{Client: c, Sink: sink},
		Server: body.Server, Tool: body.Tool, Arguments: body.Arguments,
		Consent: request.Consent{Ask: func(text string) bool {
			if text != body.Confirmed {
				question = text
				cancel() // not a refusal: the page repeats the call if the viewer agrees
				return false
			}
			return true
		}},
	})
	var out any
	switch {
	case question != "":
		out = map[string]string{"confirm": question}
	case err != nil:
		return // the viewer has disconnected
	default:
		out = answered{said(result), result.IsError, time.Since(began).Milliseconds()}
	}
	if sink.Progress != nil {
		lines.last(map[string]any{"result": out})
		return
	}
	_ = writing.SetWriteDeadline(time.Now().Add(writeWithin))
	httpd.WriteJSON(w, http.StatusOK, out)
}

// lineWriter writes the progress of a call, and then its result, one JSON value in each line. If the viewer reads slowly, it leaves
// out all progress except the newest.
type lineWriter struct {
	w      http.ResponseWriter
	mu     sync.Mutex
	newest json.RawMessage
	more   chan struct{}
	done   chan struct{}
	all    sync.WaitGroup
}

// follow starts the goroutine that writes progress. The goroutine ends when last or end is called.
func (l *lineWriter) follow() {
	l.more, l.done = make(chan struct{}, 1), make(chan struct{})
	l.all.Go(func() {
		for {
			select {
			case <-l.more:
				l.mu.Lock()
				params := l.newest
				l.mu.Unlock()
				l.write(map[string]any{"progress": params})
			case <-l.done:
				return
			}
		}
	})
}

// end ends the goroutine of follow. It may be called again.
func (l *lineWriter) end() {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	l.all.Wait()
}

// progress hands the params of a progress notification to the goroutine of follow. It does not block.
func (l *lineWriter) progress(params json.RawMessage) {
	shown := map[string]json.RawMessage{}
	for _, name := range []string{"progress", "total", "message"} {
		if value := wire.Member(params, name); value != nil {
			shown[name] = value
		}
	}
	l.mu.Lock()
	l.newest = wire.Encode(shown)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *lineWriter) last(value any) {
	l.end()
	l.write(value)
}

func (l *lineWriter) write(value any) {
	writing := http.NewResponseController(l.w)
	_ = writing.SetWriteDeadline(time.Now().Add(writeWithin))
	_ = json.NewEncoder(l.w).Encode(value) // an error means that the viewer has disconnected
	_ = writing.Flush()
	_ = writing.SetWriteDeadline(time.Time{})
}
