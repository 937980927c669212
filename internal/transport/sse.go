package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
)

// sseLink speaks the HTTP+SSE transport of 2024-11-05: answers come on one long GET stream, and messages are sent
// as POSTs to the address that the first event names.
type sseLink struct {
	*mux
	http     *httpLink // used for its HTTP client and its headers
	endpoint string
	stream   io.ReadCloser
	events   *eventReader // reads the field stream
	cancel   context.CancelFunc
	reading  sync.WaitGroup
	once     sync.Once
}

// DialSSE connects with the transport of 2024-11-05: it opens the stream and waits for the endpoint event, within ctx.
func (d *Dialer) DialSSE(ctx context.Context) (Link, error) {
	streamCtx, cancel := context.WithCancel(context.Background())
	l := &sseLink{mux: newMux(d.Logger), http: newHTTPLink(d), cancel: cancel}
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	fail := func(err error) (Link, error) {
		cancel()
		l.http.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("waiting for the event stream: %w", ctx.Err())
		}
		return nil, err
	}
	resp, err := l.http.get(streamCtx, nil)
	if err != nil {
		return fail(l.http.explain(err))
	}
	l.stream, l.events = resp.Body, newEventReader(resp.Body, d.MaxMessage)
	switch media := mediaType(resp); {
	case resp.StatusCode != http.StatusOK:
		err = d.statusError(resp)
	case media != "text/event-stream":
		err = fmt.Errorf("the server answered with content type %q, not with an event stream", d.Secrets.Line(media, 80))
	default:
		l.endpoint, err = endpointOf(l.events, d.address)
	}
	if err != nil {
		resp.Body.Close()
		return fail(err)
	}
	return l, nil
}

// Start reads the stream until it ends; Close ends the stream and waits for that.
func (l *sseLink) Start(in Incoming) {
	l.http.Start(in)
	l.reading.Go(func() {
		defer l.stream.Close()
		if err := l.pump(in); errors.Is(err, io.EOF) {
			l.life.Fail(errors.New("the event stream ended"))
		} else {
			l.life.Fail(fmt.Errorf("the event stream broke: %w", l.http.explain(err)))
		}
		l.http.life.Fail(ErrGone) // because of ErrGone, open POSTs may go on for the time goneGrace: the server still answers them
	})
}

// endpointOf reads the endpoint event, which names the address for POSTs. The address must have the same origin as
// the server, since the configured headers are sent there.
func endpointOf(reader *eventReader, base string) (string, error) {
	for {
		ev, err := reader.next()
		if err != nil {
			return "", fmt.Errorf("waiting for the endpoint event: %w", err)
		}
		if ev.name != "endpoint" {
			continue
		}
		from, err := url.Parse(base)
		if err != nil {
			return "", err
		}
		to, err := from.Parse(string(bytes.TrimSpace(ev.data)))
		if err != nil {
			return "", fmt.Errorf("reading the endpoint event: %w", err)
		}
		if to.Scheme != from.Scheme || to.Host != from.Host {
			return "", errors.New("the server names an endpoint on another host")
		}
		return to.String(), nil
	}
}

func (l *sseLink) pump(in Incoming) error {
	for {
		ev, err := l.events.next()
		if large, ok := errors.AsType[*wire.TooLargeError](err); ok {
			l.resolveLarge(large)
			continue
		}
		if err != nil {
			return err
		}
		if ev.name == "" || ev.name == "message" {
			l.http.dialer.traced(true, ev.data)
			l.deliver(ev.data, in)
		}
	}
}

func (l *sseLink) Request(ctx context.Context, r Outgoing) (wire.Message, error) {
	p, _, err := l.register(r)
	if err != nil {
		return wire.Message{}, err
	}
	refused, err := l.post(ctx, r)
	switch {
	case err == nil && refused.Error == nil:
		return l.wait(ctx, p)
	case l.forgotten(ctx, r, refused, err):
		return l.giveUp(p, ErrGone)
	case err != nil:
		l.settle(ctx, err)
		return l.giveUp(p, err)
	}
	_, _ = l.giveUp(p, nil)
	return refused, nil
}

func (l *sseLink) Traits() Traits { return Traits{LegacyOnly: true} }

// endPatience bounds how long a caller waits for the end of the stream after a broken POST.
const endPatience = 500 * time.Millisecond

// settle waits for the end of the stream after a broken POST. Usually the server is gone then, and a call that is
// repeated at once must not use the same session.
func (l *sseLink) settle(ctx context.Context, err error) {
	if _, refused := errors.AsType[*StatusError](err); !refused && !errors.Is(err, ErrNotSent) {
		delay.Until(ctx, endPatience, l.life.Done(), nil)
	}
}

// refusalPatience bounds the time for reading the body of a refused POST.
const refusalPatience = time.Second

// post sends one message. refused is a JSON-RPC error in the body of the response, although such an error should
// come on the stream. For any other refusal, err is a [StatusError].
func (l *sseLink) post(parent context.Context, r Outgoing) (refused wire.Message, err error) {
	ctx, cancel := l.http.bound(parent)
	defer cancel()
	resp, sent, err := l.http.post(ctx, l.endpoint, r.Message, nil)
	if err != nil {
		return wire.Message{}, l.http.failure(parent, err, sent)
	}
	if resp.StatusCode < 300 {
		return wire.Message{}, l.http.dismiss(resp, cancel)
	}
	defer resp.Body.Close()
	defer time.AfterFunc(refusalPatience, cancel).Stop()
	return (&response{link: l.http, r: r}).plain(resp)
}

// forgotten reports whether the server refused r because it has forgotten the session. To find out, it sends test requests. If
// the server refuses them too, the link ends, with a cause other than ErrGone, because other open requests may have been executed.
// But if the server refuses the test requests with another text, forgotten returns false, because the server may have executed r
// before it forgot the session.
func (l *sseLink) forgotten(ctx context.Context, r Outgoing, refused wire.Message, err error) bool {
	text := sessionRefusal(refused, err)
	if text == "" || r.Method == "initialize" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	refusal := refusesAll(r, text, func(ask Outgoing) string { return sessionRefusal(l.post(ctx, ask)) })
	if refusal == "" {
		return false
	}
	l.life.Fail(errors.New("the server does not know the session any more: " + l.http.dialer.Secrets.Line(refusal, 200)))
	return SameWords(refusal, text)
}

// sessionRefusal returns the text of a refusal that can mean that the server does not know the session, otherwise
// "".
func sessionRefusal(refused wire.Message, err error) string {
	status, ok := errors.AsType[*StatusError](err)
	if ok && status.Code == http.StatusNotFound {
		return status.text
	}
	if ok && status.Refused() || err == nil && refused.Error != nil {
		return refusal(refused, err)
	}
	return ""
}

func (l *sseLink) Notify(ctx context.Context, message []byte) error {
	refused, err := l.post(ctx, Outgoing{Message: message})
	if err == nil && refused.Error != nil {
		err = wire.ReadRPCError(refused.Error)
	}
	return err
}

func (l *sseLink) Close() {
	l.once.Do(func() {
		l.life.Fail(errors.New("closed"))
		l.http.life.Fail(errors.New("closed"))
		l.cancel()
		l.reading.Wait()
		l.http.Close()
	})
}
