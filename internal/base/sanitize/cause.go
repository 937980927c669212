package sanitize

import (
	"strings"

	"mcpx/internal/base/pattern"
)

// causeLines is the maximum number of following lines that are joined to an incomplete line, such as one that ends in a
// colon.
const causeLines = 3

// Cause returns, on one line, the part of a program's stderr that explains why the program ended. That is the last exception of a
// Python traceback. Without a traceback, it is the last line that looks like an error, with the cause that follows it. Without such
// a line, it is an error of npm. If there is none either, Cause returns an empty string.
func Cause(stderr string) string {
	lines := strings.Split(Lines(stderr), "\n")
	if cause := exception(lines); cause != "" {
		return cause
	}
	for _, kind := range []*pattern.Lazy{errorLine, errorLog} {
		for i := len(lines) - 1; i >= 0; i-- {
			if kind.MatchString(lines[i]) && !npmLine.MatchString(lines[i]) {
				return causedBy(whole(lines[i:]), lines[i+1:])
			}
		}
	}
	for _, line := range lines {
		if m := npmError.FindStringSubmatch(line); m != nil && !npmDetail.MatchString(m[1]) {
			return "npm: " + m[1]
		}
	}
	return ""
}

var (
	// errorLine matches errors as language runtimes and command-line libraries print them, at the start of a line or after
	// the program's name. Help texts and stack frames are indented, so they do not match.
	errorLine = pattern.New(`^(?:(?i:fatal|panic|critical)\b.*[: ]\S|[\w.$-]*(?i:error|exception)\b(?: \[\w+\])?: *\S|(?i:uncaught|unhandled)\b.*\S|Exception in thread .*\S|thread '.*'.* panicked at |[^\s:]+: (?i:fatal|error)\b.*: *\S|[^\s:]+: (?i:fatal|error): *\S)|^\s*× \S`)
	// errorLog matches a log line of level error or above.
	errorLog = pattern.New(`\b(?:ERROR|FATAL|CRITICAL)\b.*\S|\blevel=(?:error|fatal)\b|"level": ?"(?:error|fatal)"`)
	// exceptionLine matches the last line of a Python traceback.
	exceptionLine = pattern.New(`^[A-Za-z_][\w.]*(?:: |$)`)
	npmLine       = pattern.New(`^npm (?:\S+ )?(?i:warn|notice|error|err!)`)
	npmError      = pattern.New(`^npm (?i:error|err!) (.*\S)$`)
	// npmDetail matches error lines of npm that give details, but not the reason.
	npmDetail = pattern.New(`^(?:\S+(?: \S+)?$|path |command |\s|[{}]|A complete log|If you are behind)`)
	// noise matches lines that do not explain the end of a program.
	noise = pattern.New(`^\s*$|^npm (?:\S+ )?(?i:warn|notice)|^[\s^~|]*$|^\s+at |^\s*File ".*", line \d|^Node\.js v|^\s*(?:Try|Run|Use|For more information)\b.*(?:help|--)|^\s*For further information|^note: |DeprecationWarning|--trace-(?:deprecation|warnings|uncaught)`)
	usage = pattern.New(`^\s*(?i:usage:)`)
)

// traceback is the first line of a Python traceback. In an exception group, a margin of spaces, | and + comes before
// it.
const traceback = "Traceback (most recent call last):"

// exception returns the last line of the last traceback. In an exception group, that is the last line of the innermost
// traceback.
func exception(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		before, _, found := strings.Cut(lines[i], traceback)
		if !found {
			continue
		}
		frame := len(strings.TrimSuffix(before, "Exception Group "))
		if strings.Trim(before[:frame], " |+") != "" {
			frame = 0 // not a margin but a log prefix, which the next lines do not have
		}
		for j, line := range lines[i+1:] {
			if len(line) > frame && strings.Trim(line[:frame], " |+-") == "" && exceptionLine.MatchString(line[frame:]) {
				rest := []string{line[frame:]}
				for _, next := range lines[i+2+j:] {
					rest = append(rest, strings.TrimLeft(next, " |+-"))
				}
				return whole(rest)
			}
		}
	}
	return ""
}

// opensList matches a line that is incomplete without the lines after it.
var opensList = pattern.New(`:$|validation errors? for \S+$`)

// whole returns the first line. If that line is incomplete, it is joined with the lines after it.
func whole(lines []string) string {
	text := strings.TrimSpace(lines[0])
	if !opensList.MatchString(text) {
		return text
	}
	for _, line := range lines[1:min(len(lines), 1+causeLines)] {
		if line = strings.TrimSpace(line); usage.MatchString(line) || noise.MatchString(line) {
			break
		}
		text += " " + line
	}
	return text
}

// deeper matches a line with the cause of an error, as Node, Java and Rust print it.
var deeper = pattern.New(`^\s*(?:\[cause\]|Caused by): *(.*)$`)

// causedBy appends to an error the first cause in the following lines.
func causedBy(text string, following []string) string {
	for i, line := range following {
		m := deeper.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		cause := m[1]
		if cause == "" && i+1 < len(following) {
			cause = strings.TrimSpace(following[i+1])
		}
		return text + "; caused by " + strings.TrimSuffix(cause, " {")
	}
	return text
}

// Ending returns the last n lines of a program's stderr that matter: without stack traces, help texts and warnings of npm. If a
// help text comes first, Ending keeps its first line.
func Ending(stderr string, n int) string {
	lines := strings.Split(strings.TrimRight(Lines(stderr), " \n"), "\n")
	var kept []string
	for i, line := range lines {
		if usage.MatchString(line) {
			if len(kept) == 0 {
				kept = append(kept, line)
			}
			// After its help text, a program may print what was wrong.
			if last := lines[len(lines)-1]; i < len(lines)-1 && !noise.MatchString(last) && strings.IndexAny(last, " \t-") != 0 {
				kept = append(kept, last)
			}
			break
		}
		if !noise.MatchString(line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-n):], "\n")
}
