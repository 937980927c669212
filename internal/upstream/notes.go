package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/catalog"
	"mcpx/internal/wire"
)

// noteTime bounds the sending of a message that nobody waits for, notePatience
// how long the end of a session waits for those over HTTP.
const (
	noteTime     = 5 * time.Second
	notePatience = 300 * time.Millisecond
)

// note sends a message without an answer in the background. It ends with the
// message sent, after noteTime, or with close, which waits for it.
func (s *session) note(message []byte, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		done()
		return
	}
	s.notes.Go(func() {
		defer done()
		s.sendNote(message)
	})
}

func (s *session) sendNote(message []byte) {
	ctx, cancel := context.WithTimeout(s.noteCtx, noteTime)
	defer cancel()
	select {
	case <-s.dialled:
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	link := s.link
	s.mu.Unlock()
	if err := link.notify(ctx, message); err != nil {
		s.spec.Logger.Debug("sending a notification", "err", err)
	}
}

// cancelled tells the server to stop working on a request. Where the era says
// that the end of the stream is the cancellation, nothing is sent.
func (s *session) cancelled(id int64, reason string) {
	if s.modern && s.link.traits().connectionPerRequest {
		return
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%s}}`, id, wire.AppendQuoted(nil, reason))
	s.note(message, func() {})
}

// incoming takes what the server sends on its own, see the type incoming. It runs
// in a reader.
func (s *session) incoming(m wire.Message, of int64) {
	switch {
	case m.ID != nil:
		s.reply(m)
	case m.Method == "notifications/progress":
		s.progressed(m.Params)
	case m.Method == "notifications/message":
		s.logged(m.Params, of)
	case m.Method == "notifications/tools/list_changed":
		s.changes.tell(catalog.Tools)
	case m.Method == mcp.MethodNotificationSubscriptionsAcknowledged:
		if grants(m.Params) {
			s.changes.opened()
		} else {
			s.changes.over()
		}
	}
}

// grants reports whether a subscription that is acknowledged with these params
// tells of changes. What does not say what it grants is taken to grant it.
func grants(params json.RawMessage) bool {
	var p struct {
		Notifications *mcp.SubscriptionFilter `json:"notifications"`
	}
	return json.Unmarshal(params, &p) != nil || p.Notifications == nil || p.Notifications.ToolsListChanged
}

const (
	// maxID bounds the ids of a server's requests, which are sent back to it.
	maxID = 1 << 10
	// maxRepliers bounds the answers to a server's requests that are sent at once,
	// maxReplies those that wait: a server that has so many open does not read.
	maxRepliers = 16
	maxReplies  = 4096
)

// reply answers a request of the server: ping, else that mcpx does not do it.
// Answers beyond the bound are dropped: who asks so much and does not read waits
// for itself.
func (s *session) reply(m wire.Message) {
	if len(m.ID) > maxID {
		return
	}
	body := `"error":{"code":-32601,"message":"method not found"}`
	if m.Method == "ping" {
		body = `"result":{}`
	}
	message := []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + body + `}`)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.replies) >= maxReplies {
		return
	}
	s.replies = append(s.replies, message)
	if s.repliers < maxRepliers {
		s.repliers++
		s.notes.Go(s.sendReplies) // ends when none waits, or with close, which waits for it
	}
}

// sendReplies sends the answers that wait, until there are none or the session is
// closed.
func (s *session) sendReplies() {
	for {
		s.mu.Lock()
		if s.closed || len(s.replies) == 0 {
			s.replies = nil
			s.repliers--
			s.mu.Unlock()
			return
		}
		message := s.replies[0]
		s.replies = s.replies[1:]
		s.mu.Unlock()
		s.sendNote(message)
	}
}
