package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// wanted is a reference to a value that lies elsewhere, and may take its time: the keyring
// asks its user, and a command runs. So a file is read twice: the first reading collects
// these, all are looked up at the same time, and the second has their values.
type wanted struct{ kind, what string }

// answer is what a reference gave: a text, or why there is none.
type answer struct{ text, why string }

type answers map[wanted]answer

// elsewhere is the value of ${keyring:NAME}, ${file:PATH} or ${command:...}, or why there
// is none. A line break at its end is cut.
func (r *serverReader) elsewhere(kind, what string) (text, why string) {
	one := wanted{kind, what}
	v, looked := r.l.answers[one]
	switch {
	case kind == "file":
		v = r.file(what)
	case !looked:
		if kind == "keyring" && r.l.o.Keyring != nil || kind == "command" && r.l.o.Run != nil {
			r.wanted = append(r.wanted, one)
		}
		text = "${" + kind + ":" + what + "}"
		r.secret(text, true) // as its value is: the same catalogue on disk belongs to both
		return text, ""
	}
	if v.text = strings.TrimRight(v.text, "\r\n"); v.text == "" && v.why == "" {
		v.why = fmt.Sprintf("the %s of ${%[1]s:} gives nothing", kind)
	}
	if v.why == "" {
		r.secret(v.text, true)
	}
	return v.text, v.why
}

// absolute is the path of a file that a config names: ~/ is the home folder, and a relative
// path begins at the folder of the config.
func (r *serverReader) absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && r.home() != "" {
		path = filepath.Join(r.home(), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.l.cfg.Path), path)
	}
	return path
}

// file reads the file of a ${file:PATH}.
func (r *serverReader) file(path string) answer {
	path = r.absolute(path)
	data, err := r.l.o.ReadFile(path)
	if err != nil {
		return answer{why: fmt.Sprintf("file %s cannot be read: %v", quote(path), err)}
	}
	return answer{text: string(data)}
}

// needed are the references of all servers in use, or of those that alone are to be used,
// and those that belong to no server.
func (l *loader) needed() []wanted {
	known := func(server string) bool { return l.defined[server] != "" }
	some := len(l.o.Only) > 0 && !slices.ContainsFunc(l.o.Only, func(server string) bool { return !known(server) })
	var all []wanted
	for server, refs := range l.wanted {
		if !some || server == "" || slices.Contains(l.o.Only, server) {
			all = append(all, refs...)
		}
	}
	return all
}

// lookUp gets all these values, each once.
func (l *loader) lookUp(refs []wanted) answers {
	slices.SortFunc(refs, func(a, b wanted) int { return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.what, b.what)) })
	refs = slices.Compact(refs)
	found := make([]answer, len(refs))
	var looking sync.WaitGroup
	for i, one := range refs {
		looking.Go(func() { found[i] = l.look(one) })
	}
	looking.Wait()
	all := make(answers, len(refs))
	for i, one := range refs {
		all[one] = found[i]
	}
	return all
}

func (l *loader) look(one wanted) answer {
	if one.kind == "keyring" {
		return answerOf(l.o.Keyring(one.what))
	}
	argv := one.argv()
	if argv == nil {
		return answer{why: `${command:} needs a program and its arguments, separated by spaces, or as an array: ${command:[\"program\", \"an argument\"]}`}
	}
	return answerOf(l.o.Run(argv))
}

func answerOf(text string, err error) answer {
	if err != nil {
		return answer{why: err.Error()}
	}
	return answer{text: text}
}

// argv are the words of a ${command:...}, or nil.
func (w wanted) argv() []string {
	argv := strings.Fields(w.what)
	if strings.HasPrefix(strings.TrimSpace(w.what), "[") {
		argv = nil
		_ = json.Unmarshal([]byte(w.what), &argv)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil
	}
	return argv
}

// programs are the commands without their arguments, which may be secret.
func (a answers) programs() []string {
	var names []string
	for one := range a {
		if argv := one.argv(); one.kind == "command" && argv != nil {
			names = append(names, argv[0])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
