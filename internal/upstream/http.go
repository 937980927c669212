package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/wire"
)

// httpLink speaks streamable HTTP: one POST a message, the answer as JSON or
// as server-sent events. It has no connection of its own to lose; it is done
// when the server forgets the session (404), or when it is closed.
type httpLink struct {
	spec   *Spec
	in     incoming
	url    string
	client *http.Client

	session atomic.Pointer[string] // Mcp-Session-Id, legacy only
	version atomic.Pointer[string] // MCP-Protocol-Version, once negotiated

	ctx       context.Context // ends with close; parent of the streams that listen
	cancel    context.CancelFunc
	calls     context.Context // ends when open calls are given up
	drop      context.CancelFunc
	streams   sync.WaitGroup
	ended     chan struct{}
	endOnce   sync.Once
	endCause  atomic.Pointer[error]
	closeOnce sync.Once
}

// goneGrace is how long the other calls on a session may go on after the server
// has said that it does not know it any more.
const goneGrace = 2 * time.Second

// newHTTPClient makes the client of one upstream. Redirects stay on the host
// and keep the method; others are refused, as they would carry the configured
// headers elsewhere.
func newHTTPClient(spec *Spec) *http.Client {
	transport := spec.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
			MaxIdleConns:          128,
			MaxIdleConnsPerHost:   128,
			IdleConnTimeout:       90 * time.Second,
			ForceAttemptHTTP2:     true,
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		first := via[0]
		if len(via) < 5 && next.Method == first.Method && next.URL.Hostname() == first.URL.Hostname() &&
			(next.URL.Host == first.URL.Host || next.URL.Scheme == "https") && next.URL.Scheme >= first.URL.Scheme {
			return nil
		}
		return http.ErrUseLastResponse
	}}
}

func newHTTPLink(spec *Spec, in incoming) *httpLink {
	l := &httpLink{spec: spec, in: in, url: spec.URL, client: newHTTPClient(spec), ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.calls, l.drop = context.WithCancel(context.Background())
	return l
}

func (l *httpLink) done() <-chan struct{} { return l.ended }

func (l *httpLink) cause() error {
	if err := l.endCause.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *httpLink) fail(err error) {
	l.endOnce.Do(func() {
		l.endCause.Store(&err)
		close(l.ended)
		if errors.Is(err, errGone) {
			// The other open calls hear the same from the server, and then know
			// that they were not executed.
			time.AfterFunc(goneGrace, l.drop)
			return
		}
		l.drop()
	})
}

// bound is ctx, ended with the link as well.
func (l *httpLink) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.calls, cancel)
	return ctx, func() { stop(); cancel() }
}

// over says why a request came to nothing: its caller is gone, the link ended,
// else err. That the link ended says nothing of whether this request was
// executed, so the cause is not passed on as an error that would.
func (l *httpLink) over(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.calls.Err() != nil:
		return errors.New(l.cause().Error())
	}
	return err
}

// post sends one message. sent is false if it surely did not reach the server.
func (l *httpLink) post(ctx context.Context, address string, message []byte, header http.Header) (resp *http.Response, sent bool, err error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(message))
	if err != nil {
		return nil, false, err
	}
	l.setHeaders(req, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err = l.client.Do(req)
	return resp, connected.Load(), err
}

func (l *httpLink) setHeaders(req *http.Request, header http.Header) {
	for name, values := range header {
		req.Header[name] = values
	}
	for name, value := range l.spec.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	if version := l.version.Load(); version != nil {
		req.Header.Set("Mcp-Protocol-Version", *version)
	}
	if session := l.session.Load(); session != nil {
		req.Header.Set("Mcp-Session-Id", *session)
	}
}

