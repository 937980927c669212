package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// response reads what a server sends in answer to one POST.
type response struct {
	link *httpLink
	r    Outgoing
	// giveUp ends the HTTP request.
	giveUp context.CancelFunc
	// resumed means that the stream of the POST broke, and the messages come on another stream. On that stream faulty servers
	// also send messages for other requests.
	resumed bool
	// asking means that the request only tests whether the session exists, so a 404 does not end the link.
	asking bool

	// nameless is an error without an id, or with an id that mcpx never uses. It comes in the response to a POST, so it can only be
	// for this request, and the link may take it as the answer. named is an error with the id of another request. It is the answer
	// only if the HTTP status is an error too; otherwise noAnswer only quotes it.
	nameless, named *wire.Message
}

// If an error without a usable id has come, the link waits for strayPatience for an answer with the right id. Then it takes the
// error as the answer.
const strayPatience = time.Second

func mediaType(resp *http.Response) string {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return media
}

// read returns the response to the request. ctx bounds the time for resuming a stream that broke.
func (a *response) read(ctx context.Context, resp *http.Response) (wire.Message, error) {
	media := mediaType(resp)
	switch {
	case resp.StatusCode == http.StatusNotFound && a.link.session.Load() != nil:
		return a.notFound(ctx, resp)
	case media == "text/event-stream" && resp.StatusCode < 300:
		return a.streamed(ctx, resp)
	case media == "text/html" && resp.StatusCode < 300:
		return wire.Message{}, a.noMCP(resp)
	}
	return a.plain(resp)
}

// notFound reads a response with status 404. The 404 means that the session has ended, except in two cases:
//   - The server has evidently read the request: the body is a JSON-RPC answer that has the id of the request, or says that the method
//     is unknown. notFound returns this answer.
//   - The server answers 404 to a certain tool, in each session. That is so if it has refused the request in an earlier session, or the
//     tool in this one, and still accepts other requests. The session stays, and notFound returns the JSON-RPC error in the body, or
//     else the status as the error.
func (a *response) notFound(ctx context.Context, resp *http.Response) (wire.Message, error) {
	media := mediaType(resp)
	message, err := a.plain(resp)
	if media == "application/json" && err == nil {
		id, ours := wire.IntID(message.ID)
		if wire.RPCCode(message.Error) == wire.MethodNotFound || ours && id == a.r.ID {
			return message, nil
		}
	}
	if a.asking {
		return wire.Message{}, ErrGone
	}
	_, known := a.link.absent.Load(a.r.what())
	send := func(ask Outgoing) string { return a.link.refusedTo(ctx, ask) }
	if (known || a.r.Again) && refusesAll(a.r, resp.Status, send) == "" {
		a.link.absent.Store(a.r.what(), true)
		return message, err
	}
	a.link.life.Fail(ErrGone)
	return wire.Message{}, ErrGone
}

// plain reads an answer that is one JSON body; it ignores the content type. If the HTTP status is an error, only a JSON-RPC
// error is accepted as the answer, and with 401 and 429 not even that (see meantForUs).
func (a *response) plain(resp *http.Response) (wire.Message, error) {
	limit := a.link.dialer.MaxMessage
	failed, media := resp.StatusCode >= 300, mediaType(resp)
	if failed && media != "application/json" {
		limit = statusLimit
	}
	body, err := readLimited(resp.Body, limit, resp.ContentLength)
	if err != nil && !failed {
		return wire.Message{}, err
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	a.link.dialer.traced(true, body)
	answer, found := a.accept(body)
	switch {
	case found:
	case a.nameless != nil:
		answer, found = *a.nameless, true
	case a.named != nil && failed:
		answer, found = *a.named, true
	}
	if failed {
		if found && meantForUs(resp.StatusCode, answer.Error) {
			return answer, nil
		}
		return wire.Message{}, a.link.dialer.statusText(resp, body)
	}
	if found {
		return answer, nil
	}
	return wire.Message{}, a.noAnswer(resp, body)
}

// meantForUs reports whether the body of an HTTP error is a JSON-RPC error that says more than the status. Some
// frameworks answer {"error":"…"}, which is not JSON-RPC. For 401 and 429 it returns false, since the status alone
// says what to do.
func meantForUs(status int, raw json.RawMessage) bool {
	var e struct {
		Code json.Number `json:"code"`
	}
	return status != http.StatusUnauthorized && status != http.StatusTooManyRequests &&
		json.Unmarshal(raw, &e) == nil && e.Code != ""
}

// noAnswer returns the error for a successful response whose body does not answer the request.
func (a *response) noAnswer(resp *http.Response, body []byte) error {
	reason := "the answer is not a JSON-RPC response to the request"
	if resp.StatusCode != http.StatusOK {
		reason = "the server answered " + resp.Status + " and no JSON-RPC response to the request"
	}
	body = bytes.TrimSpace(body)
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case len(body) == 0:
		reason = "the server answered " + resp.Status + " without a body"
	case encoding != "":
		reason = fmt.Sprintf("the answer has the content encoding %q, which was not asked for", a.link.dialer.Secrets.Line(encoding, 40))
	case a.named != nil:
		reason += ", but an error for another id: " + a.link.dialer.Secrets.Line(wire.ReadRPCError(a.named.Error).Error(), 300)
	case mediaType(resp) != "" && mediaType(resp) != "application/json" && body[0] != '{' && body[0] != '[':
		return a.noMCP(resp)
	default:
		reason += ": " + a.link.dialer.Secrets.LineOf(body, shownRunes)
	}
	return &request.AnswerError{Reason: reason}
}

