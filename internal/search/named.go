package search

import (
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/base/catalog"
)

// maxNamed is the largest number of hits of [Index.Named], since any number of servers may have a tool of the same name.
const maxNamed = 200

// Named finds the tools of a query that is a list of tool names, in the order of the list. A name may be written alone, or
// after the name of its server: a.tool, a__tool, a:tool, a/tool. If the list also contains names of servers, and one of these
// servers has a tool, the tools of the same name on other servers are no hits. missing are the words of the list that name no
// tool and no server. Both results are nil if the query is not a list of names.
func (x *Index) Named(query string, o Options) (hits []Hit, missing []string) {
	l := list{x: x, o: o, at: map[string]int{}, commas: strings.ContainsAny(query, ",;\n")}
	if len(query) > maxQuery || !l.read(query) {
		return nil, nil
	}
	l.find()
	if !l.isList() {
		return nil, nil
	}
	for i := range l.items {
		it := &l.items[i]
		switch {
		case len(it.docs) > 0:
			hits = x.namedHits(hits, l.narrowed(it.docs))
		case !it.server && !it.joins:
			missing = append(missing, it.text)
		}
	}
	return hits, missing
}

// list is a query that is read as a list of names.
type list struct {
	x     *Index
	o     Options
	items []item
	// at has the index of each item by its text.
	at map[string]int
	// commas is set if the query has separators other than spaces.
	commas bool
}

// item is one entry of a list: the name of a tool, the name of a server, or another word.
type item struct {
	text string
	// docs are the tools of that name.
	docs []uint32
	// server is set for the name of a server that is not also the name of a tool. joins is set for a word that
	// joins names, such as "and".
	server, joins bool
}

// read splits the query into items. It reports whether there are any.
func (l *list) read(query string) bool {
	names := map[string]bool{}
	for i := range l.x.tools {
		if name := l.x.tools[i].name; strings.ContainsFunc(name, unicode.IsSpace) {
			names[name] = true
		}
	}
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); names[part] {
			l.add(part)
			continue
		}
		for word := range strings.FieldsSeq(part) {
			l.add(strings.Trim(word, "\"'`()[]{}“”"))
		}
	}
	return len(l.items) > 0
}

func (l *list) add(text string) {
	if _, twice := l.at[text]; text == "" || twice {
		return
	}
	l.at[text] = len(l.items)
	joins := text == "and" || text == "or" || text == "&" || text == "+"
	l.items = append(l.items, item{text: text, joins: joins})
}

// find finds the tools of each item.
func (l *list) find() {
	for _, s := range l.x.servers {
		if l.o.Server != "" && l.o.Server != s.name {
			continue
		}
		qualified := map[string][]int{}
		for i := range l.items {
			if rest, ok := catalog.Unqualified(l.items[i].text, s.name); ok {
				qualified[rest] = append(qualified[rest], i)
			}
		}
		for d := s.first; d < s.end; d++ {
			name := l.x.tools[d].name
			if i, ok := l.at[name]; ok {
				l.items[i].docs = append(l.items[i].docs, d)
			}
			for _, i := range qualified[name] {
				l.items[i].docs = append(l.items[i].docs, d)
			}
		}
		if i, ok := l.at[s.name]; ok {
			l.items[i].server = true
		}
	}
	for i := range l.items {
		it := &l.items[i]
		it.server = it.server && len(it.docs) == 0
		it.joins = it.joins && len(it.docs) == 0
	}
}

// isList reports whether the items are a list of names. Several plain words, which do not look like names (see looksNamed), are
// taken for a sentence if there are only spaces between them, even if each happens to be the name of a tool. A query with words
// that are no names is a list only if one of its tool names looks like a name, and if those words look like names too or the query
// has commas. If a query has plain words, the name of a server and no comma, it is a list only if that server has one of the tools.
func (l *list) isList() bool {
	plain, shaped, servers := 0, 0, 0
	for i := range l.items {
		switch it := &l.items[i]; {
		case it.server:
			servers++
		case len(it.docs) > 0 && looksNamed(it.text):
			shaped++
		case len(it.docs) > 0:
			plain++
		}
	}
	if plain+shaped == 0 || shaped == 0 && plain > 1 && !l.commas {
		return false
	}
	for i := range l.items {
		it := &l.items[i]
		if len(it.docs) == 0 && !it.server && !it.joins && (shaped == 0 || !l.commas && !looksNamed(it.text)) {
			return false
		}
	}
	return servers == 0 || shaped > 0 || l.commas || l.onNamedServer()
}

// onNamedServer reports whether a server in the list has one of the tools in the list.
func (l *list) onNamedServer() bool {
	return slices.ContainsFunc(l.items, func(it item) bool { return slices.ContainsFunc(it.docs, l.isNamed) })
}

// isNamed reports whether the server of a tool is in the list.
func (l *list) isNamed(doc uint32) bool {
	i, ok := l.at[l.x.servers[l.x.tools[doc].server].name]
	return ok && l.items[i].server
}

// narrowed returns those tools of docs whose servers are in the list. If the list has none of their servers, it returns all of
// docs.
func (l *list) narrowed(docs []uint32) []uint32 {
	var on []uint32
	for _, d := range docs {
		if l.isNamed(d) {
			on = append(on, d)
		}
	}
	if len(on) > 0 {
		return on
	}
	return docs
}

// looksNamed reports whether a word can hardly be a word of a sentence: it has an
// underscore, a digit, or a separator or capital letter inside.
func looksNamed(word string) bool {
	for i, r := range word {
		inside := i > 0 && i < len(word)-1
		if r == '_' || unicode.IsDigit(r) || inside && (strings.ContainsRune("-.:/", r) || unicode.IsUpper(r)) {
			return true
		}
	}
	return false
}

// namedHits adds a hit for each of the tools, up to maxNamed hits in all. The same tool on several servers is one hit.
func (x *Index) namedHits(hits []Hit, docs []uint32) []Hit {
	first := map[uint32]int{}
	for _, d := range docs {
		t := &x.tools[d]
		server := x.servers[t.server].name
		if at, ok := first[t.same]; ok {
			hits[at].Also = append(hits[at].Also, server)
			continue
		}
		known := slices.ContainsFunc(hits, func(h Hit) bool {
			return h.Server == server && h.Tool == t.name || h.Tool == t.name && slices.Contains(h.Also, server)
		})
		if !known && len(hits) < maxNamed {
			first[t.same] = len(hits)
			hits = append(hits, Hit{Server: server, Tool: t.name, Score: 1})
		}
	}
	return hits
}