func (l *httpLink) request(parent context.Context, r request) (wire.Message, error) {
	ctx, cancel := l.bound(parent)
	defer cancel()
	resp, sent, err := l.post(ctx, l.url, r.message, r.header)
	if err != nil {
		err = l.over(parent, l.explain(err))
		if !sent {
			return wire.Message{}, fmt.Errorf("%w: %w", errNotSent, err)
		}
		return wire.Message{}, err
	}
	defer resp.Body.Close()
	message, err := l.answer(resp, r)
	if err != nil {
		return wire.Message{}, l.over(parent, err)
	}
	if err == nil && r.method == "initialize" && message.Error == nil {
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			l.session.Store(&id)
		}
	}
	return message, err
}

// explain shortens what net/http says to what the reader can act on.
func (l *httpLink) explain(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return errors.New(l.spec.clean(err.Error(), 300))
}

// answer reads the response to r out of an HTTP response.
func (l *httpLink) answer(resp *http.Response, r request) (wire.Message, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNotFound && l.session.Load() != nil:
		l.fail(errGone)
		return wire.Message{}, errGone
	case resp.StatusCode >= 300 && media != "application/json":
		return wire.Message{}, l.statusError(resp)
	case media == "text/event-stream":
		return l.streamed(resp, r)
	case media == "application/json" || media == "":
		return l.plain(resp, r)
	}
	return wire.Message{}, &AnswerError{Reason: fmt.Sprintf("the server answered %s with content type %q, which is not MCP; is the URL right?", resp.Status, l.spec.clean(media, 80))}
}

// plain reads an answer that is one JSON body. With an error status only a
// JSON-RPC error counts as one.
func (l *httpLink) plain(resp *http.Response, r request) (wire.Message, error) {
	body, err := readLimited(resp.Body, l.spec.MaxMessage, resp.ContentLength)
	if err != nil {
		return wire.Message{}, err
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	messages := []([]byte){body}
	if batch, ok := wire.Batch(body); ok {
		messages = messages[:0]
		for _, one := range batch {
			messages = append(messages, one)
		}
	}
	for _, data := range messages {
		message, err := wire.Parse(data)
		switch {
		case err != nil:
		case message.Method != "":
			l.in(message)
		case resp.StatusCode >= 300 && message.Error != nil && meantForUs(resp.StatusCode, message.Error):
			return message, nil
		case resp.StatusCode < 300 && message.IsResponse():
			if id, ok := ownID(message.ID); ok && id == r.id {
				return message, nil
			}
		}
	}
	if resp.StatusCode >= 300 {
		return wire.Message{}, l.statusText(resp, body)
	}
	return wire.Message{}, &AnswerError{Reason: "the answer is no JSON-RPC response to the request"}
}

// meantForUs reports whether the error member in the body of an HTTP error is
// JSON-RPC's, and says more than the status: frameworks answer {"error":"…"} too,
// and what to do about 401 and 429 is known.
func meantForUs(status int, raw json.RawMessage) bool {
	var e struct {
		Code json.Number `json:"code"`
	}
	return status != http.StatusUnauthorized && status != http.StatusTooManyRequests &&
		json.Unmarshal(raw, &e) == nil && e.Code != ""
}

// streamed reads the events of one response until the answer to r. What comes
// before it is for in; what comes after is not waited for.
func (l *httpLink) streamed(resp *http.Response, r request) (wire.Message, error) {
	if resp.StatusCode >= 300 {
		return wire.Message{}, l.statusError(resp)
	}
	reader := newEventReader(resp.Body, l.spec.MaxMessage)
	for {
		ev, err := reader.next()
		var large *wire.TooLargeError
		if errors.As(err, &large) {
			return wire.Message{}, &TooLargeError{Limit: large.Limit}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the stream ended before the answer")
			}
			return wire.Message{}, err
		}
		message, err := wire.Parse(ev.data)
		switch {
		case err != nil:
			l.spec.Logger.Debug("event that is no message skipped")
		case message.Method != "":
			l.in(message)
		case message.IsResponse():
			if id, ok := ownID(message.ID); ok && id == r.id {
				return message, nil
			}
		}
	}
}

// promised bounds the room that a body gets before a byte of it came.
const promised = 1 << 20

