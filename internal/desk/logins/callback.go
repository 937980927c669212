package logins

import (
	"context"
	"crypto/subtle"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"mcpx/internal/base/netguard"
)

// callback is a web server on 127.0.0.1. At the end of a login, the authorization server redirects the browser to it.
type callback struct {
	state, server string
	answers       chan url.Values
	once          sync.Once
	done          chan struct{} // closed by finish
	err           error         // set before done is closed
}

func newCallback(state, server string) *callback {
	return &callback{state: state, server: server, answers: make(chan url.Values, 1), done: make(chan struct{})}
}

// serve handles requests to the listener until stop is called. stop first lets the browser finish loading the last page.
func (c *callback) serve(listener net.Listener) (stop func()) {
	web := &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 2 * netguard.RequestTime, MaxHeaderBytes: 64 << 10}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(listener) }) // ends when stop is called
	return func() {
		c.finish(errors.New("the login was given up"))
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if web.Shutdown(ctx) != nil {
			_ = web.Close()
		}
		serving.Wait()
	}
}

// finish sets the outcome of the login, which the page in the browser then shows. Only the first call has an effect.
func (c *callback) finish(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
	})
}

// wait waits until the browser comes, or until the user has pasted the address to which the browser was sent. It returns the query
// of that address. If a pasted address is not the redirect of this login, wait calls again(reason), and waits for the next address.
// If again is nil or nothing more can be pasted, wait returns the reason as its error.
func (c *callback) wait(ctx context.Context, pasted <-chan string, again func(reason error)) (url.Values, error) {
	var refused error
	for {
		select {
		case answer := <-c.answers:
			return answer, nil
		case text, open := <-pasted:
			if !open && refused == nil {
				pasted = nil // the browser may still come
				continue
			}
			// A user may paste the address of the login page by mistake. It has the same state, but neither a code nor an error.
			u, err := url.Parse(text)
			if err == nil && c.ours(u.Query()) && (u.Query().Has("code") || u.Query().Has("error")) {
				return u.Query(), nil
			}
			refused = errors.New("that is not the redirect address of this login")
			if again == nil || !open {
				return nil, refused
			}
			again(refused)
		case <-ctx.Done():
			return nil, errors.New("the login was not completed: " + context.Cause(ctx).Error())
		}
	}
}

func (c *callback) ours(query url.Values) bool {
	return subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(c.state)) == 1
}

// ServeHTTP handles the redirect. Other web pages can send requests to this address too, so a request without the right
// state has no effect.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != callbackPath || !c.ours(query) {
		http.Error(w, "this is not the login that mcpx is waiting for", http.StatusBadRequest)
		return
	}
	select {
	case c.answers <- query:
	default: // the browser loaded the page twice
	}
	select {
	case <-c.done:
	case <-r.Context().Done():
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("Connection", "close")
	text := "mcpx is logged in to " + c.server + ". You can close this page."
	if c.err != nil {
		text = "mcpx could not log in to " + c.server + ": " + c.err.Error()
	}
	_, _ = io.WriteString(w, `<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>mcpx</title>`+
		`<p style="font:1.1em system-ui;margin:4em auto;max-width:32em">`+html.EscapeString(text))
}
