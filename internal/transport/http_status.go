package transport

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// statusLimit is how many bytes of the body of one error response are read at most.
const statusLimit = 8 << 10

// hintRunes bounds how much of an error's body is quoted, in runes. shownRunes bounds how much of an invalid answer or of a line
// that is not a message is quoted, in runes.
const (
	hintRunes  = 200
	shownRunes = 100
)

// statusError returns the [StatusError] for a response with an error status. It reads the beginning of the body.
func (d *Dialer) statusError(resp *http.Response) error {
	body, _ := readLimited(resp.Body, statusLimit, -1)
	return d.statusText(resp, body)
}

func (d *Dialer) statusText(resp *http.Response, body []byte) error {
	e := &StatusError{Code: resp.StatusCode, text: "the server answered " + resp.Status}
	e.Challenged = resp.Header.Get("Www-Authenticate") != ""
	e.hint = d.Secrets.LineOf(body, hintRunes)
	if strings.HasPrefix(e.hint, "<") {
		e.hint = ""
	}
	mayWait := e.Code == http.StatusTooManyRequests || e.Code == http.StatusServiceUnavailable
	if wait := resp.Header.Get("Retry-After"); wait != "" && mayWait {
		e.text += ", retry after " + d.Secrets.Line(wait, 40)
		e.RetryAfter = parseRetryAfter(wait)
	}
	switch {
	case e.Code >= 300 && e.Code < 400:
		target := "elsewhere"
		if to, err := resp.Location(); err == nil {
			target = to.Scheme + "://" + to.Host + to.Path
		}
		e.text += ", a redirect to " + d.Secrets.Line(target, 200) + " that is not followed; put the final address into url"
	case e.hint != "":
		e.text += ": " + e.hint
	}
	if e.Code != http.StatusUnauthorized && e.Code != http.StatusForbidden {
		return e
	}
	// RFC 9728: a server that offers OAuth names its metadata in the challenge.
	challenges := strings.Join(resp.Header.Values("Www-Authenticate"), " ")
	hasLogins := e.Code == http.StatusUnauthorized && strings.Contains(challenges, "resource_metadata")
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

// StatusError is an HTTP response with an error status whose body is not taken as the JSON-RPC answer. It also stands for a
// request that was not sent because [Remote.Authorize] had no credentials for it; the code is then 401.
type StatusError struct {
	Code       int
	Challenged bool          // the response has a WWW-Authenticate header
	RetryAfter time.Duration // with 429 and 503; 0 if the server named none
	text       string
	hint       string // the beginning of the body; empty if the body is HTML
}

func (e *StatusError) Error() string { return e.text }

// Refused reports whether the server certainly did not execute the request, because it redirected or rejected the request. With
// the status 408 or 5xx that is not certain.
func (e *StatusError) Refused() bool {
	return e.Code >= 300 && e.Code < 500 && e.Code != http.StatusRequestTimeout
}

// Passing reports whether a failure to open a stream may be temporary. The parameter err is the error of the failed
// attempt. If the failure is not temporary, the server does not offer the stream.
func Passing(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	if !ok {
		return true
	}
	switch status.Code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status.Code >= 500 && status.Code != http.StatusNotImplemented
}

// maxRetryAfter bounds the pause that mcpx reports to a caller. maxOwnWait bounds the pause for which mcpx itself
// waits.
const (
	maxRetryAfter = 24 * time.Hour
	maxOwnWait    = 10 * time.Minute
)

// parseRetryAfter reads a Retry-After header, which is seconds or a date. It returns 0 if the header is invalid or
// the date is past.
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

// RetryAfterOf returns how long mcpx itself must wait after err, because the server requested a pause; 0 if it requested none.
func RetryAfterOf(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return min(status.RetryAfter, maxOwnWait)
	}
	return 0
}
