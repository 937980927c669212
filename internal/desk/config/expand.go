package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
)

// maxExpanded bounds one value after expansion: a long variable named often
// enough would take all memory.
const maxExpanded = 1 << 20

var (
	variable  = pattern.New(`^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$`)
	headerKey = pattern.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// The variables of VS Code that an editor knows and mcpx cannot.
var editorOnly = []string{"workspaceFolder", "workspaceFolderBasename", "file", "fileDirname", "fileWorkspaceFolder", "cwd"}

// expand replaces ${VAR} and ${VAR:-default} (the default also for an empty
// variable, as in a shell), VS Code's ${env:VAR}, and what [elsewhere] has. A reference ends at the
// first brace. Other text stays, a lone $ too. A reference without a value is a fault of
// this server.
func (r *serverReader) expand(path string, offset int, s string) string {
	var b strings.Builder
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
		value, why := r.resolve(path, s[start+2:start+length])
		if why != "" {
			r.fail(path, offset, "%s", why)
		}
		b.WriteString(value)
		s = s[start+length+1:]
		if b.Len() > maxExpanded {
			r.fail(path, offset, "is longer than %d bytes after expansion", maxExpanded)
			return ""
		}
	}
	b.WriteString(s)
	if strings.IndexByte(b.String(), 0) >= 0 {
		r.fail(path, offset, "must not contain a NUL character")
		return ""
	}
	return b.String()
}

// resolve is the value of a reference, the text between the braces, or why it has none.
func (r *serverReader) resolve(path, reference string) (value, why string) {
	switch reference {
	case "userHome":
		return r.home(), ""
	case "pathSeparator", "/":
		return string(filepath.Separator), ""
	}
	if kind, what, ok := strings.Cut(reference, ":"); ok && (kind == "keyring" || kind == "file" || kind == "command") {
		return r.elsewhere(kind, what)
	}
	parts := variable.FindStringSubmatch(reference)
	if parts == nil {
		editor, _, ok := strings.Cut(reference, ":")
		if ok && slices.Contains([]string{"input", "config", "prompt"}, editor) {
			return "", fmt.Sprintf("only an editor can fill in %s, use an environment variable", quote("${"+reference+"}"))
		}
		// What it says may be a secret that was meant as a default.
		r.l.strange.add(path, "")
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

func (r *serverReader) home() string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := r.l.o.Getenv(name); home != "" {
			return home
		}
	}
	return ""
}

// expanded is a text outside of the servers, with its references resolved. ok is false
// where the value is not known: after a fault, or as it has not been looked up. It is
// never used as it is written: what promises safety would be known to everybody.
func (l *loader) expanded(path string, n *node) (text string, ok bool) {
	if !l.is(stringKind, path, n) {
		return "", false
	}
	r := &serverReader{l: l, path: path, secrets: map[string]bool{}}
	text = r.expand(path, n.offset, n.text)
	l.wanted[""] = append(l.wanted[""], r.wanted...)
	l.faults = append(l.faults, r.faults...)
	for value := range r.secrets {
		l.cfg.Secrets = append(l.cfg.Secrets, value)
	}
	later := l.answers == nil && len(r.wanted) > 0 || l.o.Keyring == nil && l.o.Run == nil
	if ok = len(r.faults) == 0 && !strings.Contains(text, "${"); !ok && !later && len(r.faults) == 0 {
		l.fault(path, n.offset, "has a ${...} without a value")
	}
	return text, ok
}

// path reads the name of a file, which may have variables ([serverReader.absolute]).
func (l *loader) path(into *string) value {
	return value{into: into, schema: text, read: func(path string, n *node) {
		if name, ok := l.expanded(path, n); ok && name != "" {
			*into = (&serverReader{l: l}).absolute(name)
		}
	}}
}

// secret reads a text that is struck out of logs.
func (l *loader) secret(into *string) value {
	return value{schema: text, read: func(path string, n *node) {
		*into, _ = l.expanded(path, n)
		if *into = strings.TrimSpace(*into); *into != "" {
			l.cfg.Secrets = append(l.cfg.Secrets, *into)
		}
	}}
}
