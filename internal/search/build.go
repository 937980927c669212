package search

import (
	"mcpx/internal/catalog"
	"slices"
	"strings"
)

// field is a part of a tool or server that words come from.
type field uint8

const (
	inName field = iota
	inTitle
	inLead // the first sentence of the description
	inText // the rest of the description
	inParam
	inParamText
	inServerName
	inPurpose
	inPurposeText
	inToolNames
	fields
)

// weight and flat say what a word counts in a field, and how little the length
// of the field matters (BM25F: 1 - b).
var fieldWeight = [fields]struct{ weight, b float32 }{
	inName:        {3.0, 0.5},
	inTitle:       {1.5, 0.5},
	inLead:        {1.4, 0.5},
	inText:        {0.5, 0.6},
	inParam:       {0.7, 0.6},
	inParamText:   {0.25, 0.6},
	inServerName:  {3.0, 0.4},
	inPurpose:     {1.2, 0.5},
	inPurposeText: {0.3, 0.6},
	inToolNames:   {1.0, 0.8},
}

// saturation is k1 of BM25.
var saturation float32 = 1.2

// The most bytes read of one field, and of one tool's schema.
const (
	maxText   = 8 << 10
	maxSchema = 256 << 10
)

// lists are the inverted lists of tools and servers, by term.
type lists struct {
	tool, srv postings
}

// postings holds, for term t, list[start[t]:start[t+1]].
type postings struct {
	start []uint32
	list  []posting
	docs  int
}

// posting is what a term counts in a document, already saturated: in (0, 1).
type posting struct {
	doc    uint32
	impact float32
}

func (p *postings) of(term uint32) []posting {
	return p.list[p.start[term]:p.start[term+1]]
}

// event is a word seen in a field of a document.
type event struct {
	doc, term uint32
	field     field
}

type builder struct {
	x     *Index
	terms terms
	// tool and srv are the words of tools and servers in their order.
	tool, srv corpus
}

// corpus collects events and the lengths of fields.
type corpus struct {
	events []event
	length [fields][]uint32
	docs   uint32
}

func newBuilder(tools int) *builder {
	x := &Index{vocab: make(map[string]uint32, 4096), bigrams: make(map[uint64]uint32, 4096)}
	x.tools = make([]toolRef, 0, tools)
	b := &builder{x: x}
	b.terms = terms{x: x, cache: make(map[string][]uint32, 8192)}
	return b
}

func (b *builder) addServer(s *catalog.Server) {
	at := uint32(len(b.x.servers))
	ref := serverRef{name: strings.Clone(s.Name), from: uint32(len(b.x.tools))}
	lead, rest := splitLead(s.Purpose())
	b.add(&b.srv, inServerName, s.Name+" . "+s.Title, true)
	b.add(&b.srv, inPurpose, lead, true)
	b.add(&b.srv, inPurposeText, rest, false)
	for i := range s.Tools {
		b.addTool(&s.Tools[i], at)
		b.add(&b.srv, inToolNames, s.Tools[i].Name, false)
	}
	b.srv.docs++
	ref.to = uint32(len(b.x.tools))
	b.x.servers = append(b.x.servers, ref)
}

func (b *builder) addTool(t *catalog.Tool, server uint32) {
	b.x.tools = append(b.x.tools, toolRef{name: strings.Clone(t.Name), server: server, harm: isHarmful(t.Name)})
	lead, rest := splitLead(t.Description)
	b.add(&b.tool, inName, t.Name, true)
	b.add(&b.tool, inTitle, t.Title, true)
	b.add(&b.tool, inLead, lead, true)
	b.add(&b.tool, inText, rest, false)
	if len(t.InputSchema) <= maxSchema {
		readSchema(t.InputSchema, 0,
			func(name string) { b.add(&b.tool, inParam, name, false) },
			func(text string) { b.add(&b.tool, inParamText, text, false) })
	}
	b.tool.docs++
}

// add puts the words of text into a field of the document that c is at; with
// pairs, also its neighbouring words.
func (b *builder) add(c *corpus, f field, text string, pairs bool) {
	if text == "" {
		return
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	doc := c.docs
	length := &c.length[f]
	for uint32(len(*length)) <= doc {
		*length = append(*length, 0)
	}
	const none = ^uint32(0)
	last := none
	put := func(term uint32) {
		c.events = append(c.events, event{doc, term, f})
	}
	scan(text, func(w word) {
		ids := b.terms.ofDocument(w)
		for _, id := range ids {
			put(id)
		}
		(*length)[doc]++
		if pairs && len(ids) > 0 {
			if last != none {
				put(b.terms.pair(last, ids[0]))
			}
			last = ids[0]
		}
	})
}

// finish turns the events into inverted lists.
func (b *builder) finish() *Index {
	n := b.terms.n
	b.x.tool = b.tool.invert(n)
	b.x.srv = b.srv.invert(n)
	return b.x
}

func (c *corpus) invert(terms uint32) postings {
	norm := c.norms()
	// Events are in the order of documents; a counting sort by term keeps that.
	start := make([]uint32, terms+1)
	for _, e := range c.events {
		start[e.term+1]++
	}
	for t := range terms {
		start[t+1] += start[t]
	}
	byTerm := make([]event, len(c.events))
	next := slices.Clone(start)
	for _, e := range c.events {
		byTerm[next[e.term]] = e
		next[e.term]++
	}
	p := postings{start: make([]uint32, terms+1), docs: int(c.docs)}
	p.list = make([]posting, 0, len(c.events)/2)
	for t := range terms {
		p.start[t] = uint32(len(p.list))
		seen := byTerm[start[t]:start[t+1]]
		for i := 0; i < len(seen); {
			doc, tf := seen[i].doc, float32(0)
			for ; i < len(seen) && seen[i].doc == doc; i++ {
				tf += norm(seen[i].field, doc)
			}
			p.list = append(p.list, posting{doc, tf / (tf + saturation)})
		}
	}
	p.start[terms] = uint32(len(p.list))
	p.list = slices.Clip(p.list)
	return p
}

// norms returns what one word counts in a field of a document.
func (c *corpus) norms() func(f field, doc uint32) float32 {
	var mean [fields]float32
	for f := range c.length {
		sum, n := uint64(0), 0
		for _, l := range c.length[f] {
			if l > 0 {
				sum += uint64(l)
				n++
			}
		}
		if n > 0 {
			mean[f] = float32(sum) / float32(n)
		}
	}
	return func(f field, doc uint32) float32 {
		w := fieldWeight[f]
		return w.weight / (1 - w.b + w.b*float32(c.length[f][doc])/mean[f])
	}
}

// splitLead cuts the first sentence off a description.
func splitLead(s string) (lead, rest string) {
	s = strings.TrimSpace(s)
	for i, r := range s {
		end := false
		switch r {
		case '\n':
			end = i > 20
		case '.', '!', '?':
			end = i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\n') && i > 20
		case '。', '！', '？':
			end = true
		}
		if end || i > 300 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// isHarmful reports whether the name of a tool says that it removes or stops
// something.
func isHarmful(name string) bool {
	harm := false
	scan(name, func(w word) {
		harm = harm || harmful[stem(w.text, w.script)]
		for _, p := range w.parts {
			harm = harm || harmful[stem(p, w.script)]
		}
	})
	return harm
}
