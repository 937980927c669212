package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one mistake in a config, with its place.
type Fault struct {
	// Path is the JSON path, such as mcpServers.github.url or mcp_servers[1].name.
	Path string
	Text string

	offset int // in the file, for the order of a list
}

// String is the place and what is wrong there.
func (f Fault) String() string { return f.Path + ": " + f.Text }

// Faults are all faults of structure in one file, in the order of the file. Such a file cannot be used.
type Faults struct {
	// File is the path as it was given.
	File string
	List []Fault
}

// Error has one line for each fault.
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i, fault := range f.List {
		lines[i] = f.File + ": " + fault.String()
	}
	return strings.Join(lines, "\n")
}

// SyntaxError says why a file is not JSON.
type SyntaxError struct {
	// File is the path as it was given.
	File string
	// Line and Column are from 1; a column is a character.
	Line, Column int
	Text         string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: invalid JSON: %s", e.File, e.Line, e.Column, e.Text)
}

// Error is a config that cannot be found or read.
type Error struct {
	Text   string
	Advice string // what the user can do; may be empty
	Err    error  // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *Error) Hint() string { return e.Advice }

func sortFaults(list []Fault) {
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), strings.Compare(a.Path, b.Path))
	})
}
