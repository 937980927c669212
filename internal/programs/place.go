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

// inFrame matches the place in an entry of a stack trace: a name in angle brackets, the line and the column.
var inFrame = pattern.New(`\(?<[a-zA-Z]+>:(\d+)(?::(\d+))?\)?`)

// placeOf finds the innermost entry of a stack trace that is within the program, and returns the line and the column of this entry,
// both from 1. The column is 0 if the entry has none. Both are 0 if there is no such entry. Entries on the line of the function's
// head are not within the program, because the prelude (the JavaScript that runs before the program) is on a line with the same
// number.
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

// at describes a place in a program, with the source line. It returns an empty string if the program has no such line.
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

// around cuts off the beginning of a long line, so that the part around the column is shown.
func around(line string, column int) string {
	runes := []rune(line)
	if len(runes) > maxSource && column > maxSource/2 {
		runes = runes[min(column-maxSource/2, len(runes)):]
	}
	return strings.TrimSpace(string(runes))
}
