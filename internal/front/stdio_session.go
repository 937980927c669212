package front

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/wire"
)

// stdioSession is the one client of a stdio server, as mcp-go knows it.
type stdioSession struct {
	out     *wire.Writer
	deaf    chan struct{} // closed when a write has failed, after lost is set
	lost    error
	notes   chan mcp.JSONRPCNotification // what mcp-go sends: none belongs to a call
	calls   chan []byte                  // what belongs to calls; taken out only under writing
	queued  chan struct{}                // holds one: calls has some
	writing sync.Mutex                   // held over a write and the notes before it
	legacy  atomic.Bool                  // has sent initialize
	info    atomic.Pointer[mcp.Implementation]
	can     atomic.Pointer[mcp.ClientCapabilities]
	least   atomic.Value // mcp.LoggingLevel that was asked for; unset = none
}

var (
	_ server.SessionWithClientInfo = (*stdioSession)(nil)
	_ server.SessionWithLogging    = (*stdioSession)(nil)
)

// SessionID implements server.ClientSession.
func (s *stdioSession) SessionID() string { return "stdio" }

// NotificationChannel implements server.ClientSession.
func (s *stdioSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

// Initialize implements server.ClientSession. mcp-go calls it for discover too.
func (s *stdioSession) Initialize() {}

// Initialized implements server.ClientSession: it says who gets notifications
// unasked. A client of the modern era gets what it subscribes to, and from
// [Front.listen].
func (s *stdioSession) Initialized() bool { return s.legacy.Load() }

// GetClientInfo implements server.SessionWithClientInfo.
func (s *stdioSession) GetClientInfo() mcp.Implementation {
	if info := s.info.Load(); info != nil {
		return *info
	}
	return mcp.Implementation{}
}

// SetClientInfo implements server.SessionWithClientInfo.
func (s *stdioSession) SetClientInfo(info mcp.Implementation) { s.info.Store(&info) }

// GetClientCapabilities implements server.SessionWithClientInfo.
func (s *stdioSession) GetClientCapabilities() mcp.ClientCapabilities {
	if can := s.can.Load(); can != nil {
		return *can
	}
	return mcp.ClientCapabilities{}
}

// SetClientCapabilities implements server.SessionWithClientInfo.
func (s *stdioSession) SetClientCapabilities(can mcp.ClientCapabilities) { s.can.Store(&can) }

// SetLogLevel implements server.SessionWithLogging.
func (s *stdioSession) SetLogLevel(level mcp.LoggingLevel) { s.least.Store(level) }

// GetLogLevel implements server.SessionWithLogging.
func (s *stdioSession) GetLogLevel() mcp.LoggingLevel {
	level, _ := s.least.Load().(mcp.LoggingLevel)
	return level
}

// pump writes the notifications that are queued, until ctx ends.
func (s *stdioSession) pump(ctx context.Context) {
	for {
		select {
		case note := <-s.notes:
			s.write(wire.Encode(note))
		case <-s.queued:
			s.write(nil)
		case <-ctx.Done():
			return
		}
	}
}

// queue queues a message that may be lost if the client does not read.
func (s *stdioSession) queue(message []byte) bool {
	select {
	case s.calls <- message:
	default:
		return false
	}
	select {
	case s.queued <- struct{}{}:
	default:
	}
	return true
}

// write writes one message, or none, behind the calls' notes that are queued: what
// belongs to a request never comes after its answer.
func (s *stdioSession) write(message []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for {
		select {
		case note := <-s.calls:
			s.put(note)
			continue
		default:
		}
		if message != nil {
			s.put(message)
		}
		return
	}
}

// put writes under the lock. A write that fails is the last one.
func (s *stdioSession) put(message []byte) {
	if s.lost != nil {
		return
	}
	if s.lost = s.out.Write(message); s.lost != nil {
		close(s.deaf)
	}
}
