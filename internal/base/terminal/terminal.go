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

// The limits of [Screen.Width]. Lines of more than maxWidth columns are hard to read.
const (
	minWidth = 40
	maxWidth = 120
)

// Screen describes what a command prints to: a terminal, a pipe or a file. The zero value is a pipe with 80 columns. A
// Screen formats text, but does not write it.
type Screen struct {
	size         func() (columns, rows int) // nil for a pipe or a file
	colour, live bool
}

// New returns the Screen of a terminal. size is called for each text, because the user may resize the window. size
// returns 0 for a number that it does not know. live is true if lines can be updated in place.
func New(size func() (columns, rows int), colour, live bool) Screen {
	return Screen{size: size, colour: colour, live: live}
}

// Copy describes a Screen for another process. A later change of the size does not reach the Copy.
type Copy struct {
	Columns, Rows          int
	Terminal, Colour, Live bool
}

// Copy returns what another process needs to format text as s does now.
func (s Screen) Copy() Copy {
	c := Copy{Terminal: s.size != nil, Colour: s.colour, Live: s.live}
	if s.size != nil {
		c.Columns, c.Rows = s.size()
	}
	return c
}

// Screen returns the Screen that was copied, with the size that it had then.
func (c Copy) Screen() Screen {
	if !c.Terminal {
		return Screen{colour: c.Colour, live: c.Live}
	}
	return New(func() (columns, rows int) { return c.Columns, c.Rows }, c.Colour, c.Live)
}

// Of returns the Screen of f. It has no colours if the environment variable NO_COLOR has a value (https://no-color.org), or if
// f does not support escape sequences.
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

// ReadHidden reads a line from a terminal without showing what is typed. It returns early if ctx ends.
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
	go func() { // ends when the line is entered, or with the process
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

// Width returns the number of columns that text may use.
func (s Screen) Width() int {
	return min(max(s.columns(), minWidth), maxWidth)
}

// Height returns the number of rows. It is 0 for a pipe or a file, and if it is not known.
func (s Screen) Height() int {
	if s.size == nil {
		return 0
	}
	_, rows := s.size()
	return rows
}

// columns returns the width of the terminal, or 80 if it is not known.
func (s Screen) columns() int {
	if s.size != nil {
		if columns, _ := s.size(); columns > 0 {
			return columns
		}
	}
	return 80
}

// Bold formats headings and important numbers. Like the other styles, it returns text unchanged on a screen without
// colour.
func (s Screen) Bold(text string) string { return s.styled("1", text) }

// Dim formats less important text.
func (s Screen) Dim(text string) string { return s.styled("2", text) }

// Red formats failures.
func (s Screen) Red(text string) string { return s.styled("31", text) }

// Green formats success, and savings.
func (s Screen) Green(text string) string { return s.styled("32", text) }

// Yellow formats warnings.
func (s Screen) Yellow(text string) string { return s.styled("33", text) }

func (s Screen) styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Wrap breaks text into lines like [Screen.Hang], and indents each line by as many spaces as indent says.
func (s Screen) Wrap(indent int, text string) string {
	return s.Hang(strings.Repeat(" ", indent), text)
}

// Hang returns a label and the text after it, broken into lines that fit the screen. All lines but the first are indented by
// the width of the label. If the height of the screen is 0, as for a pipe or a file, Hang does not break the text.
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

// Clip cuts a line to this many columns. A line that was cut ends with "...".
func Clip(line string, columns int) string { return ansi.Truncate(line, columns, "...") }

// ClipMiddle cuts a name in its middle, because long names often differ only at the end.
func ClipMiddle(name string, columns int) string {
	width := ansi.StringWidth(name)
	if width <= columns {
		return name
	}
	head := (columns - 3) / 3
	return ansi.Truncate(name, head, "") + "..." + ansi.TruncateLeft(name, width-(columns-3-head), "")
}

// Pad appends spaces until text has this many columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-ansi.StringWidth(text)))
}
