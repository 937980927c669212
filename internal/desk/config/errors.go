package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/terminal"
)

// Fault is one mistake in a config file, and where it is.
type Fault struct {
	// Path is the place as a path of keys, such as mcpServers.github.url or mcp_servers[1].name.
	Path string
	Text string

	offset int // the byte offset in the file; faults are sorted by it
}

// String returns the path and what is wrong there.
func (f Fault) String() string { return f.Path + ": " + f.Text }

// Faults is the error for a file that is unusable because of faults of structure. List has all faults that reading the file found,
// in the order of the file. Some checks need all keys, such as whether the servers of a group exist. mcpx makes them only if
// reading found no fault; then List has the faults of these checks.
type Faults struct {
	// File is the path of the file, as the caller passed it to [Parse].
	File string
	List []Fault
	// Referred are the other files to which the file refers, like [Config.Referred].
	Referred []string
}

// Error returns one line for each fault.
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i, fault := range f.List {
		lines[i] = f.File + ": " + fault.String()
	}
	return strings.Join(lines, "\n")
}

// SyntaxError is the error for a file that is not valid JSON, or that has too many values or too many levels.
type SyntaxError struct {
	// File is the path of the file, as the caller passed it to [Parse].
	File string
	// Line and Column begin with 1. Columns count characters.
	Line, Column int
	Text         string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: invalid JSON: %s", e.File, e.Line, e.Column, e.Text)
}

// emptyFile is the text of the error for a file without any value.
const emptyFile = "the file is empty"

// Hint says how to fill an empty file. It returns "" for other mistakes, whose text says what to do.
func (e *SyntaxError) Hint() string {
	if e.Text != emptyFile {
		return ""
	}
	all := terminal.CommandLine("mcpx", "init", "--config", e.File)
	one := terminal.CommandLine("mcpx", "add", "NAME", "--config", e.File, "--", "COMMAND")
	return "fill it with the servers of your MCP clients: " + all + "; or with one: " + one
}

// Error is the error for a config file that cannot be found or read.
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

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what the user can do, or "".
func (e *Error) Hint() string { return e.Advice }

func sortFaults(list []Fault) {
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), strings.Compare(a.Path, b.Path))
	})
}
