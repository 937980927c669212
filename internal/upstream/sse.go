package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"mcpx/internal/wire"
)

// sseLink speaks the HTTP+SSE transport of protocol 2024-11-05: answers come on
// one long GET stream, messages go out as POSTs to the address that the stream
// names first.
type sseLink struct {
	*mux
	http     *httpLink // for its client and its headers
	endpoint string
	cancel   context.CancelFunc
	reading  sync.WaitGroup
	once     sync.Once
}

// dialSSE opens the stream and waits for the endpoint event, within ctx.
func dialSSE(ctx context.Context, spec *Spec, in incoming) (*sseLink, error) {
	streamCtx, cancel := context.WithCancel(context.Background())
	l := &sseLink{mux: newMux(), http: newHTTPLink(spec, in), cancel: cancel}
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	fail := func(err error) (*sseLink, error) {
		cancel()
		l.http.close()
		if ctx.Err() != nil {
			err = fmt.Errorf("waiting for the event stream: %w", ctx.Err())
		}
		return nil, err
	}
	req, err := http.NewRequestWithContext(streamCtx, http.MethodGet, spec.URL, nil)
	if err != nil {
		return fail(err)
	}
	l.http.setHeaders(req, nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := l.http.client.Do(req)
	if err != nil {
		return fail(l.http.explain(err))
	}
	media := mediaType(resp)
	if resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return fail(fmt.Errorf("the server answered with content type %q, not with an event stream", spec.clean(media, 80)))
		}
		return fail(l.http.statusError(resp))
	}
	reader := newEventReader(resp.Body, spec.MaxMessage)
	if l.endpoint, err = endpointOf(reader, spec.URL); err != nil {
		resp.Body.Close()
		return fail(err)
	}
	l.reading.Add(1)
	// Ends with the stream; close cancels it and waits.
	go func() {
		defer l.reading.Done()
		defer resp.Body.Close()
		err := l.pump(reader, in)
		if !errors.Is(err, io.EOF) {
			err = fmt.Errorf("the event stream broke: %w", l.http.explain(err))
		} else {
			err = errors.New("the event stream ended")
		}
		l.fail(err)
		l.http.fail(errGone) // POSTs under way hear from the server whether they came too late
	}()
	return l, nil
}

// endpointOf reads the first event, which names the address for POSTs. It must
// be on the server's own origin: the configured headers go there.
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

func (l *sseLink) pump(reader *eventReader, in incoming) error {
	for {
		ev, err := reader.next()
		var large *wire.TooLargeError
		if errors.As(err, &large) {
			l.resolveLarge(large)
			continue
		}
		if err != nil {
			return err
		}
		if ev.name == "" || ev.name == "message" {
			l.deliver(ev.data, in)
		}
	}
}

func (l *sseLink) request(ctx context.Context, r request) (wire.Message, error) {
	ch, err := l.register(r)
	if err != nil {
		return wire.Message{}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if err := l.post(ctx, r.message); err != nil {
		return l.giveUp(r.id, ch, err)
	}
	return l.wait(ctx, r.id, ch)
}

func (l *sseLink) post(parent context.Context, message []byte) error {
	ctx, cancel := l.http.bound(parent)
	defer cancel()
	resp, sent, err := l.http.post(ctx, l.endpoint, message, nil)
	if err != nil {
		err = l.http.over(parent, l.http.explain(err))
		if !sent {
			return fmt.Errorf("%w: %w", errNotSent, err)
		}
		return err
	}
	err = l.http.dismiss(resp, cancel)
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest {
		l.fail(errors.New(err.Error())) // to the others, which may have run
	}
	return err
}

func (l *sseLink) notify(ctx context.Context, message []byte) error {
	l.noted()
	return l.post(ctx, message)
}

func (l *sseLink) close() {
	l.once.Do(func() {
		l.fail(errors.New("closed"))
		l.http.fail(errors.New("closed"))
		l.cancel()
		l.reading.Wait()
		l.http.close()
	})
}
