package config

import (
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
)

var unfit = pattern.New(`[^A-Za-z0-9._-]`)

// safeNames renames servers whose names have other characters than ASCII letters, digits, '.', '_' and '-', or are "." or "..". It
// replaces each of the other characters by '_', and in "." and ".." each dot. If the new name is taken, it appends a number. In
// disabled_tools, and in the tools of groups, it replaces the old names, too.
func (l *loader) safeNames() {
	taken := map[string]bool{Reserved: true}
	for _, s := range l.cfg.Servers {
		taken[strings.ToLower(s.Name)] = true
	}
	var told []string
	for i := range l.cfg.Servers {
		s := &l.cfg.Servers[i]
		dots := onlyDots(s.Name)
		if serverName.MatchString(s.Name) && !dots {
			continue
		}
		old, base := s.Name, unfit.ReplaceAllString(s.Name, "_")
		if dots {
			base = strings.ReplaceAll(old, ".", "_")
		}
		s.Name, s.Written = base, old
		for n := 2; taken[strings.ToLower(s.Name)]; n++ {
			s.Name = fmt.Sprintf("%s_%d", base, n)
		}
		taken[strings.ToLower(s.Name)] = true
		told = append(told, fmt.Sprintf("%s as %s", quote(old), s.Name))
	}
	if len(told) > 0 {
		l.cfg.DisabledTools = l.served(l.cfg.DisabledTools)
		for i := range l.cfg.Groups {
			tools := &l.cfg.Groups[i].Tools
			tools.Allow, tools.Deny = l.served(tools.Allow), l.served(tools.Deny)
		}
		l.warn("names of servers may only have letters (a-z), digits, '.', '_' and '-', so these servers are renamed: %s", strings.Join(told, ", "))
	}
}

// served returns globs of SERVER.TOOL in which the names of renamed servers are replaced by the new names. It replaces only a name
// that is written out. If the glob has a pattern in place of the server's name, it stays as it is, and is compared with the new
// names.
func (l *loader) served(globs []string) []string {
	all := slices.Clone(globs)
	for i, glob := range all {
		for _, s := range l.cfg.Servers {
			if tool, ok := strings.CutPrefix(glob, s.Written+"."); ok && s.Written != "" {
				all[i] = s.Name + "." + tool
			}
		}
	}
	return all
}

// similarNames warns about names of servers that differ only in upper and lower case.
func (l *loader) similarNames() {
	seen := make(map[string]string)
	for _, s := range l.cfg.Servers {
		plain := strings.ToLower(s.Name)
		if before, ok := seen[plain]; ok {
			l.warn("the names %s and %s differ only in case, which a model overlooks", quote(before), quote(s.Name))
		}
		seen[plain] = s.Name
	}
}

// splitCommand splits a command such as "npx -y x" into the program and its arguments.
func (r *serverReader) splitCommand() {
	words := r.commandWords()
	if r.s.Type != Stdio || words == nil {
		return
	}
	r.s.Command, r.commandArgs = words[0], slices.Concat(words[1:], r.commandArgs)
	r.argSecrets(r.commandArgs)
	r.l.warn("%s: holds arguments, which belong in args; split up", r.commandAt.path())
}

// commandWords returns the words of a command such as "npx -y x": the program and its arguments. It returns nil if the command has no
// arguments, and also if it is a path with spaces.
func (r *serverReader) commandWords() []string {
	if !strings.ContainsAny(r.s.Command, " \t") || exists(r.s.Command) {
		return nil
	}
	words := ShellWords(r.s.Command)
	if len(words) < 2 || strings.ContainsAny(words[0], `/\`) && !exists(words[0]) {
		return nil
	}
	return words
}

// ShellWords splits a command line at spaces and tabs that are not in quotes, and removes the quotes.
func ShellWords(line string) (words []string) {
	var word strings.Builder
	open, inWord := rune(0), false
	for _, c := range line {
		switch {
		case open != 0 && c == open:
			open = 0
		case open != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			open, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

// runners are programs that install and run a package. An argument must name the package.
var runners = []string{"npx", "pnpx", "bunx", "uvx"}

// needPackage adds a fault if the command is one of runners and has no arguments. Some of these programs would start a
// shell, which would run MCP messages as commands.
func (r *serverReader) needPackage() {
	if r.s.Type == Stdio && len(r.s.Args) == 0 && slices.Contains(runners, program(r.s.Command)) {
		r.fail(r.commandAt.parent.child("args"), "is missing; %s needs the name of a package to run", program(r.s.Command))
	}
}

// aliases maps wrong keys to the right ones. It has the wrong keys for which the function nearest would not find the right key by
// its letters, because they are too short or too different.
var aliases = map[string]string{
	"cmd":         "command",
	"executable":  "command",
	"arg":         "args",
	"arguments":   "args",
	"environment": "env",
	"uri":         "url",
	"endpointurl": "url",
	"desc":        "description",
	"workdir":     "cwd",
}

// nearest returns the right key that the user probably meant by a wrong key. The parameter key is the wrong key; keys has the
// right keys. The result is the right key in aliases, or one that differs from the wrong key only in case, separators or a few
// letters. If keys has no such key, or the wrong key is longer than 64 bytes, the result is "".
func nearest(key string, keys []string) string {
	if len(key) > 64 {
		return ""
	}
	bare := sanitize.Bare(key)
	alias, allowed := aliases[bare], allowedSlips(bare)
	best, bestDistance := "", allowed+1
	for _, candidate := range keys {
		if candidate == alias || sanitize.Bare(candidate) == bare {
			return candidate
		}
		if d := sanitize.Distance(bare, sanitize.Bare(candidate), allowed); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// allowedSlips returns how many letters of a mistyped key may be wrong. Fewer are allowed for short keys, because short
// words are often similar by chance.
func allowedSlips(key string) int {
	switch {
	case len(key) < 4:
		return 0
	case len(key) < 6:
		return 1
	}
	return 2
}
