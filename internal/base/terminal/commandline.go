package terminal

import (
	"runtime"
	"strings"
)

// CommandLine returns a command line for a shell, with quotes where a word needs them.
func CommandLine(words ...string) string {
	special, mark, escaped := " \t\n\"'$`;|&<>(){}[]*?!#~\\", "'", `'\''`
	if runtime.GOOS == "windows" { // paths have backslashes there, and cmd.exe knows no single quotes
		special, mark, escaped = " \t\n\"'$`;|&<>(){}*?^%", `"`, `\"`
	}
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if word == "" || strings.ContainsAny(word, special) {
			out[i] = mark + strings.ReplaceAll(word, mark, escaped) + mark
		}
	}
	return strings.Join(out, " ")
}
