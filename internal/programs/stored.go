package programs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/wire"
)

// Stored is a program in a file, which clients see as a tool.
type Stored struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments.
	Schema string
	// Parameters has the names that the doc comment declares, as a pattern of JavaScript such as {a,b}. It is "" if there are none.
	Parameters string
	// Defaults has, as a JSON object, the arguments that a call gets if it lacks them. It is nil if there are none.
	Defaults json.RawMessage
	Code     string
}

// Fault says what is wrong with a program file or its folder. Line is 0 if the fault is not on a certain line.
type Fault struct {
	File string
	Line int
	Text string
}

func (f Fault) String() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
	}
	return f.File + ": " + f.Text
}

// maxStored is how many programs of a folder are read at most. If the folder has more, the others are not read, and ReadFolder
// reports a fault.
const maxStored = 200

var storedName = pattern.New(`^[A-Za-z0-9_-]{1,64}$`)

// ReadFolder reads the programs in a folder: the files NAME.js, each of which must begin with a JSDoc comment. A file with a wrong
// name, size or comment is a fault; its code is not checked (see [Runner.Check]). Hidden files, and files with other endings, are
// ignored. forbidden are names that programs must not have. A folder that does not exist is a fault if the parameter required is
// true. Otherwise it is like an empty folder.
func ReadFolder(folder string, required bool, forbidden []string) (all []*Stored, faults []Fault) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		if required || !os.IsNotExist(err) {
			faults = append(faults, Fault{File: folder, Text: "cannot be read: " + cause(err)})
		}
		return nil, faults
	}
	for _, entry := range entries {
		name, isProgram := strings.CutSuffix(entry.Name(), ".js")
		if !isProgram || strings.HasPrefix(name, ".") || entry.IsDir() {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		fault := func(line int, text string) { faults = append(faults, Fault{path, line, text}) }
		switch {
		case !storedName.MatchString(name):
			fault(0, "its name may have letters, digits, _ and - only, at most 64")
			continue
		case slices.Contains(forbidden, name):
			fault(0, "the server mcpx has another tool of this name")
			continue
		case len(all) == maxStored:
			fault(0, fmt.Sprintf("there are more than %d programs", maxStored))
			return all, faults
		}
		code, err := readProgram(path)
		if err != nil {
			fault(0, cause(err))
			continue
		}
		program, line, why := parseStored(name, code)
		if why != "" {
			fault(line, why)
			continue
		}
		all = append(all, program)
	}
	return all, faults
}

// cause returns the text of an error without the path of the file.
func cause(err error) string {
	if path, ok := err.(*os.PathError); ok {
		return path.Err.Error()
	}
	return err.Error()
}

func readProgram(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("is not a file")
	case info.Size() > maxCode:
		return "", fmt.Errorf("is longer than %s", helper.Size(maxCode))
	}
	code, err := os.ReadFile(path)
	return string(code), err
}

// These patterns match the parts of a JSDoc comment.
var (
	paramTag   = pattern.New(`^\{([^}]*)\}\s+((?s)\S.*)$`)
	optional   = pattern.New(`^\[([^\]=]*)(=?)((?s).*)$`)
	identifier = pattern.New(`^[A-Za-z_$][A-Za-z0-9_$]*$`)
)

// parseStored reads the JSDoc comment of a program. If the comment is wrong, fault says what is wrong, and line is the line in
// the file.
func parseStored(name, code string) (s *Stored, line int, fault string) {
	start := len(code) - len(strings.TrimLeft(code, " \t\r\n\ufeff"))
	body, found := strings.CutPrefix(code[start:], "/**")
	comment, _, closed := strings.Cut(body, "*/")
	if !found || !closed {
		return nil, 1, "does not begin with a JSDoc comment (/** … */), which describes the tool"
	}
	s = &Stored{Name: name, Code: code}
	line = 1 + strings.Count(code[:start], "\n")
	var properties, required, names []string
	for _, tag := range tagsOf(comment) {
		at := line + tag.line
		switch tag.name {
		case "":
			s.Description = tag.text
		case "param":
			p, why := parseParam(tag.text)
			switch {
			case why != "":
				return nil, at, why
			case slices.Contains(names, p.name):
				return nil, at, "@param " + p.name + " is there twice"
			}
			names = append(names, p.name)
			if p.initial != "" {
				s.Defaults = wire.WithMember(s.Defaults, p.name, []byte(p.initial))
			}
			properties = append(properties, string(wire.Encode(p.name))+":"+p.schema)
			if !p.optional {
				required = append(required, p.name)
			}
		case "return", "returns":
			s.Description = strings.TrimSpace(s.Description + "\nReturns " + strings.TrimSpace(tag.text))
		}
	}
	if s.Description == "" {
		return nil, line, "its comment has no description"
	}
	s.Schema = `{"type":"object","properties":{` + strings.Join(properties, ",") + `}`
	if len(required) > 0 {
		s.Schema += `,"required":` + string(wire.Encode(required))
	}
	s.Schema += `,"additionalProperties":false}`
	if len(names) > 0 {
		s.Parameters = "{" + strings.Join(names, ",") + "}"
	}
	return s, 0, ""
}

