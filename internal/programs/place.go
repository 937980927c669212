package programs

import (
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
)

// headLines is the number of lines before the code of a program. The program runs as the body of a function, and the
// head of that function is one line; see engine.begin.
const headLines = 1

// inFrame matches the line and column that a line of a stack trace names.
var inFrame = pattern.New(`\(?<[a-zA-Z]+>:(\d+)(?::(\d+))?\)?`)

// placeOf returns the line and the column, both from 1, at which the program is according to the innermost entry of a
// stack trace that is within the program; 0 if there is none. Entries on the line of the function's head are not in
// the program: the prelude is on that line too.
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
