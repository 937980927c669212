package search

import "slices"

// field is a part of a tool or server from which words are indexed.
type field uint8

const (
	inName field = iota
	inTitle
	inLead // the first sentence of the description
	inText // the rest of the description
	inParam
	inParamText
	inOtherWords // translations of words in any field
	inServerName
	inPurpose // the first sentence of a server's purpose
	inToolNames
	fields
)

// fieldWeight has two numbers for each field. weight says how much a word in the field counts. b is from the formula BM25F. It is
// between 0 and 1: with 0, a word in a long field counts as much as a word in a short one, and with a greater b it counts less.
var fieldWeight = [fields]struct{ weight, b float32 }{
	inName:       {3.0, 0.5},
	inTitle:      {1.5, 0.5},
	inLead:       {1.4, 0.5},
	inText:       {0.25, 0.6},
	inParam:      {0.7, 0.6},
	inParamText:  {0.25, 0.6},
	inOtherWords: {1.2, 0},
	inServerName: {3.0, 0.4},
	inPurpose:    {1.2, 0.5},
	inToolNames:  {1.0, 0.8},
}

// saturation is k1 of the formula BM25. The smaller it is, the less it matters how often a word is repeated.
const saturation = 1.2

// postings say in which documents each term occurs. A term is the number of a stem, and a document is a tool or a server. The
// entries for term t are list[start[t]:start[t+1]].
type postings struct {
	start []uint32
	list  []posting
	docs  int
}

// posting says how important a term is in a document: impact is between 0 and 1, and already takes into account that the term
// may occur several times (see saturation).
type posting struct {
	doc    uint32
	impact float32
}

func (p *postings) of(term uint32) []posting {
	return p.list[p.start[term]:p.start[term+1]]
}

// event is an occurrence of a term in a field of a document.
type event struct {
	doc, term uint32
	field     field
}

// corpus collects the events of documents, in the order of the documents, and the lengths of their fields in words.
type corpus struct {
	events []event
	length [fields][]uint32
	docs   uint32
}

// grow adds n words to the length of a field of the current document.
func (c *corpus) grow(f field, n uint32) {
	for uint32(len(c.length[f])) <= c.docs {
		c.length[f] = append(c.length[f], 0)
	}
	c.length[f][c.docs] += n
}

// invert sorts the events by term and turns them into postings.
func (c *corpus) invert(terms uint32) postings {
	start := make([]uint32, terms+1)
	for _, e := range c.events {
		start[e.term+1]++
	}
	for t := range terms {
		start[t+1] += start[t]
	}
	sorted := make([]event, len(c.events))
	next := slices.Clone(start)
	for _, e := range c.events { // this sort is stable, so each term keeps the order of documents
		sorted[next[e.term]] = e
		next[e.term]++
	}
	p := postings{start: make([]uint32, terms+1), docs: int(c.docs)}
	p.list = make([]posting, 0, len(c.events)/2)
	mean := c.means()
	for t := range terms {
		p.start[t] = uint32(len(p.list))
		seen := sorted[start[t]:start[t+1]]
		for i := 0; i < len(seen); {
			doc, tf := seen[i].doc, float32(0)
			for ; i < len(seen) && seen[i].doc == doc; i++ {
				f := seen[i].field
				w := fieldWeight[f]
				tf += w.weight / c.stretch(f, doc, mean[f])
			}
			p.list = append(p.list, posting{doc, tf / (tf + saturation)})
		}
	}
	p.start[terms] = uint32(len(p.list))
	p.list = slices.Clone(p.list) // drops spare capacity
	return p
}

// stretch returns the number by which the weight of a word in a field is divided. It is greater than 1 if the field is longer
// than the mean length of this field.
func (c *corpus) stretch(f field, doc uint32, mean float32) float32 {
	b := fieldWeight[f].b
	if b == 0 {
		return 1
	}
	return 1 - b + b*float32(c.length[f][doc])/mean
}

// means returns the mean length of each field, over the documents in which it is not empty.
func (c *corpus) means() (mean [fields]float32) {
	for f, lengths := range c.length {
		sum, n := 0, 0
		for _, l := range lengths {
			if l > 0 {
				sum += int(l)
				n++
			}
		}
		if n > 0 {
			mean[f] = float32(sum) / float32(n)
		}
	}
	return mean
}
