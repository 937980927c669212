package sanitize

import (
	"strings"

	"mcpx/internal/base/pattern"
)

// causeLines is how many lines behind one that ends in a colon belong to it.
const causeLines = 3

// Cause finds, in what a program wrote to stderr before it ended, the line that says
// why: the last exception of a traceback, else the last line that calls itself an
// error, else what npm calls one. It is empty where no line does.
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
	// errorLine is a line that begins, behind the program's name at most, as runtimes
	// and libraries for commands write an error. Help and stack frames are indented.
	errorLine = pattern.New(`^(?:(?i:fatal|panic|critical)\b.*[: ]\S|[\w.$-]*(?i:error|exception)\b(?: \[\w+\])?: *\S|(?i:uncaught|unhandled)\b.*\S|Exception in thread .*\S|thread '.*'.* panicked at |[^\s:]+: (?i:fatal|error)\b.*: *\S|[^\s:]+: (?i:fatal|error): *\S)|^\s*× \S`)
	// errorLog is a line of a log with that level.
	errorLog = pattern.New(`\b(?:ERROR|FATAL|CRITICAL)\b.*\S|\blevel=(?:error|fatal)\b|"level": ?"(?:error|fatal)"`)
	// exceptionLine is how Python ends a traceback.
	exceptionLine = pattern.New(`^[A-Za-z_][\w.]*(?:: |$)`)
	npmLine       = pattern.New(`^npm (?:\S+ )?(?i:warn|notice|error|err!)`)
	npmError      = pattern.New(`^npm (?i:error|err!) (.*\S)$`)
	// npmDetail is what else npm has in lines of an error.
	npmDetail = pattern.New(`^(?:\S+(?: \S+)?$|path |command |\s|[{}]|A complete log|If you are behind)`)
	// noise says nothing of why a program ended.
	noise = pattern.New(`^\s*$|^npm (?:\S+ )?(?i:warn|notice)|^[\s^~|]*$|^\s+at |^\s*File ".*", line \d|^Node\.js v|^\s*(?:Try|Run|Use|For more information)\b.*(?:help|--)|^\s*For further information|^note: |DeprecationWarning|--trace-(?:deprecation|warnings|uncaught)`)
	usage = pattern.New(`^\s*(?i:usage:)`)
)

// traceback is the first line of one; those of groups of exceptions are behind a frame.
const traceback = "Traceback (most recent call last):"

// exception is the last line of the last traceback, or of what is innermost in a group.
func exception(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		before, _, found := strings.Cut(lines[i], traceback)
		if !found {
			continue
		}
		frame := len(strings.TrimSuffix(before, "Exception Group "))
		if strings.Trim(before[:frame], " |+") != "" {
			frame = 0 // a log's prefix, which the other lines do not have
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

// opensList is a line whose sense is in the next ones.
var opensList = pattern.New(`:$|validation errors? for \S+$`)

// whole is the first line, with the next ones where it ends in the middle.
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

// deeper is how runtimes write what an error was caused by.
var deeper = pattern.New(`^\s*(?:\[cause\]|Caused by): *(.*)$`)

// causedBy adds the first cause that is written behind an error.
func causedBy(text string, behind []string) string {
	for i, line := range behind {
		m := deeper.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		cause := m[1]
		if cause == "" && i+1 < len(behind) {
			cause = strings.TrimSpace(behind[i+1])
		}
		return text + "; caused by " + strings.TrimSuffix(cause, " {")
	}
	return text
}

// Ending is the last n lines of what a program wrote to stderr that may matter: no
// stack, no help, no warnings of npm.
func Ending(stderr string, n int) string {
	lines := strings.Split(strings.TrimRight(Lines(stderr), " \n"), "\n")
	var kept []string
	for i, line := range lines {
		if usage.MatchString(line) {
			if len(kept) == 0 {
				kept = append(kept, line)
			}
			// Behind its help, a program may say what was wrong.
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
