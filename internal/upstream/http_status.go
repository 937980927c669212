package upstream

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// statusLimit is how much is read of a body that explains an error status.
const statusLimit = 8 << 10

// hintRunes is how much of it goes into a text.
const hintRunes = 200

// statusError describes an answer with an error status.
func (d *Dialer) statusError(resp *http.Response) error {
	body, _ := readLimited(resp.Body, statusLimit, -1)
	return d.statusText(resp, body)
}

func (d *Dialer) statusText(resp *http.Response, body []byte) error {
	e := &statusError{code: resp.StatusCode, text: "the server answered " + resp.Status}
	e.challenged = resp.Header.Get("Www-Authenticate") != ""
	e.hint = d.Secrets.LineOf(body, hintRunes)
	if strings.HasPrefix(e.hint, "<") {
		e.hint = ""
	}
	if wait := resp.Header.Get("Retry-After"); wait != "" && (e.code == http.StatusTooManyRequests || e.code == http.StatusServiceUnavailable) {
		e.text += ", retry after " + d.Secrets.Line(wait, 40)
		e.retryAfter = parseRetryAfter(wait)
	}
	switch {
	case e.code >= 300 && e.code < 400:
		target := "elsewhere"
		if to, err := resp.Location(); err == nil {
			target = to.Scheme + "://" + to.Host + to.Path
		}
		e.text += ", a redirect to " + d.Secrets.Line(target, 200) + " that is not followed; put the final address into url"
	case e.hint != "":
		e.text += ": " + e.hint
	}
	if e.code != http.StatusUnauthorized && e.code != http.StatusForbidden {
		return e
	}
	// RFC 9728: a server that has logins says where it describes them.
	hasLogins := e.code == http.StatusUnauthorized && strings.Contains(strings.Join(resp.Header.Values("Www-Authenticate"), " "), "resource_metadata")
	switch {
	case hasLogins && d.Remote.Authorize != nil:
		e.text = "needs mcpx login " + d.Name + " (" + e.text + ")"
	case hasLogins:
		e.text += "; renew the token in headers of this server, or remove it and try mcpx login " + d.Name
	default:
		e.text += "; check the headers (token) of this server"
	}
	return e
}

// statusError is an HTTP answer with an error status and no JSON-RPC body.
type statusError struct {
	code       int
	text       string
	hint       string // the beginning of a body that is no page for people
	challenged bool   // with WWW-Authenticate
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
	status, ok := errors.AsType[*statusError](err)
	if !ok {
		return true
	}
	switch status.code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status.code >= 500 && status.code != http.StatusNotImplemented
}

// The longest waits that a server can ask for: of callers, who read them in an error,
// and of mcpx itself.
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
	if status, ok := errors.AsType[*statusError](err); ok {
		return min(status.retryAfter, maxOwnWait)
	}
	return 0
}

// shownRunes is how much of a useless answer goes into a text.
const shownRunes = 100
