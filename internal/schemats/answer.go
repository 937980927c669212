package schemats

import (
	"maps"
	"strconv"
	"strings"
)

// answer is one text about several tools. What is written for one tool is not repeated for later ones.
type answer struct {
	o        Options
	estimate func(string) int
	said     said
	cut      bool // a description was cut
	// apartTypes is the number in the names of the last types Args and Result (see the method number). A tool has these types if its
	// arguments are not written as parameters.
	apartTypes int
	names      map[string]int // the names of types in use; see freeName
}

// said records what the text of an answer contains so far, so that it is not written again.
type said struct {
	types map[*def]bool
	// docs maps the name of a property to the description (with notes) of the last property with this name. The field key is the
	// reverse map: from a description to the name of the last property with this description.
	docs, key map[string]string
	// links is the set of sentences in the text that contain a web address.
	links map[string]bool
}

func (s said) clone() said {
	return said{maps.Clone(s.types), maps.Clone(s.docs), maps.Clone(s.key), maps.Clone(s.links)}
}

// linked returns the parameter text without the sentences that contain a web address and were written before in this answer, such
// as "For more information, see https://…".
func (s *said) linked(text string) string {
	if s == nil || !strings.Contains(text, "://") {
		return text
	}
	return without(text, func(sentence string) bool {
		if !strings.Contains(sentence, "://") || listItem(sentence) {
			return false
		}
		again := s.links[sentence]
		s.links[sentence] = true
		return again
	})
}

// converted is a tool, together with the types that its schemas were converted to.
type converted struct {
	Tool
	in, out *schema
	// brief is the type of the result without its deeper levels. It is set instead of out if the complete type would be too
	// long.
	brief string
	marks marks
}

// All writes each tool completely: the named types that it needs, its description, and its signature as a member of a
// TypeScript interface, on one line or with one parameter per line. The texts must be shown together and in this order, since
// types and descriptions in earlier texts are not repeated in later ones.
//
// estimate counts tokens. If the TypeScript cannot express the schema, the text has the JSON Schema instead. It also has the JSON
// Schema if the text with TypeScript would be hardly shorter than the minified definition of the tool, and longer than the text
// with the JSON Schema. cut reports whether a description was cut. Such a description ends with "[+N]", where N is the number of
// missing characters.
func All(tools []Tool, o Options, estimate func(string) int) (texts []string, cut bool) {
	a, list := newAnswer(tools, o, estimate)
	for i := range list {
		texts = append(texts, a.tool(&list[i]))
	}
	return texts, a.cut
}

// newAnswer converts the tools, and gives names to the types that occur several times in them.
func newAnswer(tools []Tool, o Options, estimate func(string) int) (*answer, []converted) {
	a := &answer{o: o, estimate: estimate}
	a.said = said{map[*def]bool{}, map[string]string{}, map[string]string{}, map[string]bool{}}
	names := newSharing()
	list := make([]converted, len(tools))
	for i, t := range tools {
		r := converted{Tool: t, in: load(t.Input, "Args")}
		r.out, r.brief = a.result(t)
		r.marks = mark(r.in, r.out)
		names.scope = r.marks
		names.add(r.in, true)
		names.add(r.out, false)
		list[i] = r
	}
	names.name()
	a.names = names.used
	return a, list
}

// result converts the output schema of t to a type. If the type has more than MaxResult tokens, s is nil and brief has the top
// levels of the type. If t has no output schema, s is nil and brief is empty.
func (a *answer) result(t Tool) (s *schema, brief string) {
	s, _ = asShown(t.Output, true)
	if s == nil || a.o.MaxResult <= 0 {
		return s, ""
	}
	nameShared(nil, s)
	p := &printer{o: a.o, limit: maxOutput, tight: true}
	p.statements(s, map[*def]bool{})
	p.result(s)
	if a.estimate(string(p.b)) > a.o.MaxResult {
		return nil, ": " + s.brief(a.o.MaxResult, shortened, a.estimate)
	}
	s, _ = asShown(t.Output, true) // convert it again, since nameShared has given names to types in the first conversion
	return s, ""
}

