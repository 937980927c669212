// Package pattern has regular expressions that are compiled when they are first used.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy is a regular expression that is compiled when it is first used. Compiling rarely used expressions at the start
// would cost every process time and memory, even the reaper of package proc. Safe for concurrent use.
type Lazy struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New returns a Lazy. If text is not a valid expression, the first use panics.
func New(text string) *Lazy { return &Lazy{text: text} }

// compiled returns the compiled expression. The other methods are the methods of [regexp.Regexp] with the same names.
func (l *Lazy) compiled() *regexp.Regexp {
	l.once.Do(func() { l.re = regexp.MustCompile(l.text) })
	return l.re
}

func (l *Lazy) MatchString(s string) bool { return l.compiled().MatchString(s) }

func (l *Lazy) FindString(s string) string { return l.compiled().FindString(s) }

func (l *Lazy) FindStringIndex(s string) []int { return l.compiled().FindStringIndex(s) }

func (l *Lazy) FindStringSubmatch(s string) []string { return l.compiled().FindStringSubmatch(s) }

func (l *Lazy) FindStringSubmatchIndex(s string) []int {
	return l.compiled().FindStringSubmatchIndex(s)
}

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
