package schemats

import (
	"maps"
	"strings"
)

// answer is one text with several tools. Later tools do not repeat parts of earlier ones.
type answer struct {
	o        Options
	estimate func(string) int
	said     said
	cut      bool // some description
}

// said records the contents of the text so far.
type said struct {
	types map[*def]bool
	// docs has the docs of the last property of each name, and key the name of the last
	// property with given docs.
	docs, key map[string]string
	// links has the sentences with a web address.
	links map[string]bool
}

func (s said) clone() said {
	return said{maps.Clone(s.types), maps.Clone(s.docs), maps.Clone(s.key), maps.Clone(s.links)}
}

// linked is text without sentences such as "For more information, see https://…" that the
// text so far already has.
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

// converted is a tool with its schemas converted.
type converted struct {
	Tool
	in, out *schema
	// brief is the type of the result if out would be too long; out is nil then.
	brief string
	marks marks
}

// All writes each tool completely: the named types that it needs, its description, and its
// signature as a member of a TypeScript interface, on one line or with one parameter per
// line. The caller shows the texts together, in this order: later ones do not repeat types
// and descriptions of earlier ones.
//
// estimate counts tokens. If the TypeScript is hardly shorter than the minified definition,
// or cannot express the schema, the text has the JSON Schema itself. cut reports whether a
// description is cut; it then ends with "[+N]" for N missing characters.
func All(tools []Tool, o Options, estimate func(string) int) (texts []string, cut bool) {
	a, list := newAnswer(tools, o, estimate)
	for i := range list {
		texts = append(texts, a.tool(&list[i]))
	}
	return texts, a.cut
}

// newAnswer converts the tools, and names the types that occur several times in them.
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
	return a, list
}

// result converts the output schema of t. If the type is too long, brief has its top levels.
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
	s, _ = asShown(t.Output, true) // again, without the names of this trial
	return s, ""
}

// tool is the text of one tool.
func (a *answer) tool(t *converted) string {
	before := a.said.clone()
	head, types, sig, lossy := a.parts(t)
	text := types + sig
	switch {
	case head == "":
	case !strings.Contains(sig+head, "\n") && len(sig)+len(head)+4 <= lineWidth:
		text += " // " + head
	default:
		text = types + comment(head) + "\n" + sig
	}
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

// parts are the header, the type statements and the signature of a tool. lossy reports
// whether they lack a part of the schema.
func (a *answer) parts(t *converted) (head, types, sig string, lossy bool) {
	p := &printer{o: a.o, limit: maxOutput, tight: true, said: &a.said}
	if t.in != nil {
		p.statements(t.in, a.said.types)
		lossy = t.in.lossy
	}
	types, p.b = string(p.b), nil
	// The result has its own printer, so that the parameters do not use up its limit. Its
	// named types stand above the signature, so they are written first: "as above" points up.
	q := &printer{o: a.o, limit: maxOutput, tight: true, said: &a.said}
	if t.out != nil {
		q.statements(t.out, a.said.types)
		types, q.b = types+string(q.b), nil
	}
	head = a.said.linked(t.header(t.marks))
	p.write(propertyKey(t.Name))
	if t.in == nil {
		p.write("(args?: object)")
	} else {
		list, form := p.paramList(t.in.root)
		if form {
			desc, notes := p.docs(t.in.root.body)
			if desc == prose(t.Description) {
				desc = ""
			}
			head = joinHead(head, sentence(desc, notes))
		}
		p.params(t.in.root, list, form)
	}
	lossy = lossy || p.over
	if t.out != nil {
		q.tight = p.tight
		q.result(t.out)
		lossy = lossy || t.out.lossy || q.over
	}
	a.cut = a.cut || p.cut || q.cut
	return head, types, string(p.b) + string(q.b) + t.brief, lossy
}
