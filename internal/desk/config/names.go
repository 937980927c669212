package config

import (
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
)

// Clients allow names of servers that tools of a model cannot be called by.

var unfit = pattern.New(`[^A-Za-z0-9._-]`)

// safeNames gives servers whose names do not fit another one: each odd character is
// '_', and a number follows where another server has that name. What disables tools
// under the old name does so under the new one.
func (l *loader) safeNames() {
	taken := map[string]bool{reserved: true}
	for _, s := range l.cfg.Servers {
		taken[strings.ToLower(s.Name)] = true
	}
	var told []string
	for i := range l.cfg.Servers {
		s := &l.cfg.Servers[i]
		if serverName.MatchString(s.Name) {
			continue
		}
		old, base := s.Name, unfit.ReplaceAllString(s.Name, "_")
		s.Name, s.Written = base, old
		for n := 2; taken[strings.ToLower(s.Name)]; n++ {
			s.Name = fmt.Sprintf("%s_%d", base, n)
		}
		taken[strings.ToLower(s.Name)] = true
		told = append(told, fmt.Sprintf("%s as %s", quote(old), s.Name))
		for j, glob := range l.cfg.DisabledTools {
			if tool, ok := strings.CutPrefix(glob, old+"."); ok {
				l.cfg.DisabledTools[j] = s.Name + "." + tool
			}
		}
	}
	if len(told) > 0 {
		l.warn("names of servers have only letters (a-z), digits, '.', '_' and '-', so these are served under others: %s", strings.Join(told, ", "))
	}
}

// similarNames warns of names that differ in case alone.
func (l *loader) similarNames() {
	seen := make(map[string]string)
	for _, s := range l.cfg.Servers {
		plain := strings.ToLower(s.Name)
		if before, ok := seen[plain]; ok {
			l.warn("the names %s and %s differ in case alone, which a model overlooks", quote(before), quote(s.Name))
		}
		seen[plain] = s.Name
	}
}

// splitCommand takes arguments out of a command that holds them, as in "npx -y x".
// A program whose path has spaces stays.
func (r *serverReader) splitCommand() {
	if r.s.Type != Stdio || !strings.ContainsAny(r.s.Command, " \t") || exists(r.s.Command) {
		return
	}
	words := shellWords(r.s.Command)
	if len(words) < 2 || strings.ContainsAny(words[0], `/\`) && !exists(words[0]) {
		return
	}
	r.s.Command, r.commandArgs = words[0], slices.Concat(words[1:], r.commandArgs)
	r.argSecrets(r.commandArgs)
	r.l.warn("%s: holds arguments, which belong in args; taken apart", r.commandAt.path())
}

// shellWords parts a command line as shells do, as far as quotes go.
func shellWords(line string) (words []string) {
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

// runners are the programs that do nothing useful without the name of a package.
var runners = []string{"npx", "pnpx", "bunx", "uvx"}

// needPackage refuses a runner that is not told what to run: some start a shell then,
// which would read what is meant for a server.
func (r *serverReader) needPackage() {
	if r.s.Type == Stdio && len(r.s.Args) == 0 && slices.Contains(runners, program(r.s.Command)) {
		r.fail(r.commandAt.parent.child("args"), "is missing; %s needs the name of a package to run", program(r.s.Command))
	}
}
