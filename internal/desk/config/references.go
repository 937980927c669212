package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/base/pattern"
)

// maxExpanded is the largest size, in bytes, of a value while its references are being expanded. The size is checked after each
// reference. Without this limit, a value that repeats a long variable could use up the memory.
const maxExpanded = 1 << 20

var (
	variable  = pattern.New(`^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$`)
	headerKey = pattern.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// editorOnly are VS Code's predefined variables whose values only an editor knows.
var editorOnly = []string{"workspaceFolder", "workspaceFolderBasename", "file", "fileDirname", "fileWorkspaceFolder", "cwd"}

// expand returns the text of n with its references replaced by their values: ${VAR}, ${VAR:-default}, VS Code's ${env:VAR},
// ${userHome} and ${pathSeparator}, and references to the keyring, to files and to commands. As in a shell, the default is also
// used if the variable is empty. A reference ends at the first '}'. A reference without a value is a fault, unless its value is
// not known yet (see external). A ${...} of a form that mcpx does not know stays as it is, as does a '$' without '{'.
func (r *serverReader) expand(n *node) string {
	var b strings.Builder
	s := n.text
	for {
		start := strings.Index(s, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(s[start:], '}')
		if length < 0 {
			break
		}
		b.WriteString(s[:start])
		value, reason := r.resolve(n, s[start+2:start+length])
		if reason != "" {
			r.fail(n, "%s", reason)
		}
		b.WriteString(value)
		s = s[start+length+1:]
		if b.Len() > maxExpanded {
			r.fail(n, "is longer than %d bytes after expansion", maxExpanded)
			return ""
		}
	}
	b.WriteString(s)
	if strings.IndexByte(b.String(), 0) >= 0 {
		r.fail(n, "must not contain a NUL character")
		return ""
	}
	return b.String()
}

// resolve returns the value of a reference. The parameter reference is the text between ${ and }. If mcpx does not know the form of
// the reference, the value is the unchanged ${...}. If there is no value, reason says why; otherwise reason is "".
func (r *serverReader) resolve(n *node, reference string) (value, reason string) {
	switch reference {
	case "userHome":
		return r.home()
	case "pathSeparator", "/":
		return string(filepath.Separator), ""
	}
	if kind, argument, ok := strings.Cut(reference, ":"); ok && (kind == "keyring" || kind == "file" || kind == "command") {
		return r.external(kind, argument)
	}
	parts := variable.FindStringSubmatch(reference)
	if parts == nil {
		editor, _, ok := strings.Cut(reference, ":")
		if ok && slices.Contains([]string{"input", "config", "prompt"}, editor) {
			return "", fmt.Sprintf("only an editor can fill in %s, use an environment variable", quote("${"+reference+"}"))
		}
		// The warning does not quote the reference, because it may contain a default value that is secret.
		r.l.unexpanded.add(n.path(), "")
		return "${" + reference + "}", ""
	}
	name := parts[1]
	value, set := r.l.o.Getenv(name)
	if value != "" {
		if !slices.Contains(surroundings, strings.ToUpper(name)) {
			r.secret(value, secretKey.MatchString(name))
		}
		return value, ""
	}
	if strings.Contains(reference, ":-") {
		return parts[2], ""
	}
	switch {
	case set:
		return "", ""
	case slices.Contains(editorOnly, name):
		return "", fmt.Sprintf("only an editor can fill in %s, write the path", quote("${"+name+"}"))
	}
	return "", fmt.Sprintf("environment variable %s is not set", name)
}

// home returns the home folder. If it is unknown, reason says so; otherwise reason is "".
func (r *serverReader) home() (folder, reason string) {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := r.l.o.Getenv(name); home != "" {
			return home, ""
		}
	}
	return "", "the home folder is unknown, because neither HOME nor USERPROFILE is set: set HOME, or write the whole path"
}

// expanded expands the references in a string outside of servers. ok is false if n is not a string or has a fault, or if the text
// still contains a ${...}. A ${...} stays if its form is unknown. A reference to the keyring or a command also stays while the file
// is read for the first time, and if [Options] has no function for it. If ok is false, the caller must not use the text as a key or
// token, because everyone who can read the file knows the reference in it.
func (l *loader) expanded(n *node) (text string, ok bool) {
	if !l.expectKind(stringKind, n) {
		return "", false
	}
	r := l.serverReader()
	text = r.expand(n)
	l.wanted[""] = append(l.wanted[""], r.wanted...)
	if l.o.Absent && len(r.faults) > 0 {
		return n.text, false
	}
	l.faults = append(l.faults, r.faults...)
	for value := range r.secrets {
		l.cfg.Secrets = append(l.cfg.Secrets, value)
	}
	later := l.o.Absent || l.answers == nil && len(r.wanted) > 0 || l.o.Keyring == nil && l.o.Run == nil
	if ok = len(r.faults) == 0 && !strings.Contains(text, "${"); !ok && !later && len(r.faults) == 0 {
		l.fault(n, "has a ${...} without a value")
	}
	return text, ok
}

// path reads the path of a file or folder and makes it absolute.
func (l *loader) path(into *string) value {
	return value{into: into, schema: text, read: func(n *node) {
		switch path, ok := l.absolute(n); {
		case ok && path != "":
			*into = path
		case !ok && l.o.Absent:
			// A reference in the path has no value, so the path stays as it is written. It is made absolute nevertheless: if it
			// were relative, it would lead into the working folder, which may be foreign.
			*into, _ = (&serverReader{l: l}).absolute(n.text)
		}
	}}
}

// absolute reads a path that is not in a server, expands its references and makes it absolute; an empty path stays empty. If there
// is no path, because of a fault or because a reference has no value, ok is false.
func (l *loader) absolute(n *node) (path string, ok bool) {
	path, ok = l.expanded(n)
	if !ok || path == "" {
		return "", ok
	}
	path, reason := (&serverReader{l: l}).absolute(path)
	if reason != "" && !l.o.Absent {
		l.fault(n, "%s", reason)
	}
	return path, reason == ""
}

// folders reads names of folders and makes them absolute.
func (l *loader) folders(into *[]string) value {
	return value{into: into, schema: texts, read: func(n *node) {
		if _, ok := l.strings(n); !ok {
			return
		}
		*into = nil
		for _, item := range n.items {
			folder, ok := l.absolute(item)
			if !ok {
				continue
			}
			if folder = filepath.Clean(folder); folder == filepath.Dir(folder) { // also if the text is empty
				l.fault(item, "must be a folder, and not the root of the file system")
				continue
			}
			*into = append(*into, folder)
		}
	}}
}

// secret reads a string and adds it to [Config.Secrets].
func (l *loader) secret(into *string) value {
	return value{schema: text, read: func(n *node) {
		*into, _ = l.expanded(n)
		if *into = strings.TrimSpace(*into); *into != "" {
			l.cfg.Secrets = append(l.cfg.Secrets, *into)
		}
	}}
}

// secrets reads one secret or a list of secrets. The parameter minimum is the smallest length of a secret, in bytes. The fault for
// a shorter one quotes risk, which says what could happen. If trimmed is true, white space around a secret is dropped, and a single
// empty string means that there is no secret. mcpx encrypts and signs with the first secret, and also accepts what was encrypted or
// signed with one of the others. So a user can replace a secret, and what the old one has signed remains valid.
func (l *loader) secrets(into *[]string, minimum int, risk string, trimmed bool) value {
	return value{into: into, schema: `{"anyOf": [` + text + `, ` + someTexts + `]}`, read: func(n *node) {
		items := []*node{n}
		if n.kind == arrayKind {
			if items = n.items; len(items) == 0 {
				l.fault(n, "must not be empty: leave the key out for no secret")
			}
		}
		*into = nil
		for _, item := range items {
			one, ok := l.expanded(item)
			if trimmed {
				one = strings.TrimSpace(one)
			}
			if ok && len(one) < minimum && (one != "" || n.kind == arrayKind || !trimmed) {
				l.fault(item, "must be at least %d characters long, such as the output of openssl rand -hex 32: %s", minimum, risk)
			}
			if one != "" {
				*into, l.cfg.Secrets = append(*into, one), append(l.cfg.Secrets, one)
			}
		}
	}}
}

// wanted is a reference whose value may take long to get: ${keyring:ARGUMENT}, since the keyring may ask the user, or
// ${command:ARGUMENT}, since the command has to run. Therefore a file with such references is read twice. The first reading
// collects the references. Then all values are fetched at the same time, and the second reading uses them.
type wanted struct{ kind, argument string }

// answer is the value of a reference, or the reason why there is no value.
type answer struct{ text, reason string }

type answers map[wanted]answer

// external returns the value of ${keyring:NAME}, ${file:PATH} or ${command:...}, without line breaks at its end. If there is no
// value, reason says why. The value from the keyring or a command is not known while the file is read for the first time. Later it
// is unknown if [Options] has no function for it, if [Options.Only] excludes the server, or if the server is disabled. If the value
// is unknown, external returns the reference unchanged. If there is a function, external also adds the reference to r.wanted.
func (r *serverReader) external(kind, argument string) (text, reason string) {
	one := wanted{kind, argument}
	v, looked := r.l.answers[one]
	switch {
	case kind == "file":
		v = r.file(argument)
	case !looked:
		if kind == "keyring" && r.l.o.Keyring != nil || kind == "command" && r.l.o.Run != nil {
			r.wanted = append(r.wanted, one)
		}
		text = "${" + kind + ":" + argument + "}"
		// The reference counts as a credential, like its value. So the cached catalogue of the server is still used when the value
		// replaces it.
		r.secret(text, true)
		return text, ""
	}
	if v.text = strings.TrimRight(v.text, "\r\n"); v.text == "" && v.reason == "" {
		v.reason = fmt.Sprintf("the value of ${%s:} is empty", kind)
	}
	if v.reason == "" {
		r.secret(v.text, true)
	}
	return v.text, v.reason
}

// absolute makes a path in the config absolute, if the path of the config file is absolute. ~/ means the home folder, and other
// paths are relative to the folder of the config file. If the home folder is needed and unknown, reason says so.
func (r *serverReader) absolute(path string) (absolute, reason string) {
	path, reason = r.inHome(path)
	if reason == "" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.l.cfg.Path), path)
	}
	return path, reason
}

