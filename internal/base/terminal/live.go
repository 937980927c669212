package terminal

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Live is a block of lines that is updated in place. It is the last output on the terminal: until [Live.Clear] is called, no other
// code may write there.
type Live struct {
	w     io.Writer
	s     Screen
	drawn int // the number of lines on the screen now
}

// NewLive returns a block that is written to w, whose screen is s.
func NewLive(w io.Writer, s Screen) *Live { return &Live{w: w, s: s} }

// Room returns how many lines the block may have: one less than the rows of the screen, but at least 3. With more lines, the first
// ones would scroll off the screen and could not be updated any more.
func (l *Live) Room() int { return max(l.s.Height()-1, 3) }

// Draw replaces the lines of the block. It cuts lines that are wider than the screen, and leaves out the lines that exceed
// [Live.Room].
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
	_, _ = io.WriteString(l.w, b.String()) // an error means that the terminal is gone
}

// Clear removes the lines from the terminal.
func (l *Live) Clear() {
	if l.drawn > 0 {
		_, _ = io.WriteString(l.w, l.back()+ansi.EraseScreenBelow)
	}
	l.drawn = 0
}

// back returns the escape sequence that moves the cursor to the first line of the block.
func (l *Live) back() string {
	if l.drawn == 0 {
		return "\r"
	}
	return "\r" + ansi.CursorUp(l.drawn)
}
