package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	// A server with at most fewTools tools is described by their names, not by topics.
	fewTools = 12
	// maxTopics is the maximum number of topics of a server.
	maxTopics = 60
	// Two words such as "pull request" become one topic if they are often side by side: in two names or more, and in at least the
	// share pairShare of the names that have the more frequent of the two words.
	pairShare = 0.75
	// A word in more than the share mostShare of the names does not distinguish tools. It becomes a topic, but its tools may
	// also belong to later topics.
	mostShare = 0.8
)

// topic is a word, or several words, from the names of tools.
type topic struct {
	text  string
	tools []int // indexes of the tools that have the topic in their names
}

// about returns a line with at most limit topics of s. If ten tools or more have a topic, their number follows the topic. It is
// rounded down, so that one more tool mostly does not change it.
func (s *source) about(limit int) string {
	if s.topics == nil {
		s.topics = topicsOf(s.server.Name, s.toolNames())
	}
	list := make([]string, min(limit, len(s.topics)))
	for i, t := range s.topics[:len(list)] {
		list[i] = t.text
		if n := len(t.tools); n >= 10 {
			list[i] += fmt.Sprintf(" ×%d", floor(n))
		}
	}
	return strings.Join(list, ", ")
}

// topicsOf returns at most maxTopics topics for tools with these names. Words in the name of the server do not become topics.
// Topics with more tools mostly come first (see level). A topic is kept only if it has at least one tool that is in no earlier
// topic. If there are more than fewExact tools, it needs two such tools, so that one more tool rarely adds a topic. Topics with
// almost all tools are an exception (see mostShare).
func topicsOf(server string, names []string) []topic {
	words := make([][]string, len(names))
	common := wordsOf(server)
	for i, name := range names {
		words[i] = slices.DeleteFunc(wordsOf(name), func(w string) bool { return slices.Contains(common, w) })
	}
	together(words)
	var list []topic
	at := map[string]int{}
	for i, ws := range words {
		for _, w := range ws {
			n, known := at[w]
			if !known {
				n = len(list)
				at[w] = n
				list = append(list, topic{text: w})
			}
			if t := &list[n]; len(t.tools) == 0 || t.tools[len(t.tools)-1] != i {
				t.tools = append(t.tools, i)
			}
		}
	}
	least := 2
	if len(names) <= fewExact {
		least = 1
	}
	list = slices.DeleteFunc(list, func(t topic) bool { return len(t.tools) < least })
	slices.SortStableFunc(list, func(a, b topic) int { return cmp.Compare(level(len(b.tools)), level(len(a.tools))) })
	said := make([]bool, len(names))
	kept := list[:0]
	for _, t := range list {
		if float64(len(t.tools)) > mostShare*float64(len(names)) {
			kept = append(kept, t)
			continue
		}
		fresh := 0
		for _, i := range t.tools {
			if !said[i] {
				fresh++
			}
		}
		if fresh < least || len(kept) == maxTopics {
			continue
		}
		for _, i := range t.tools {
			said[i] = true
		}
		kept = append(kept, t)
	}
	return kept
}

// level rounds n, a number of tools, so that similar numbers get the same level. Topics are sorted by level, so that one more
// tool mostly does not change their order.
func level(n int) int {
	if n >= 10 {
		return floor(n)
	}
	return n / 4
}

// together joins words that are often side by side (see pairShare) to one topic, such as "pull request". It replaces the
// elements of words.
func together(words [][]string) {
	single, pair := map[string]int{}, map[[2]string]int{}
	for _, ws := range words {
		for i, w := range ws {
			single[w]++
			if i > 0 {
				pair[[2]string{ws[i-1], w}]++
			}
		}
	}
	for i, ws := range words {
		joined := ws[:0:0]
		for j, w := range ws {
			if j > 0 {
				p := [2]string{ws[j-1], w}
				if n := float64(pair[p]); n >= 2 && n >= pairShare*float64(max(single[p[0]], single[p[1]])) {
					joined[len(joined)-1] += " " + w
					continue
				}
			}
			joined = append(joined, w)
		}
		words[i] = joined
	}
}

// wordsOf returns the words of a name, in lower case and in the singular, without single letters and the words in acts.
func wordsOf(name string) []string {
	var list []string
	var b strings.Builder
	end := func() {
		if w := singular(strings.ToLower(b.String())); len(w) > 1 && !slices.Contains(acts, w) {
			list = append(list, w)
		}
		b.Reset()
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		lower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || lower) {
			end()
		}
		b.WriteRune(r)
	}
	end()
	return list
}

func singular(w string) string {
	switch {
	case len(w) < 4 || !strings.HasSuffix(w, "s") || strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "us") || strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"):
		return w[:len(w)-2]
	}
	return w[:len(w)-1]
}

// acts are words in tool names that are not topics: verbs, and words that say nothing.
var acts = strings.Fields(`
	get list create update delete add remove set search find read write edit patch post put fetch retrieve send run start stop
	restart cancel enable disable move copy rename assign unassign merge close open reopen upload download import export validate
	verify generate describe execute trigger sync attach detach link unlink show view count reset restore publish unpublish
	archive unarchive approve reject submit register unregister invite subscribe unsubscribe mark manage configure convert
	compare analyze apply install uninstall replace insert append load save make bulk batch lookup resolve query browse check
	new all by for of to from with in on and or the an it my id self via api mcp tool server vn`)
