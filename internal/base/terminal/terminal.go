// Package terminal lays out what commands print for people: within the width of the
// terminal, in colour where that is wanted, with lines that are rewritten in place.
package terminal

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// The bounds of a width that is laid out for. Longer lines are hard to read.
const (
	leastWidth = 40
	mostWidth  = 120
)

// Screen is what a command prints on: a terminal, a pipe or a file. The zero value
// is a pipe, 80 columns wide. It only styles; its user writes.
type Screen struct {
	size         func() (columns, rows int) // nil for a pipe
	colour, live bool
}

// New is a terminal. size returns 0 for what it does not know, and is called again for
// each text, since people resize their windows. live is false where lines cannot be
// rewritten.
func New(size func() (columns, rows int), colour, live bool) Screen {
	return Screen{size: size, colour: colour, live: live}
}

// Of is the screen behind f. NO_COLOR turns colours off (https://no-color.org).
func Of(f *os.File, getenv func(string) (string, bool)) Screen {
	if !IsTerminal(f) {
		return Screen{}
	}
	none, _ := getenv("NO_COLOR")
	kind, _ := getenv("TERM")
	live := kind != "dumb" && understandsEscapes(f)
	size := func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0
		}
		return columns, rows
	}
	return New(size, live && none == "", live)
}

// IsTerminal reports whether f is a terminal. Other character devices, such as
// /dev/null, are not.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// ReadHidden reads a line from a terminal that does not show it meanwhile, or until ctx ends.
func ReadHidden(ctx context.Context, f *os.File) (string, error) {
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", err
	}
	type outcome struct {
		line []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() { // ends with the line, or with the process
		line, err := term.ReadPassword(int(f.Fd()))
		read <- outcome{line, err}
	}()
	select {
	case o := <-read:
		return string(o.line), o.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(int(f.Fd()), before))
	}
}

// Live reports whether lines can be rewritten.
func (s Screen) Live() bool { return s.live }

// Width is the number of columns to lay out for.
func (s Screen) Width() int {
	return min(max(s.columns(), leastWidth), mostWidth)
}

// Height is the number of rows; 0 where nothing bounds them.
func (s Screen) Height() int {
	if s.size == nil {
		return 0
	}
	_, rows := s.size()
	return rows
}

// columns is the width of the terminal; 80 where it is unknown, and on a pipe.
func (s Screen) columns() int {
	if s.size != nil {
		if columns, _ := s.size(); columns > 0 {
			return columns
		}
	}
	return 80
}

// Bold, Dim, Red, Green and Yellow style a text, where there is colour.

// Bold is for headings and for what matters most.
func (s Screen) Bold(text string) string { return s.styled("1", text) }

// Dim is for what can be passed over.
func (s Screen) Dim(text string) string { return s.styled("2", text) }

// Red is for what does not work.
func (s Screen) Red(text string) string { return s.styled("31", text) }

// Green is for what works, and for what is saved.
func (s Screen) Green(text string) string { return s.styled("32", text) }

// Yellow is for what needs a look.
func (s Screen) Yellow(text string) string { return s.styled("33", text) }

func (s Screen) styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Wrap breaks a text into lines that fit, each with this indent, and a line end
// after the last.
func (s Screen) Wrap(indent int, text string) string {
	return s.Hang(strings.Repeat(" ", indent), text)
}

// Hang is [Screen.Wrap] with a label before the first line; the others are indented
// by its width. On a pipe a line stays whole: what reads there has no width.
func (s Screen) Hang(label, text string) string {
	if s.Height() == 0 {
		return label + text + "\n"
	}
	at := ansi.StringWidth(label)
	lines := strings.Split(ansi.Wrap(text, max(s.Width()-at, 20), ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return label + strings.Join(lines, "\n"+strings.Repeat(" ", at)) + "\n"
}

// Clip cuts a line to columns, and says so with "...".
func Clip(line string, columns int) string { return ansi.Truncate(line, columns, "...") }

// ClipMiddle cuts a name in the middle: what tells names apart is often at the end.
func ClipMiddle(name string, columns int) string {
	width := ansi.StringWidth(name)
	if width <= columns {
		return name
	}
	head := (columns - 3) / 3
	return ansi.Truncate(name, head, "") + "..." + ansi.TruncateLeft(name, width-(columns-3-head), "")
}

// Pad fills a text up to columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-ansi.StringWidth(text)))
}
