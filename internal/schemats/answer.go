package schemats

import (
	"maps"
	"strings"
)

// answer is one text of several tools. What it has said already it does not
// repeat.
type answer struct {
	o        Options
	estimate func(string) int
	said     said
	cut      bool
}

// said is what the text so far has.
type said struct {
	types map[*def]bool
	// docs are those of the last property of each name; key is the last property
	// with such docs.
	docs, key map[string]string
	// links are the sentences that point to a page.
	links map[string]bool
}

func (s said) clone() said {
	return said{maps.Clone(s.types), maps.Clone(s.docs), maps.Clone(s.key), maps.Clone(s.links)}
}

// linked is text without the sentences that point to a page, as "For more
// information, see https://…", and stand above.
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

// read is a tool with its schemas converted.
type read struct {
	Tool
	in, out *schema
	// brief is the type of a result that is too long for out.
	brief string
	marks marks
}

// All is the whole of each tool for a model: named types that it needs, the full
// description, and a signature that is a valid member of an interface. It is one line
// where that fits, else one parameter a line. estimate counts the tokens of a text;
// where the TypeScript does not come out smaller than the minified {name, description,
// inputSchema, outputSchema}, or cannot express the schema, the schema itself is given.
//
// The tools stand in one text, in that order: types and descriptions that stand above
// are not repeated. cut says that a description is cut; the place has "[+N]" for N
// characters that are missing.
func All(tools []Tool, o Options, estimate func(string) int) (texts []string, cut bool) {
	a, list := newAnswer(tools, o, estimate)
	for i := range list {
		texts = append(texts, a.tool(&list[i]))
	}
	return texts, a.cut
}

// newAnswer converts the tools, and names what stands several times in them.
func newAnswer(tools []Tool, o Options, estimate func(string) int) (*answer, []read) {
	a := &answer{o: o, estimate: estimate, said: said{map[*def]bool{}, map[string]string{}, map[string]string{}, map[string]bool{}}}
	names := newSharing()
	list := make([]read, len(tools))
	for i, t := range tools {
		r := read{Tool: t, in: load(t.Input, "Args")}
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

// result converts the output schema of t. Of one that prints too long it gives
// the top levels.
func (a *answer) result(t Tool) (s *schema, brief string) {
	s = load(t.Output, "Result").orJSON()
	if s == nil || a.o.MaxResult <= 0 {
		return s, ""
	}
	names := newSharing()
	names.add(s, false)
	names.name()
	p := &printer{o: a.o, limit: maxOutput, tight: true}
	p.statements(s, map[*def]bool{})
	p.result(s)
	if a.estimate(string(p.b)) > a.o.MaxResult {
		return nil, ": " + s.brief(a.o.MaxResult, shortened, a.estimate)
	}
	return load(t.Output, "Result").orJSON(), ""
}

// tool is the text of one tool.
func (a *answer) tool(t *read) string {
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

// parts are the header, the type statements and the signature of a tool. lossy:
// the schema itself says more.
func (a *answer) parts(t *read) (head, types, sig string, lossy bool) {
	p := &printer{o: a.o, limit: maxOutput, tight: true, said: &a.said}
	if t.in != nil {
		p.statements(t.in, a.said.types)
		lossy = t.in.lossy
	}
	types, p.b = string(p.b), nil
	head = a.said.linked(t.header(a.o, t.marks))
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
	// A result that is too long must not cut the parameters.
	q := &printer{o: a.o, limit: maxOutput, tight: true, said: &a.said}
	if t.out != nil {
		q.statements(t.out, a.said.types)
		types += string(q.b)
		q.b, q.tight = nil, p.tight
		q.result(t.out)
		lossy = lossy || t.out.lossy || q.over
	}
	a.cut = a.cut || p.cut || q.cut
	return head, types, string(p.b) + string(q.b) + t.brief, lossy
}

// statements writes the types that s needs by name and printed does not have.
func (p *printer) statements(s *schema, printed map[*def]bool) {
	for _, d := range namedIn(s.root.body, map[*typ]bool{}, nil) {
		if !printed[d] {
			printed[d] = true
			p.statement(d.name, d.body)
		}
	}
}
