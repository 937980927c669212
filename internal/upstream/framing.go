package upstream

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

func (s *Spec) pinnedFraming() bool { return s.ContentLength || s.NewlineOnly }

// firstFraming is the framing of the first attempt.
func (s *Spec) firstFraming() wire.Framing {
	if s.ContentLength {
		return wire.ContentLength
	}
	return wire.Newline
}

// nextFraming is the framing of the attempt after one that failed. A server that has
// spoken keeps its framing. For any other, headers follow an attempt in which lines
// met with silence for the whole time, and lines follow headers.
func (s *Spec) nextFraming(last wire.Framing, silent bool) wire.Framing {
	spoken, ok := s.heard.get()
	switch {
	case s.pinnedFraming() || s.Type != Stdio:
		return last
	case ok:
		return spoken
	case last == wire.Newline && silent:
		return wire.ContentLength
	}
	return wire.Newline
}
