package compress

import (
	"errors"
	"fmt"
	"strings"
)

// readScript evaluates JavaScript as this package writes it, and returns the value as JSON, with each literal as in the text.
// It understands only this part of the language.
func readScript(text string) (value string, err error) {
	r := &scriptReader{src: text, consts: map[string]string{}, functions: map[string]scriptFunction{}}
	defer func() {
		if broken, ok := recover().(scriptError); ok {
			err = broken
		}
	}()
	for r.word("const ") {
		name := r.ident()
		r.must("=")
		if r.has("(") && !r.hasAt(1, "{") {
			r.function(name)
		} else {
			r.consts[name] = r.expr(nil)
		}
		r.word(";")
		r.must("\n")
	}
	if r.word("(") {
		value = r.expr(nil)
		r.must(")")
	} else {
		value = r.expr(nil)
	}
	if r.src != "" {
		return "", fmt.Errorf("left: %.40q", r.src)
	}
	return value, nil
}

type scriptError struct{ error }

type scriptFunction struct {
	params    []string
	fallbacks map[string]string
	body      string
}

type scriptReader struct {
	src       string
	consts    map[string]string
	functions map[string]scriptFunction
	size      int
}

func (r *scriptReader) fail(what string) { panic(scriptError{fmt.Errorf("%s at %.60q", what, r.src)}) }

func (r *scriptReader) has(s string) bool { return strings.HasPrefix(r.src, s) }

func (r *scriptReader) hasAt(i int, s string) bool {
	return len(r.src) > i && strings.HasPrefix(r.src[i:], s)
}

func (r *scriptReader) word(s string) (ok bool) {
	r.src, ok = strings.CutPrefix(r.src, s)
	return ok
}

func (r *scriptReader) must(s string) {
	if !r.word(s) {
		r.fail("no " + s)
	}
}

func (r *scriptReader) ident() string {
	n := 0
	for n < len(r.src) && (letter(r.src[n]) || r.src[n] == '_' || r.src[n] == '$' || n > 0 && '0' <= r.src[n] && r.src[n] <= '9') {
		n++
	}
	if n == 0 {
		r.fail("no name")
	}
	name := r.src[:n]
	r.src = r.src[n:]
	return name
}

func (r *scriptReader) function(name string) {
	f := scriptFunction{fallbacks: map[string]string{}}
	r.must("(")
	for !r.word(")") {
		if len(f.params) > 0 {
			r.must(",")
		}
		param := r.ident()
		f.params = append(f.params, param)
		if r.word("=") {
			f.fallbacks[param] = r.expr(nil)
		}
	}
	r.must("=>(")
	// Evaluate the body once with arbitrary values, to find where it ends.
	values := map[string]string{}
	for _, p := range f.params {
		values[p] = "0"
	}
	body := r.src
	r.expr(values)
	f.body = body[:len(body)-len(r.src)]
	r.must(")")
	if _, twice := r.functions[name]; twice || reserved[name] {
		r.fail("name " + name)
	}
	r.functions[name] = f
}

// expr evaluates an expression to JSON.
func (r *scriptReader) expr(values map[string]string) string {
	if r.src == "" {
		r.fail("no expression")
	}
	switch c := r.src[0]; {
	case c == '{' || c == '[':
		return r.container(values)
	case c == '"':
		end := stringEnd(r.src, 0)
		text := r.src[:end]
		r.src = r.src[end:]
		return text
	case c == '`':
		return r.template(values)
	case c == '-' || '0' <= c && c <= '9':
		n := len(r.src) - len(strings.TrimLeft(r.src, "-+.eE0123456789"))
		text := r.src[:n]
		r.src = r.src[n:]
		return text
	}
	name := r.ident()
	if name == "true" || name == "false" || name == "null" {
		return name
	}
	if r.has("(") {
		return r.call(name, values)
	}
	value, ok := values[name]
	if !ok {
		value, ok = r.consts[name]
	}
	if !ok {
		r.fail("unknown " + name)
	}
	if r.size += len(value); r.size > 1<<28 {
		panic(scriptError{errors.New("too large")})
	}
	return value
}

func (r *scriptReader) container(values map[string]string) string {
	var out strings.Builder
	open := r.src[0]
	out.WriteByte(open)
	r.src = r.src[1:]
	for n := 0; !r.word(string(open + 2)); n++ {
		if n > 0 {
			r.must(",")
			out.WriteByte(',')
		}
		if open == '[' {
			out.WriteString(r.expr(values))
			continue
		}
		if r.has(`"`) {
			out.WriteString(r.expr(nil) + ":")
			r.must(":")
			out.WriteString(r.expr(values))
			continue
		}
		key := r.ident()
		out.WriteString(`"` + key + `":`)
		if r.word(":") {
			out.WriteString(r.expr(values))
		} else if value, ok := values[key]; ok {
			out.WriteString(value)
		} else {
			r.fail("unknown " + key)
		}
	}
	return out.String() + string(open+2)
}

func (r *scriptReader) template(values map[string]string) string {
	var out strings.Builder
	out.WriteByte('"')
	for r.src = r.src[1:]; !r.word("`"); {
		if r.word("${") {
			value, ok := values[r.ident()]
			if !ok {
				r.fail("unknown in a template")
			}
			out.WriteString(strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`))
			r.must("}")
			continue
		}
		if r.src == "" || r.src[0] == '\\' {
			r.fail("in a template")
		}
		out.WriteByte(r.src[0])
		r.src = r.src[1:]
	}
	return out.String() + `"`
}

func (r *scriptReader) call(name string, outer map[string]string) string {
	f, ok := r.functions[name]
	if !ok {
		r.fail("unknown function " + name)
	}
	values := map[string]string{}
	r.must("(")
	for n := 0; !r.word(")"); n++ {
		if n > 0 {
			r.must(",")
		}
		if n == len(f.params) {
			r.fail("too many arguments")
		}
		values[f.params[n]] = r.expr(outer)
	}
	for _, p := range f.params[len(values):] {
		fallback, ok := f.fallbacks[p]
		if !ok {
			r.fail("no argument " + p)
		}
		values[p] = fallback
	}
	rest := r.src
	r.src = f.body
	value := r.expr(values)
	r.src = rest
	return value
}