func (a *response) noMCP(resp *http.Response) error {
	return &request.AnswerError{Reason: fmt.Sprintf("the server answered %s with content type %q, which is not MCP; is the URL right?",
		resp.Status, a.link.dialer.Secrets.Line(mediaType(resp), 80))}
}

// accept looks for the answer in data, which is a message or a batch (2025-03-26). It passes the other messages of
// the server on to the session.
func (a *response) accept(data []byte) (answer wire.Message, found bool) {
	switch batch, err := wire.Batch(data); err {
	case nil:
		for _, one := range batch {
			if message, ok := a.accept(one); ok {
				answer, found = message, true
			}
		}
		return answer, found
	case wire.ErrLargeBatch:
		a.link.dialer.Logger.Warn("message skipped", "err", err)
		return wire.Message{}, false
	}
	message, err := wire.Parse(data)
	message = markEmpty(message)
	if err == nil && (message.Method != "" || message.IsResponse()) {
		a.link.life.beat()
	}
	switch {
	case err != nil:
	case message.Method != "":
		of := a.r.ID
		if a.resumed {
			of = 0
		}
		a.link.in(message, of)
	case message.IsResponse():
		id, ours := wire.IntID(message.ID)
		switch {
		case ours && id == a.r.ID:
			return message, true
		case message.Error == nil:
		case a.resumed: // a resumed stream may bring the answer to a request other than the one that opened it
		case !ours && a.nameless == nil:
			kept := message
			a.nameless = &kept
		case ours && a.named == nil:
			kept := message
			a.named = &kept
		}
	}
	return wire.Message{}, false
}

// streamed reads an event stream until the answer to the request. If the stream breaks before that, streamed resumes it where that
// is possible (see resumable).
func (a *response) streamed(ctx context.Context, resp *http.Response) (wire.Message, error) {
	reader := newEventReader(resp.Body, a.link.dialer.MaxMessage)
	answer, err := a.events(reader)
	if err == nil || !a.resumable(reader, err) {
		return answer, err
	}
	resp.Body.Close()
	return a.resume(ctx, reader, err)
}

// events reads one stream until it has the answer. The message in the field nameless, if there is one, counts as the answer when
// the stream ends, or strayPatience after that message came.
func (a *response) events(reader *eventReader) (wire.Message, error) {
	var timer *time.Timer
	for {
		ev, err := reader.next()
		if large, ok := errors.AsType[*wire.TooLargeError](err); ok {
			raw, asks := large.ID()
			if id, ours := wire.IntID(raw); asks || ours && id != a.r.ID {
				continue // it is not the answer to this request
			}
			return wire.Message{}, &request.TooLargeError{Limit: large.Limit}
		}
		switch {
		case err != nil && a.nameless != nil:
			return *a.nameless, nil
		case errors.Is(err, io.EOF):
			return wire.Message{}, errors.New("the stream ended before the answer")
		case err != nil:
			return wire.Message{}, err
		}
		a.link.dialer.traced(true, ev.data)
		if answer, found := a.accept(ev.data); found {
			return answer, nil
		}
		if a.nameless != nil && timer == nil {
			timer = time.AfterFunc(strayPatience, a.giveUp)
			defer timer.Stop()
		}
	}
}

// maxReserved bounds the memory, in bytes, that is reserved for a body before the body is read, however large its Content-Length
// is.
const maxReserved = 1 << 20

// readLimited reads a body of at most limit bytes. size is the Content-Length, -1 if unknown.
func readLimited(r io.Reader, limit, size int64) ([]byte, error) {
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(min(size, limit, maxReserved)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if n > limit {
		return nil, &request.TooLargeError{Limit: limit}
	}
	return buf.Bytes(), err
}
