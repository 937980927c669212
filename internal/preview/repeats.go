package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/compress"
)

// prefixes are numbers of words at the beginning of a line. Lines are taken as the same if so many of their first words are the
// same. 0 means the whole line.
var prefixes = [...]int{0, 8, 5, 3}

const (
	maxGroups      = 4096 // groups of lines for each of the prefixes
	maxCompared    = 500  // bytes at the beginning of a line that are compared
	minGroup       = 3    // lines that a group must have to be shown
	maxShownGroups = 12   // groups that are shown
	minLines       = 20   // lines that a text must have to be grouped
)

// comparedLines is how many lines of a text are compared at most. Of a longer text at least half as many lines are compared, evenly
// spread over the text. The numbers that are shown do not include the other lines.
const comparedLines = 4000

// repeats groups lines that are the same except for their numbers.
type repeats struct {
	groups [len(prefixes)]map[uint64]*group
	filled int // lines that are not blank
	every  int // only lines whose offset is divisible by this number are compared
}

// repeatsIn groups the lines of a text.
func repeatsIn(lines []string) *repeats {
	r := &repeats{every: len(lines)/comparedLines + 1}
	for i := 0; i < len(lines); i += r.every {
		if line := strings.TrimRight(lines[i], "\r\n"); line != "" {
			r.filled++
			r.line(i, line)
		}
	}
	return r
}

// group are lines with the same beginning.
type group struct {
	offset, count int
	text          string // what the lines have in common at their beginning
}

// line adds a line to the groups. It takes all words with a digit as the same word.
func (r *repeats) line(offset int, line string) {
	const prime, start = 1099511628211, 14695981039346656037
	hash, run := uint64(start), uint64(start) // hash ends before the current word; run includes the letters of this word
	words, digit, blank := 0, false, true
	end := min(len(line), maxCompared)
	for i := 0; i < end; i++ {
		c := line[i]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80; letter || '0' <= c && c <= '9' {
			run, digit, blank = (run^uint64(c))*prime, digit || !letter, false
			continue
		}
		if digit {
			run = (hash ^ '#') * prime
		}
		hash, digit = run, false
		if c == ' ' || c == '\t' {
			if !blank {
				words++
				r.add(words, hash, offset, line[:i])
				hash = (hash ^ ' ') * prime
			}
			blank = true
		} else {
			blank = false
			hash = (hash ^ uint64(c)) * prime
		}
		run = hash
	}
	if digit {
		run = (hash ^ '#') * prime
	}
	r.add(0, run, offset, line)
}

// add adds a line to its group for the given number of words at its beginning. 0 words means the whole line. hash is the hash of
// these words, and text is their text.
func (r *repeats) add(words int, hash uint64, offset int, text string) {
	at := slices.Index(prefixes[:], words)
	if at < 0 {
		return
	}
	if r.groups[at] == nil {
		r.groups[at] = map[uint64]*group{}
	}
	if g := r.groups[at][hash]; g != nil {
		g.count++
	} else if len(r.groups[at]) < maxGroups {
		r.groups[at][hash] = &group{offset, 1, text}
	}
}

// best returns the largest groups for one of the prefixes. It tries whole lines first, and then fewer and fewer words, until the
// groups have at least half of the lines that are not blank. If they never have so many, or if the text is short, it returns nil.
func (r *repeats) best() []*group {
	for at := range r.groups {
		groups, sum := r.largest(at), 0
		for _, g := range groups {
			sum += g.count
		}
		if 2*sum >= r.filled && r.filled >= minLines {
			return groups
		}
	}
	return nil
}

// largest returns the largest groups for the prefix with this index.
func (r *repeats) largest(index int) (large []*group) {
	for _, g := range r.groups[index] {
		if g.count >= minGroup {
			if large = append(large, g); prefixes[index] > 0 {
				g.text += " …"
			}
		}
	}
	slices.SortFunc(large, func(a, b *group) int { return cmp.Or(b.count-a.count, a.offset-b.offset) })
	return large[:min(len(large), maxShownGroups)]
}

// repeated describes the largest groups of lines that repeat. The description has at most about budget tokens.
func (r *repeats) repeated(budget int) string {
	var out strings.Builder
	size := 0
	often := "how often"
	if r.every > 1 {
		often = fmt.Sprintf("how often in one of %d lines", r.every)
	}
	for _, g := range r.best() {
		line := fmt.Sprintf("%d: %d× %s\n", g.offset, g.count, clip(g.text))
		if size += compress.Weigh(line); size > budget {
			break
		}
		out.WriteString(line)
	}
	if out.Len() == 0 {
		return ""
	}
	return "[lines that repeat except for their numbers, after the offset of the first and " + often + ":]\n" + out.String()
}

// paths groups those lines of a text that are paths. Lines with the same directory form a group.
type paths struct {
	count  int
	byName [3]map[string]*entry // by the first 1, 2 and 3 names of the path; the level of an entry is its number of lines
	order  [3][]*entry
}

func (p *paths) line(offset int, line string) {
	if !strings.Contains(line, "/") || strings.ContainsAny(line, " \t{(<") || len(line) > maxCompared || strings.Contains(line, "://") {
		return
	}
	p.count++
	at := 0
	for depth := range p.byName {
		next := strings.IndexByte(line[min(at+1, len(line)):], '/')
		if next >= 0 {
			at += next + 2
		}
		name := line[:at]
		if p.byName[depth] == nil {
			p.byName[depth] = map[string]*entry{}
		}
		if e := p.byName[depth][name]; e != nil {
			e.level++
		} else if len(p.order[depth]) < maxEntries {
			e = &entry{offset, 1, name}
			p.byName[depth][name] = e
			p.order[depth] = append(p.order[depth], e)
		}
	}
}

// folders returns the directories of the greatest depth at which there are at most maxOutermost directories. If there are then
// fewer than minOutermost, it returns those of the next depth.
func (p *paths) folders() (entries []entry) {
	for depth := range p.order {
		if len(p.order[depth]) > maxOutermost && len(entries) >= minOutermost {
			break
		}
		entries = entries[:0]
		for _, e := range p.order[depth] {
			entries = append(entries, entry{e.offset, 0, fmt.Sprintf("%s %d", cmp.Or(e.text, "."), e.level)})
		}
	}
	return entries
}