// tool returns the text of one tool: its TypeScript, or its name and JSON Schema (see All).
func (a *answer) tool(t *converted) string {
	before := a.said.clone()
	head, types, sig, after, lossy := a.parts(t)
	text := types + sig
	switch {
	case head == "":
	case !strings.Contains(sig+head, "\n") && len(sig)+len(head)+4 <= lineWidth:
		text += " // " + head
	default:
		text = types + comment(head) + "\n" + sig
	}
	text += after
	raw := rawTool(t.Tool)
	if len(raw) > maxOutput {
		return text
	}
	fallback := t.fallback(a.o, a.estimate)
	if fallback == "" || !lossy && a.estimate(text) <= a.estimate(raw)*94/100 {
		return text
	}
	if lossy || a.estimate(fallback) < a.estimate(text) {
		a.said = before
		return fallback
	}
	return text
}

// parts returns the header, the type statements and the signature of a tool. lossy reports whether a part of the schema is
// missing in them.
//
// If the arguments cannot be written as parameters, the signature is only the name, and separate has the types Args and Result
// as type statements. The arguments are not written as one parameter named args, because models then send {"args": …}.
func (a *answer) parts(t *converted) (head, types, sig, separate string, lossy bool) {
	p := &printer{o: a.o, limit: maxOutput, tight: true, said: &a.said}
	if t.in != nil {
		p.statements(t.in, a.said.types)
		lossy = t.in.lossy
	}
	types, p.b = string(p.b), nil
	// The result has its own printer, so that the parameters do not use up its limit. The named types of the result are written
	// before the parameters, because they stand above the signature: a comment "as above" must refer to something that stands above
	// it.
	q := &printer{o: a.o, limit: maxOutput, tight: true, said: &a.said}
	if t.out != nil {
		q.statements(t.out, a.said.types)
		types, q.b = types+string(q.b), nil
	}
	head = a.said.linked(t.header(t.marks))
	p.write(propertyKey(t.Name))
	list, form := p.paramList(t.in)
	if form {
		if t.in == nil {
			p.write(anyArguments)
		} else {
			desc, notes := p.docs(t.in.root.body)
			if desc == prose(t.Description) {
				desc = ""
			}
			head = joinHead(head, sentence(desc, notes))
			p.params(list)
		}
		if t.out != nil {
			q.tight = p.tight
			q.result(t.out)
		}
		sig = string(p.b) + string(q.b) + t.brief
	} else {
		sig, p.b = string(p.b), nil
		separate = a.apart(t, p, q)
	}
	lossy = lossy || p.over || t.out != nil && (t.out.lossy || q.over)
	a.cut = a.cut || p.cut || q.cut
	return head, types, sig, separate, lossy
}

// apart returns type statements for a tool whose arguments cannot be written as parameters: Args, which the printer p writes, and
// Result, which q writes. If several tools in an answer have such types, their names are numbered.
func (a *answer) apart(t *converted, p, q *printer) string {
	number := a.number(t)
	if name := "Args" + number; !t.in.isCalled(name) {
		p.statement(name, t.in.root.ref())
	}
	switch {
	case t.brief != "":
		q.write("type Result", number, " = ", strings.TrimPrefix(t.brief, ": "), ";\n")
	case t.out != nil && !t.out.isCalled("Result"+number) && !q.saysNothing(t.out):
		q.statement("Result"+number, t.out.root.ref())
	}
	if len(p.b)+len(q.b) == 0 {
		return ""
	}
	return "\n" + strings.TrimSuffix(string(p.b)+string(q.b), "\n")
}

// number returns the number that the types Args and Result of t get. No other type has these names with this number.
func (a *answer) number(t *converted) (number string) {
	free := func(name string, s *schema) bool { return a.names[name] == 0 || s.isCalled(name) }
	for {
		if a.apartTypes++; a.apartTypes > 1 {
			number = strconv.Itoa(a.apartTypes)
		}
		if free("Args"+number, t.in) && free("Result"+number, t.out) {
			return number
		}
	}
}

// isCalled reports whether the root of s is a recursive type with this name.
func (s *schema) isCalled(name string) bool { return s != nil && s.root.named && s.root.name == name }