// tag is one part of a JSDoc comment: the description, whose name is empty, or the text after an @ and a name.
type tag struct {
	name, text string
	line       int // the line within the comment, from 0
}

func tagsOf(comment string) []tag {
	all := []tag{{}}
	for i, line := range strings.Split(comment, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "*"))
		if rest, ok := strings.CutPrefix(line, "@"); ok {
			name, text, _ := strings.Cut(rest, " ")
			all = append(all, tag{name, strings.TrimSpace(text), i})
			continue
		}
		last := &all[len(all)-1]
		last.text = strings.TrimSpace(last.text + "\n" + line)
	}
	return all
}

type param struct {
	name, schema string
	initial      string // the default as JSON, or empty
	optional     bool
}

// parseParam reads "{type} name text". The parameter is optional if it is written as {type=} name, {type} [name] or
// {type} [name=default].
func parseParam(text string) (p param, fault string) {
	parts := paramTag.FindStringSubmatch(text)
	if parts == nil {
		return p, "@param is written as @param {type} name text"
	}
	written := parts[1]
	written, p.optional = strings.CutSuffix(written, "=")
	var initial, about string
	if inside := optional.FindStringSubmatch(parts[2]); inside != nil {
		p.optional, p.name, about = true, strings.TrimSpace(inside[1]), inside[3]
		if inside[2] != "" && !strings.HasPrefix(about, "]") { // the default may have brackets
			end, ok := wire.First(about)
			initial, about = strings.TrimSpace(about[:end]), strings.TrimSpace(about[end:])
			if !ok || !strings.HasPrefix(about, "]") {
				return p, fmt.Sprintf("@param %s: the default must be JSON, such as 5 or \"text\"", p.name)
			}
		}
		about = strings.TrimPrefix(about, "]")
	} else {
		end := strings.IndexFunc(parts[2]+" ", unicode.IsSpace)
		p.name, about = parts[2][:end], parts[2][end:]
	}
	if !identifier.MatchString(p.name) || reserved[p.name] {
		return p, fmt.Sprintf("@param %q: the name must be an identifier of JavaScript", p.name)
	}
	schema, ok := typeOf(written)
	if !ok {
		return p, fmt.Sprintf("@param %s: the type %q is not known; there are string, number, integer, boolean, object, array, any, TYPE[] and \"a\"|\"b\"", p.name, written)
	}
	if initial != "" {
		schema = string(wire.WithMember(json.RawMessage(schema), "default", json.RawMessage(initial)))
		p.initial = initial
	}
	if about = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(about), "-")); about != "" {
		schema = string(wire.WithMember(json.RawMessage(schema), "description", wire.Encode(about)))
	}
	p.schema = schema
	return p, ""
}

// typeOf returns the JSON Schema of a type in a JSDoc comment. ok is false if the type is not known.
func typeOf(written string) (schema string, ok bool) {
	written = strings.TrimSpace(written)
	if item, isArray := strings.CutSuffix(written, "[]"); isArray {
		item, ok := typeOf(item)
		return `{"type":"array","items":` + item + `}`, ok
	}
	switch written {
	case "string", "number", "integer", "boolean", "object", "array":
		return `{"type":"` + written + `"}`, true
	case "int":
		return `{"type":"integer"}`, true
	case "any", "*":
		return `{}`, true
	}
	var words []json.RawMessage
	for word := range strings.SplitSeq(written, "|") {
		word = strings.ReplaceAll(strings.TrimSpace(word), "'", `"`)
		if !json.Valid([]byte(word)) || word[0] != '"' {
			return "", false
		}
		words = append(words, json.RawMessage(word))
	}
	return `{"enum":` + string(wire.Encode(words)) + `}`, true
}

// reserved are words that cannot be names of parameters: words of JavaScript, and the names of the functions and objects that
// programs can use.
var reserved = make(map[string]bool)

func init() {
	for word := range strings.FieldsSeq("arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for " +
		"function if import in instanceof let new null return static super switch this throw true try typeof var void while with yield call result file console") {
		reserved[word] = true
	}
}

// Print returns a text that identifies the state of a folder: it changes when the name, the size or the modification time of a
// program changes. It is empty if the folder cannot be read.
func Print(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%q\n", folder)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), ".js") {
			fmt.Fprintf(&out, "%q %d %d\n", entry.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return out.String()
}
