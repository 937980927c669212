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
	// noteTime bounds the sending of one notification or answer, and the requests that set the log level or unsubscribe.
	// notePatience bounds how long the end of a session waits for notifications and answers that are still being sent over
	// HTTP.
	noteTime     = 5 * time.Second
	notePatience = 300 * time.Millisecond
	// maxNotesOverHTTP bounds how many notifications and answers are being sent over HTTP at once. If there are so many, the server
	// is too slow to accept them, and mcpx drops further ones.
	maxNotesOverHTTP = 256
)

// notes keeps track of the messages that are being sent and get no response: notifications and answers. The field all also counts
// the goroutines of setLevel.
type notes struct {
	sending int // how many goroutines are sending; the session's lock guards it
	all     sync.WaitGroup
	ctx     context.Context
	end     context.CancelFunc
}

// note sends a message that has no response, without waiting. It drops the message if the session is closed, or if too many such
// messages are being sent. Over HTTP a goroutine sends the message. The goroutine ends after noteTime at the latest, or with
// session.close, which waits for it.
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

// Notify sends a client's notification to the server, without waiting. It drops the notification if no session is open, or
// if the session is modern, because modern clients send no notifications.
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

// cancelled sends notifications/cancelled, except in a modern session over HTTP, where closing the connection of the request
// cancels it.
func (s *session) cancelled(id int64, reason string) {
	if s.Modern && s.link.Traits().ConnectionPerRequest {
		return
	}
	const format = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%s}}`
	s.note(fmt.Appendf(nil, format, id, wire.AppendQuoted(nil, reason)))
}
