package search

import (
	"hash/maphash"
	"strings"

	"mcpx/internal/base/catalog"
)

// The index has only the first maxText bytes of each text, such as a description. It has nothing of a schema with more than
// maxSchema bytes.
const (
	maxText   = 8 << 10
	maxSchema = 256 << 10
)

// eventsPerTool is the initial capacity for the words of a tool (see event); most tools have fewer.
const eventsPerTool = 80

// builder fills an index, server by server.
type builder struct {
	x     *Index
	terms terms
	// tool collects the words of tools, and each of its documents is a tool. srv collects the words of servers, and each of its
	// documents is a server.
	tool, srv corpus
	// last maps each definition to the number of the last tool that has it.
	last map[definition]uint32
	seed maphash.Seed
}

// definition identifies what a tool does. Tools with equal definitions, on whatever servers, are taken as the same tool. The field
// schema is a hash of the input schema.
type definition struct {
	name, description string
	schema            uint64
}

func newBuilder(tools int) *builder {
	x := &Index{vocab: make(map[string]uint32, 6*tools), named: map[string]uint32{}}
	x.tools = make([]toolRef, 0, tools)
	b := &builder{
		x: x, last: make(map[definition]uint32, tools), seed: maphash.MakeSeed(),
		terms: terms{x: x, cache: make(map[string]entry, 6*tools)},
	}
	b.tool.events = make([]event, 0, eventsPerTool*tools)
	return b
}

func (b *builder) addServer(s *catalog.Server) {
	at := uint32(len(b.x.servers))
	ref := serverRef{name: s.Name, first: uint32(len(b.x.tools))}
	lead, _ := splitLead(s.Purpose())
	b.add(&b.srv, inServerName, s.Name)
	b.add(&b.srv, inServerName, s.Title)
	b.add(&b.srv, inPurpose, lead)
	for i := range s.Tools {
		b.addTool(&s.Tools[i], at)
		b.add(&b.srv, inToolNames, s.Tools[i].Name)
	}
	b.srv.docs++
	ref.end, ref.prefix = uint32(len(b.x.tools)), prefixOf(s.Tools)
	b.x.named[folded(s.Name)] = at
	b.x.servers = append(b.x.servers, ref)
}

// minPrefixed is how many tools a server must have at least. If fewer names begin with the same word, this may be a coincidence,
// and the word is not taken as a prefix.
const minPrefixed = 3

// prefixOf returns the stem of the word with which the names of all tools begin, or "" if they begin with different words or
// are fewer than minPrefixed.
func prefixOf(tools []catalog.Tool) string {
	prefix := ""
	for i := range tools {
		var first word
		scan(tools[i].Name, func(w word) {
			if w.parts != nil {
				w.text = w.parts[0]
			}
			if first.text == "" {
				first = w
			}
		})
		st := stem(first.text, first.script)
		if i > 0 && st != prefix {
			return ""
		}
		prefix = st
	}
	if len(tools) < minPrefixed {
		return ""
	}
	return prefix
}

func (b *builder) addTool(t *catalog.Tool, server uint32) {
	lead, rest := splitLead(t.Description)
	at, same := b.tool.docs, b.tool.docs
	key := definition{t.Name, t.Description, maphash.Bytes(b.seed, t.InputSchema)}
	if last, twice := b.last[key]; twice {
		same = b.x.tools[last].same
		b.x.tools[last].next = at
	}
	b.last[key] = at
	b.x.tools = append(b.x.tools, toolRef{name: t.Name, server: server, same: same, next: at, deprecated: isDeprecated(t, lead)})
	b.add(&b.tool, inName, t.Name)
	if readOnly := t.Hints.ReadOnly; readOnly != nil && *readOnly {
		b.x.tools[at].act = asks
	} else if readOnly != nil {
		b.x.tools[at].act = max(b.x.tools[at].act, changes)
	}
	b.add(&b.tool, inTitle, t.Title)
	b.add(&b.tool, inLead, lead)
	b.add(&b.tool, inText, rest)
	if len(t.InputSchema) <= maxSchema {
		readSchema(t.InputSchema,
			func(name string) { b.add(&b.tool, inParam, name) },
			func(text string) { b.add(&b.tool, inParamText, text) })
	}
	b.tool.docs++
}

// add adds the words of text to a field of the current document of c.
func (b *builder) add(c *corpus, f field, text string) {
	if text == "" {
		return
	}
	text = text[:min(len(text), maxText)]
	p := placer{b: b, c: c, field: f}
	scan(text, p.word)
	c.grow(f, p.words)
}

// placer adds the words of one text to one field.
type placer struct {
	b     *builder
	c     *corpus
	field field
	words uint32
	// last is the previous word. It is empty at the beginning, and after characters of a script without spaces, such as
	// Chinese.
	last string
}

func (p *placer) word(w word) {
	if w.parts == nil {
		p.piece(w.text, w.script)
		return
	}
	// An identifier is indexed both as its parts, one after the other, and as a whole.
	for _, t := range w.parts {
		p.piece(t, w.script)
	}
	p.addTerm(p.b.terms.of(w.text, w.script).term)
}

// piece adds a word that has no parts, or one part of an identifier.
func (p *placer) piece(text string, c script) {
	e := p.b.terms.of(text, c)
	p.words++
	if p.field == inName {
		t := &p.b.x.tools[len(p.b.x.tools)-1]
		t.act = t.act.then(e.act)
	}
	for _, id := range e.grams {
		p.addTerm(id)
	}
	for _, id := range e.english {
		p.c.events = append(p.c.events, event{p.c.docs, id, inOtherWords})
	}
	if c == dense {
		p.last = ""
		return
	}
	p.addTerm(e.term)
	p.b.terms.texts[e.term] = text
	if joinedFields[p.field] && p.last != "" && c == latin { // so that "cashflow" finds cash_flow too
		p.addTerm(p.b.terms.of(p.last+text, c).term)
	}
	p.last = text
}

// joinedFields says in which fields two adjacent words are also indexed as one joined word.
var joinedFields = [fields]bool{inName: true, inTitle: true, inServerName: true}

func (p *placer) addTerm(term uint32) {
	p.c.events = append(p.c.events, event{p.c.docs, term, p.field})
}

// finish makes the index from the collected words.
func (b *builder) finish() *Index {
	b.x.tool = b.tool.invert(uint32(len(b.terms.texts)))
	b.x.srv = b.srv.invert(uint32(len(b.terms.texts)))
	b.x.addVectors(b.terms.texts)
	b.x.addSpelled(b.terms.texts)
	return b.x
}

// minLead and maxLead bound the first sentence of a description, in bytes. A shorter sentence is joined with the next, unless it
// ends with a full-width mark such as 。, and a longer one is cut.
const (
	minLead = 20
	maxLead = 300
)

// splitLead cuts the first sentence off a description.
func splitLead(s string) (lead, rest string) {
	s = strings.TrimSpace(s)
	for i, r := range s {
		end := i > maxLead
		switch r {
		case '\n':
			end = end || i > minLead
		case '.', '!', '?':
			end = end || i > minLead && i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\n')
		case '。', '！', '？':
			end = true
		}
		if end {
			return s[:i], s[i:]
		}
	}
	return s, ""
}
