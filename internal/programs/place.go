package programs

import (
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
)

// A program runs as the body of a function. The first line of that text is the head of the function; see begin.
const headLines = 1

// inFrame matches the place in a line of a stack.
var inFrame = pattern.New(`\(?<[a-zA-Z]+>:(\d+)(?::(\d+))?\)?`)

// placeOf returns line and column, from 1, of the innermost frame of a stack that is in the program, or 0. A frame on the line
// of the head is not in the program: the prelude is on one line for that reason.
func placeOf(stack string) (line, column int) {
	for _, found := range inFrame.FindAllStringSubmatch(stack, -1) {
		line, _ = strconv.Atoi(found[1])
		if column, _ = strconv.Atoi(found[2]); line > headLines {
			return line - headLines, column
		}
	}
	return 0, 0
}

// maxSource bounds the source line in an error, in characters.
const maxSource = 120

// at describes a place in a program, with the source line; empty if there is no such line.
func at(code string, line, column int) string {
	lines := strings.Split(code, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	text := fmt.Sprintf("line %d", line)
	if column > 0 {
		text += fmt.Sprintf(", column %d", column)
	}
	if source := sanitize.Line(around(lines[line-1], column), maxSource); source != "" {
		text += ": " + source
	}
	return text
}

// around returns the part of a long line that has the column.
func around(line string, column int) string {
	runes := []rune(line)
	if len(runes) > maxSource && column > maxSource/2 {
		runes = runes[min(column-maxSource/2, len(runes)):]
	}
	return strings.TrimSpace(string(runes))
}
