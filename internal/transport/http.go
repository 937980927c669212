package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/wire"
)

// httpLink speaks streamable HTTP: one POST for each message, with the answer as JSON or as server-sent events. For a legacy
// session, Listen also keeps a GET stream open. The link ends when the server has forgotten the session (404, or a refusal that
// means the same), or when it is closed.
type httpLink struct {
	life   *Lifecycle
	dialer *Dialer
	in     Incoming
	url    string
	client *http.Client

	session atomic.Pointer[string] // Mcp-Session-Id, legacy only
	refusal atomic.Pointer[string] // the server's error text that ended the session
	absent  sync.Map               // the requests (see what) for which a status 404 does not mean that the session has ended
	version atomic.Pointer[string] // MCP-Protocol-Version, once negotiated

	ctx       context.Context // for streams that belong to no call; ends with Close
	cancel    context.CancelFunc
	calls     context.Context // for open calls; ends when the link fails or, if it fails with ErrGone, goneGrace later
	drop      context.CancelFunc
	streams   sync.WaitGroup
	closeOnce sync.Once
}

// goneGrace is how long other open calls may go on after the server has refused one call because it does not know
// the session.
const goneGrace = 2 * time.Second

// idleTime returns how long an idle connection to a server is kept. mcpx must close the connection before the server does. If
// the server closes it while a request is under way, the request is lost, and mcpx does not repeat it, because the server may
// have executed it. Application servers (uvicorn, Node) close idle connections after 5 s, most proxies that end TLS after 60 s.
func idleTime(address string) time.Duration {
	if strings.HasPrefix(address, "https:") {
		return 50 * time.Second
	}
	return 4 * time.Second
}

// newHTTPClient makes the client for one upstream. It follows a redirect only to the same host, with the same method, and not
// from https to http: nobody else must get the configured headers.
func newHTTPClient(remote Remote) *http.Client {
	transport := remote.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
			MaxIdleConns:          128,
			MaxIdleConnsPerHost:   128,
			IdleConnTimeout:       idleTime(remote.URL),
			ForceAttemptHTTP2:     true,
		}
	}
	if remote.Authorize != nil {
		transport = remote.Authorize(transport)
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

func (l *httpLink) Traits() Traits {
	return Traits{ConnectionPerRequest: true, Headers: true, Sessionless: l.session.Load() == nil}
}

func (l *httpLink) Agreed(version string) { l.version.Store(&version) }

func (l *httpLink) Start(in Incoming) { l.in = in }

func newHTTPLink(d *Dialer) *httpLink {
	l := &httpLink{dialer: d, url: d.address, client: newHTTPClient(d.Remote)}
	l.life = newLifecycle(l.failed)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.calls, l.drop = context.WithCancel(context.Background())
	return l
}

func (l *httpLink) Life() *Lifecycle { return l.life }

func (l *httpLink) Evidence() *Evidence { return nil }

// failed ends the open calls after the link has failed with err.
func (l *httpLink) failed(err error) {
	if errors.Is(err, ErrGone) {
		// The server will refuse the other calls too. Until then they stay open, because each refusal says that the
		// call certainly was not executed.
		time.AfterFunc(goneGrace, l.drop)
		return
	}
	l.drop()
}

// bound returns a context that ends with ctx or with l.calls.
func (l *httpLink) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.calls, cancel)
	return ctx, func() { stop(); cancel() }
}

// reason returns why a request failed: because its caller gave up, because the link ended, or else err. If the link ended, the
// error has only the text of the cause. The cause itself may be ErrGone, which would wrongly say that this request was not
// executed.
func (l *httpLink) reason(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.calls.Err() != nil:
		return errors.New(l.life.Cause().Error())
	}
	return err
}

// failure returns the error of a POST that failed with err. sent is false if the message certainly did not reach the
// server.
func (l *httpLink) failure(ctx context.Context, err error, sent bool) error {
	if err = l.reason(ctx, l.explain(err)); !sent {
		return NotSent(err)
	}
	return err
}

// post sends one message. sent is false if the message certainly did not reach the server.
func (l *httpLink) post(
	ctx context.Context, address string, message []byte, header http.Header,
) (resp *http.Response, sent bool, err error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(message))
	if err != nil {
		return nil, false, err
	}
	l.dialer.traced(false, message)
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
	for name, value := range l.dialer.Remote.Headers {
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

func (l *httpLink) Request(parent context.Context, r Outgoing) (wire.Message, error) {
	ctx, cancel := l.bound(parent)
	defer cancel()
	resp, sent, err := l.post(ctx, l.url, r.Message, r.Header)
	if err != nil {
		return wire.Message{}, l.failure(parent, err, sent)
	}
	defer resp.Body.Close()
	message, err := (&response{link: l, r: r, giveUp: cancel}).read(ctx, resp)
	if text := refusal(message, err); text != "" && l.forgotten(parent, r, text) {
		return wire.Message{}, ErrGone
	}
	if err != nil {
		return wire.Message{}, l.reason(parent, err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && r.Method == "initialize" && message.Error == nil {
		l.session.Store(&id)
	}
	return message, nil
}

// explain returns the part of an error of net/http that helps the user, without secrets.
func (l *httpLink) explain(err error) error {
	if refused := unauthorized(err); refused != nil {
		return refused
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return errors.New(l.dialer.Secrets.Line(err.Error(), 300))
}

// unauthorized turns an error of [Remote.Authorize] into the error for the HTTP status 401; it returns nil for any
// other error.
func unauthorized(err error) error {
	type notSent interface {
		error
		NotSent() bool
	}
	if refused, ok := errors.AsType[notSent](err); ok && refused.NotSent() {
		return &StatusError{Code: http.StatusUnauthorized, Challenged: true, text: refused.Error()}
	}
	return nil
}

// bodyPatience bounds the time for reading a body whose content is not needed.
const bodyPatience = 100 * time.Millisecond

func (l *httpLink) Notify(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, _, err := l.post(ctx, l.url, message, nil)
	if err != nil {
		return l.explain(err)
	}
	if err = l.dismiss(resp, cancel); resp.StatusCode == http.StatusNotFound && l.session.Load() != nil {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// dismiss ends a response that does not contain an answer: the POST sent a notification, or the answer comes on a stream. It
// returns an error if the status is an error. Otherwise it reads the body, so that the connection can be reused, unless the body is
// an event stream. After bodyPatience, dismiss calls the func cancel, which ends the HTTP request and so the reading.
func (l *httpLink) dismiss(resp *http.Response, cancel context.CancelFunc) error {
	defer resp.Body.Close()
	timer := time.AfterFunc(bodyPatience, cancel)
	defer timer.Stop()
	if resp.StatusCode >= 300 {
		return l.dialer.statusError(resp)
	}
	if mediaType(resp) != "text/event-stream" {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	}
	return nil
}

func (l *httpLink) Close() {
	l.closeOnce.Do(func() {
		l.life.Fail(errors.New("closed"))
		l.cancel()
		l.streams.Wait()
		if session := l.session.Load(); session != nil && !errors.Is(l.life.Cause(), ErrGone) {
			l.endSession()
		}
		l.client.CloseIdleConnections()
	})
}
