package transport

import "mcpx/internal/base/wire"

func (l *Launch) pinnedFraming() bool { return l.ContentLength || l.NewlineOnly }

// Failed chooses the framing of the next attempt after a failed one. silent means that the server answered nothing at
// all. A server that has sent a message keeps the framing of that message. For any other server headers are tried after a
// silent attempt with lines, and lines after headers.
func (d *Dialer) Failed(silent bool) {
	heard := d.heard.Load()
	switch {
	case d.Launch.pinnedFraming() || d.Type != Stdio:
	case heard > 0:
		d.framing = wire.Framing(heard - 1)
	case d.framing == wire.Newline && silent:
		d.framing = wire.ContentLength
	default:
		d.framing = wire.Newline
	}
}
