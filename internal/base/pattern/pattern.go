// Package pattern has regular expressions that are compiled at their first use.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy is a regular expression. Compiling rare ones at the start would cost every process time and memory, even the
// reaper. Safe for concurrent use.
type Lazy struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New makes a Lazy. Its first use panics if text is not a valid expression.
func New(text string) *Lazy { return &Lazy{text: text} }

// compiled returns the expression. The following methods are the ones of [regexp.Regexp].
func (l *Lazy) compiled() *regexp.Regexp {
	l.once.Do(func() { l.re = regexp.MustCompile(l.text) })
	return l.re
}

func (l *Lazy) MatchString(s string) bool { return l.compiled().MatchString(s) }

func (l *Lazy) FindString(s string) string { return l.compiled().FindString(s) }

func (l *Lazy) FindStringIndex(s string) []int { return l.compiled().FindStringIndex(s) }

func (l *Lazy) FindStringSubmatch(s string) []string { return l.compiled().FindStringSubmatch(s) }

func (l *Lazy) FindAllStringIndex(s string, n int) [][]int {
	return l.compiled().FindAllStringIndex(s, n)
}

func (l *Lazy) FindAllStringSubmatch(s string, n int) [][]string {
	return l.compiled().FindAllStringSubmatch(s, n)
}

func (l *Lazy) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return l.compiled().FindAllStringSubmatchIndex(s, n)
}

func (l *Lazy) ReplaceAllString(s, r string) string { return l.compiled().ReplaceAllString(s, r) }

func (l *Lazy) ReplaceAllStringFunc(s string, f func(string) string) string {
	return l.compiled().ReplaceAllStringFunc(s, f)
}

func (l *Lazy) ReplaceAll(s, r []byte) []byte { return l.compiled().ReplaceAll(s, r) }

func (l *Lazy) Match(s []byte) bool { return l.compiled().Match(s) }

func (l *Lazy) Split(s string, n int) []string { return l.compiled().Split(s, n) }
