package helper

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// testRole is the role in which this test binary is a helper. A job is a word, which is a key of tasks, and the text
// that this task needs.
const testRole = "test"

func TestMain(m *testing.M) {
	Roles{
		testRole:  func() { Serve(func(l Limits) Worker { return &tester{limits: l, left: make(chan error, 2)} }) },
		"babbler": func() { os.Stdout.WriteString("hello"); select {} },
	}.Play()
	middleMain()
	os.Exit(m.Run())
}

// tester is the Worker of the tests.
type tester struct {
	limits    Limits
	forgotten int
	left      chan error // the errors of the two requests that the task leave sends; they end after its job
}

func (w *tester) Forget() { w.forgotten++ }

func (w *tester) Do(job *Job) []byte {
	name, rest, _ := bytes.Cut(job.Body, []byte(" "))
	return tasks[string(name)](w, job, rest)
}

// task executes one kind of job. rest is the job without the word that names the task.
type task func(w *tester, job *Job, rest []byte) []byte

var tasks = map[string]task{
	"echo":   func(_ *tester, _ *Job, rest []byte) []byte { return rest },
	"limits": func(w *tester, _ *Job, _ []byte) []byte { return fmt.Append(nil, w.limits) },
	"surroundings": func(*tester, *Job, []byte) []byte {
		dir, _ := os.Getwd()
		return fmt.Append(nil, os.Environ(), " ", dir)
	},
	"forgotten": func(w *tester, _ *Job, _ []byte) []byte { return strconv.AppendInt(nil, int64(w.forgotten), 10) },
	"use": func(_ *tester, _ *Job, rest []byte) []byte {
		return slices.Repeat([]byte("a"), number(rest))[:1]
	},
	"bytes": func(_ *tester, _ *Job, rest []byte) []byte { return make([]byte, number(rest)) },

	// These tasks send requests to the parent.
	"twice": twice,
	"crowd": crowd,
	"ask": func(_ *tester, job *Job, rest []byte) []byte {
		reply, err := job.Ask(rest)
		return fmt.Append(reply, err)
	},
	"leave": leave,
	"left": func(w *tester, _ *Job, _ []byte) []byte {
		return fmt.Append(nil, <-w.left, ", ", <-w.left)
	},

	// These tasks never end, or use too much memory.
	"spin":    spin,
	"collect": collect,
	"match":   match,
	"grow":    grow,
	"at-once": func(*tester, *Job, []byte) []byte { return bytes.Repeat([]byte("a"), 2e9) },
	"recurse": func(*tester, *Job, []byte) []byte { return strconv.AppendInt(nil, recurse(1), 10) },

	// These tasks crash or send invalid data.
	"panic":        func(_ *tester, _ *Job, rest []byte) []byte { return deep(50, string(rest)) },
	"panic-beside": func(_ *tester, _ *Job, rest []byte) []byte { go panic(string(rest)); select {} },
	"exit": func(_ *tester, _ *Job, rest []byte) []byte {
		fmt.Fprintln(os.Stderr, "that was all")
		os.Exit(number(rest))
		return nil
	},
	"write": func(_ *tester, _ *Job, rest []byte) []byte { os.Stdout.Write(rest); select {} },
}

func number(text []byte) int {
	n, err := strconv.Atoi(string(text))
	if err != nil {
		panic(err)
	}
	return n
}

// twice sends a request, and then another whose body is the reply to the first.
func twice(_ *tester, job *Job, rest []byte) []byte {
	first, err := job.Ask(rest)
	if err != nil {
		return []byte(err.Error())
	}
	second, err := job.Ask(first)
	if err != nil {
		return []byte(err.Error())
	}
	return fmt.Appendf(nil, "%s %s", first, second)
}

// crowd sends requests at the same time: the numbers from 0 up to the number in rest. Its answer has the replies in
// the order of the numbers.
func crowd(_ *tester, job *Job, rest []byte) []byte {
	replies := make([]string, number(rest))
	var asked sync.WaitGroup
	for i := range replies {
		asked.Go(func() {
			reply, err := job.Ask([]byte(strconv.Itoa(i)))
			if err != nil {
				reply = []byte(err.Error())
			}
			replies[i] = string(reply)
		})
	}
	asked.Wait()
	return []byte(strings.Join(replies, " "))
}

// leave answers the job while a request is open, and then sends another request. The parent replies to the request
// "seen" when the request "left" has arrived.
func leave(w *tester, job *Job, _ []byte) []byte {
	go func() {
		_, err := job.Ask([]byte("left"))
		w.left <- err
		_, err = job.Ask([]byte("late"))
		w.left <- err
	}()
	reply, _ := job.Ask([]byte("seen"))
	return reply
}

func spin(*tester, *Job, []byte) []byte {
	for n := 0; ; n++ {
	}
}

// collect allocates memory without end, most of which becomes garbage.
func collect(*tester, *Job, []byte) []byte {
	kept := make([][]byte, 100)
	for i := 0; ; i++ {
		kept[i%len(kept)] = make([]byte, 1e5)
	}
}

// match spends all its time in single long calls of a regular expression.
func match(*tester, *Job, []byte) []byte {
	expression, text := regexp.MustCompile("(a?){900}b"), strings.Repeat("a", 1e7)
	for {
		expression.MatchString(text)
	}
}

func grow(*tester, *Job, []byte) []byte {
	kept := map[int][]byte{}
	for {
		kept[len(kept)] = slices.Repeat([]byte("a"), 1e5)
	}
}

// deep panics in n nested calls, so that the runtime prints a long trace.
func deep(n int, text string) []byte {
	if n == 0 {
		panic(text)
	}
	return append(deep(n-1, text), 0)
}

func recurse(n int64) int64 {
	if n < 0 { // never true
		return n
	}
	return recurse(n+1) + n
}
