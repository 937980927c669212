package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/transport"
)

const (
	// noteTime bounds the sending of a message without an answer, notePatience how long
	// the end of a session waits for those over HTTP.
	noteTime     = 5 * time.Second
	notePatience = 300 * time.Millisecond
	// maxNotesOverHTTP bounds those under way at once: a server that has so many open
	// does not read.
	maxNotesOverHTTP = 256
)

// notes are the messages without an answer that are under way.
type notes struct {
	sending int // under the session's lock: those that goroutines send
	all     sync.WaitGroup
	ctx     context.Context
	end     context.CancelFunc
}

// note sends a message without an answer, and waits for nothing. Where that takes a
// request of HTTP, a goroutine sends it, which ends with the message sent, after
// noteTime, or with close, which waits for it. Beyond the bounds messages are dropped.
func (s *session) note(message []byte) {
	s.mu.Lock()
	link, drop := s.link, s.closed || s.notes.sending >= maxNotesOverHTTP
	background := !link.Traits().OneStream
	if background && !drop {
		s.notes.sending++
		s.notes.all.Go(func() {
			s.sendNote(link, message)
			s.mu.Lock()
			s.notes.sending--
			s.mu.Unlock()
		})
	}
	s.mu.Unlock()
	if !background && !drop {
		s.sendNote(link, message)
	}
}

// Notify sends a notification of a client to the server, if it has a session open in the
// legacy era: in the modern one clients send none. It does not wait.
func (u *Upstream) Notify(method string, params json.RawMessage) {
	s := u.current()
	if s == nil || s.Modern {
		return
	}
	message := wire.AppendQuoted([]byte(`{"jsonrpc":"2.0","method":`), method)
	if len(params) > 0 {
		message = append(append(message, `,"params":`...), params...)
	}
	s.note(flat(append(message, '}')))
}

func (s *session) sendNote(l transport.Link, message []byte) {
	ctx, cancel := context.WithTimeout(s.notes.ctx, noteTime)
	defer cancel()
	if err := l.Notify(ctx, message); err != nil {
		s.spec.Logger.Debug("sending a notification", "err", err)
	}
}

// cancelled tells the server to stop working on a request. Where the era says
// that the end of the stream is the cancellation, nothing is sent.
func (s *session) cancelled(id int64, reason string) {
	if s.Modern && s.link.Traits().ConnectionPerRequest {
		return
	}
	const format = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%s}}`
	s.note(fmt.Appendf(nil, format, id, wire.AppendQuoted(nil, reason)))
}
