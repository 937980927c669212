package terminal

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Live is a block of lines at the end of what a terminal shows, which is rewritten
// in place. Nothing else may be written there until [Live.Clear].
type Live struct {
	w     io.Writer
	s     Screen
	drawn int // lines
}

// NewLive makes one that draws on w, which s is the screen of.
func NewLive(w io.Writer, s Screen) *Live { return &Live{w: w, s: s} }

// Room is how many lines can be rewritten: what has left the screen cannot.
func (l *Live) Room() int { return max(l.s.Height()-1, 3) }

// Draw puts lines in the place of those drawn last. What is too long is cut, so that
// each takes one row.
func (l *Live) Draw(lines []string) {
	lines = lines[:min(len(lines), l.Room())]
	width := l.s.columns()
	var b strings.Builder
	b.WriteString(l.back())
	for _, line := range lines {
		b.WriteString(Clip(line, width-1) + ansi.EraseLineRight + "\n")
	}
	b.WriteString(ansi.EraseScreenBelow)
	l.drawn = len(lines)
	_, _ = io.WriteString(l.w, b.String()) // a terminal that is gone shows nothing
}

// Clear takes the lines away.
func (l *Live) Clear() {
	if l.drawn > 0 {
		_, _ = io.WriteString(l.w, l.back()+ansi.EraseScreenBelow)
	}
	l.drawn = 0
}

// back is what moves to the first of the drawn lines.
func (l *Live) back() string {
	if l.drawn == 0 {
		return "\r"
	}
	return "\r" + ansi.CursorUp(l.drawn)
}