// inHome replaces ~/ at the beginning of a path by the home folder. If that is unknown, reason says so, and expanded is empty.
func (r *serverReader) inHome(path string) (expanded, reason string) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, ""
	}
	home, reason := r.home()
	if reason != "" {
		return "", reason
	}
	return filepath.Join(home, rest), ""
}

func (r *serverReader) file(path string) answer {
	path, reason := r.absolute(path)
	if reason != "" {
		return answer{reason: reason}
	}
	data, err := r.l.o.ReadFile(path)
	if err != nil {
		return answer{reason: fmt.Sprintf("file %s cannot be read: %v", quote(path), err)}
	}
	return answer{text: string(data)}
}

// needed returns the references whose values must be fetched: those outside of servers, and those in enabled servers. If
// [Options.Only] has names, and the file has all of these servers, references in other servers are left out.
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

// lookUp fetches the values of all references at the same time, each value only once.
func (l *loader) lookUp(refs []wanted) answers {
	slices.SortFunc(refs, func(a, b wanted) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.argument, b.argument))
	})
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
		return answerOf(l.o.Keyring(one.argument))
	}
	argv := one.argv()
	if argv == nil {
		return answer{reason: `${command:} needs a program and its arguments, separated by spaces, or as an array: ${command:[\"program\", \"an argument\"]}`}
	}
	return answerOf(l.o.Run(argv))
}

func answerOf(text string, err error) answer {
	if err != nil {
		return answer{reason: err.Error()}
	}
	return answer{text: text}
}

// argv returns the program and the arguments of a ${command:...}, or nil if there is no program or the array is invalid.
func (w wanted) argv() []string {
	argv := strings.Fields(w.argument)
	if strings.HasPrefix(strings.TrimSpace(w.argument), "[") {
		argv = nil
		_ = json.Unmarshal([]byte(w.argument), &argv)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil
	}
	return argv
}

// programs returns the programs of the ${command:...} references in a. It leaves out the arguments, which may be secret.
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
