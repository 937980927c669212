package transport

import (
	"sync/atomic"

	"mcpx/internal/base/wire"
)

// heard is the framing in which a server of stdio has spoken, in any of its
// lives. The zero value says that it has not. Safe for concurrent use.
type heard struct{ framing atomic.Int32 } // 1 + the framing

func (h *heard) set(f wire.Framing) { h.framing.Store(1 + int32(f)) }

func (h *heard) get() (f wire.Framing, ok bool) {
	n := h.framing.Load()
	return wire.Framing(n - 1), n > 0
}

func (l *Launch) pinnedFraming() bool { return l.ContentLength || l.NewlineOnly }

// Failed chooses the framing of the attempt after one that failed; silent says that the server answered nothing for
// the whole time. A server that has spoken keeps its framing. For any other, headers follow an attempt in which lines
// met with silence, and lines follow headers.
func (d *Dialer) Failed(silent bool) {
	spoken, ok := d.heard.get()
	switch {
	case d.Launch.pinnedFraming() || d.Type != Stdio:
	case ok:
		d.framing = spoken
	case d.framing == wire.Newline && silent:
		d.framing = wire.ContentLength
	default:
		d.framing = wire.Newline
	}
}