// readLimited reads a body of at most limit bytes; size is what the header
// promises, -1 if nothing.
func readLimited(r io.Reader, limit, size int64) ([]byte, error) {
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(min(size, limit, promised)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if n > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return buf.Bytes(), err
}

// statusError describes an answer with an error status.
func (l *httpLink) statusError(resp *http.Response) error {
	body, _ := readLimited(resp.Body, 8<<10, -1)
	return l.statusText(resp, body)
}

func (l *httpLink) statusText(resp *http.Response, body []byte) error {
	e := &statusError{code: resp.StatusCode, text: "the server answered " + resp.Status}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		target := "elsewhere"
		if to, err := resp.Location(); err == nil {
			target = to.Scheme + "://" + to.Host + to.Path
		}
		e.text += ", a redirect to " + l.spec.clean(target, 200) + " that is not followed; put the final address into url"
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		e.text += "; check the headers (token) of this server"
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		if wait := resp.Header.Get("Retry-After"); wait != "" {
			e.text += ", retry after " + l.spec.clean(wait, 40)
			e.retryAfter = parseRetryAfter(wait)
		}
	default:
		if hint := l.spec.clean(string(body[:min(len(body), cleanBytes)]), 160); hint != "" && !strings.HasPrefix(hint, "<") {
			e.text += ": " + hint
		}
	}
	return e
}

// statusError is an HTTP answer with an error status and no JSON-RPC body.
type statusError struct {
	code       int
	text       string
	retryAfter time.Duration
}

func (e *statusError) Error() string { return e.text }

// refused reports whether the request was surely not executed: it was sent
// elsewhere, or refused for what it is. A gateway's error says nothing of that.
func (e *statusError) refused() bool {
	return e.code >= 300 && e.code < 500 && e.code != http.StatusRequestTimeout
}

// passing reports an error that says nothing of whether a server offers a
// stream: it may a moment later.
func passing(err error) bool {
	var status *statusError
	if !errors.As(err, &status) {
		return true
	}
	switch status.code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status.code >= 500 && status.code != http.StatusNotImplemented
}

// The longest waits that a server can ask for: of what is told to a caller, and
// of what mcpx does by itself.
const (
	maxRetryAfter = 24 * time.Hour
	maxOwnWait    = 10 * time.Minute
)

// parseRetryAfter reads the value of a Retry-After header, seconds or a date; 0
// if it is neither, or past.
func parseRetryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(0, time.Until(at)), maxRetryAfter)
}

// retryAfterOf is how long mcpx waits before it tries again after err, where a
// server asked for that.
func retryAfterOf(err error) time.Duration {
	var status *statusError
	if !errors.As(err, &status) {
		return 0
	}
	return min(status.retryAfter, maxOwnWait)
}

func (l *httpLink) notify(ctx context.Context, message []byte) error {
	resp, _, err := l.post(ctx, l.url, message, nil)
	if err != nil {
		return l.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return l.statusError(resp)
	}
	drain(resp)
	return nil
}

// drain reads the rest of a short response, so that its connection can be used
// again. An event stream may have no end, also where nothing is to be answered.
func drain(resp *http.Response) {
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	}
}

func (l *httpLink) close() {
	l.closeOnce.Do(func() {
		l.fail(errors.New("closed"))
		l.cancel()
		l.streams.Wait()
		if session := l.session.Load(); session != nil && !errors.Is(l.cause(), errGone) {
			l.endSession()
		}
		l.client.CloseIdleConnections()
	})
}

// endSession tells a legacy server that the session is over, with the
// configured headers; it is best effort.
func (l *httpLink) endSession() {
	within := time.Second
	if d := time.Duration(l.spec.closeWithin.Load()); d > 0 {
		within = min(within, d/2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.url, nil)
	if err != nil {
		return
	}
	l.setHeaders(req, nil)
	if resp, err := l.client.Do(req); err == nil {
		resp.Body.Close()
	}
}
