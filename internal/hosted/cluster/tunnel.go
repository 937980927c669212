package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"mcpx/internal/caller"
)

// kindHTTP is the kind of an HTTP request that is forwarded to another replica.
const kindHTTP = "http"

// forwarded is an HTTP request without its body. In the question, the body follows after a newline. The sending replica has checked
// the credential of the client.
type forwarded struct {
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Host   string      `json:"host"`
	Remote string      `json:"remote"`
	Header http.Header `json:"header"`
	// Who is the principal that sends the request; nil without authentication. Its credential is valid until Until.
	Who   *caller.Principal `json:"who,omitempty"`
	Until time.Time         `json:"until,omitzero"`
}

// answered is the head of an HTTP response. In the answer, the body follows after a newline, and in further pieces.
type answered struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

var errNoAnswer = errors.New("the other replica sent no HTTP response")

// Forward sends an HTTP request with this body to another replica, and copies its response to w as it arrives. If the context of r
// ends, the request also ends at the other replica. After an error the response is incomplete. The error wraps [errGone] if the
// replica has ended, and [state.ErrAway] if NATS cannot be reached.
func (c *Cluster) Forward(w http.ResponseWriter, r *http.Request, body []byte, to string) error {
	ctx := r.Context()
	head, err := json.Marshal(forwarded{
		r.Method, r.URL.RequestURI(), r.Host, r.RemoteAddr, r.Header, caller.From(ctx), caller.Until(ctx),
	})
	if err != nil {
		return err
	}
	begun := false
	flush := http.NewResponseController(w).Flush
	for piece, err := range c.Ask(ctx, to, kindHTTP, append(append(head, '\n'), body...)) {
		if err != nil {
			return err
		}
		if !begun {
			first, rest, _ := bytes.Cut(piece, []byte{'\n'})
			var a answered
			if json.Unmarshal(first, &a) != nil || a.Status < 200 || a.Status > 999 {
				return errNoAnswer
			}
			for name, values := range a.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(a.Status)
			begun, piece = true, rest
		}
		if len(piece) > 0 {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		if w.Header().Get("Content-Length") == "" { // a stream: without a length, each piece goes to the client at once
			_ = flush()
		}
	}
	if !begun {
		return errNoAnswer
	}
	return nil
}

// AnswerHTTP makes serve answer the requests that other replicas forward. The other replica has authenticated the client. Therefore
// serve finds the principal in the context of the request.
func (c *Cluster) AnswerHTTP(serve func(http.ResponseWriter, *http.Request)) {
	c.Answer(kindHTTP, func(ctx context.Context, _ string, data []byte, write func([]byte) error) error {
		head, body, _ := bytes.Cut(data, []byte{'\n'})
		var f forwarded
		if err := json.Unmarshal(head, &f); err != nil {
			return err
		}
		if f.Who != nil || !f.Until.IsZero() {
			ctx = caller.With(ctx, f.Who, f.Until)
		}
		r, err := http.NewRequestWithContext(ctx, f.Method, f.URL, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Host, r.RemoteAddr, r.RequestURI, r.ContentLength = f.Host, f.Remote, f.URL, int64(len(body))
		if r.Header = f.Header; f.Header == nil {
			r.Header = make(http.Header)
		}
		if len(body) == 0 {
			r.Body = http.NoBody
		} else {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		w := &responseWriter{header: make(http.Header), write: write}
		if err := c.served(serve, w, r); err != nil {
			return err
		}
		return w.FlushError()
	})
}

// served calls serve. If serve panics, served logs the panic and returns an error, so that only this request fails.
func (c *Cluster) served(serve func(http.ResponseWriter, *http.Request), w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if what := recover(); what != nil {
			c.log.Error("panic in a forwarded request", "panic", what, "stack", string(debug.Stack()))
			err = errors.New("internal error of the other replica")
		}
	}()
	serve(w, r)
	return nil
}

// responseWriter sends a response in pieces: at each Flush, when maxPiece bytes are queued, and at the end.
type responseWriter struct {
	header http.Header
	write  func([]byte) error
	begun  bool // WriteHeader was called
	queued []byte
	err    error
}

func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader queues the head of the response. Only the first call has an effect.
func (w *responseWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun = true
	head, err := json.Marshal(answered{status, w.header})
	if err != nil {
		w.err = err
	}
	w.queued = append(append(w.queued, head...), '\n')
}

// Write queues data. If maxPiece bytes are queued, it sends them, and waits while the other replica does not read.
func (w *responseWriter) Write(data []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	w.queued = append(w.queued, data...)
	if len(w.queued) >= maxPiece {
		return len(data), w.FlushError()
	}
	return len(data), w.err
}

// FlushError sends what is queued. [http.ResponseController] calls it.
func (w *responseWriter) FlushError() error {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.err == nil && len(w.queued) > 0 {
		w.err = w.write(w.queued)
		w.queued = w.queued[:0]
	}
	return w.err
}
