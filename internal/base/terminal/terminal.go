// Package terminal lays out the output of commands for the user: it wraps lines, adds colours, and
// updates lines in place.
package terminal

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// The limits of [Screen.Width]. Longer lines are hard to read.
const (
	leastWidth = 40
	mostWidth  = 120
)

// Screen describes what a command prints to: a terminal, a pipe or a file. The zero value is a pipe
// with 80 columns. A Screen lays texts out, but does not write them.
type Screen struct {
	size         func() (columns, rows int) // nil for a pipe
	colour, live bool
}

// New returns a terminal. size is called for each text, because the user may resize the window; it
// returns 0 if it does not know a size. live is true if lines can be updated in place.
func New(size func() (columns, rows int), colour, live bool) Screen {
	return Screen{size: size, colour: colour, live: live}
}

// Of returns the screen of f. NO_COLOR turns colours off (https://no-color.org).
func Of(f *os.File, getenv func(string) (string, bool)) Screen {
	if !IsTerminal(f) {
		return Screen{}
	}
	none, _ := getenv("NO_COLOR")
	kind, _ := getenv("TERM")
	live := kind != "dumb" && understandsEscapes(f)
	size := func() (columns, rows int) {
		columns, rows, _ = term.GetSize(int(f.Fd())) // 0 after an error
		return columns, rows
	}
	return New(size, live && none == "", live)
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// ReadHidden reads a line from a terminal without showing it. It returns early if ctx ends.
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

// Live reports whether lines can be updated in place.
func (s Screen) Live() bool { return s.live }

// Width is the number of columns to lay out for.
func (s Screen) Width() int {
	return min(max(s.columns(), leastWidth), mostWidth)
}

// Height is the number of rows, or 0 for a pipe or a file.
func (s Screen) Height() int {
	if s.size == nil {
		return 0
	}
	_, rows := s.size()
	return rows
}

// columns is the width of the terminal, or 80 if it is not known.
func (s Screen) columns() int {
	if s.size != nil {
		if columns, _ := s.size(); columns > 0 {
			return columns
		}
	}
	return 80
}

// Bold is for headings and important figures. Like the other styles, it changes nothing on a screen
// without colour.
func (s Screen) Bold(text string) string { return s.styled("1", text) }

// Dim is for less important texts.
func (s Screen) Dim(text string) string { return s.styled("2", text) }

// Red is for failures.
func (s Screen) Red(text string) string { return s.styled("31", text) }

// Green is for success, and for savings.
func (s Screen) Green(text string) string { return s.styled("32", text) }

// Yellow is for warnings.
func (s Screen) Yellow(text string) string { return s.styled("33", text) }

func (s Screen) styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Wrap breaks a text into lines that fit the screen, and indents each by this many spaces.
func (s Screen) Wrap(indent int, text string) string {
	return s.Hang(strings.Repeat(" ", indent), text)
}

// Hang writes a label and wraps the text after it; the other lines are indented by the width of the
// label. On a pipe it does not break the line.
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

// Clip cuts a line to columns; a cut line ends with "...".
func Clip(line string, columns int) string { return ansi.Truncate(line, columns, "...") }

// ClipMiddle cuts a name in the middle, because long names often differ only at the end.
func ClipMiddle(name string, columns int) string {
	width := ansi.StringWidth(name)
	if width <= columns {
		return name
	}
	head := (columns - 3) / 3
	return ansi.Truncate(name, head, "") + "..." + ansi.TruncateLeft(name, width-(columns-3-head), "")
}

// Pad adds spaces up to columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-ansi.StringWidth(text)))
}
