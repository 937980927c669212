package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"mcpx/internal/tokens"
)

// tasksJSON has tasks in plain words, each with the tools that solve the task; any one of these tools is right. The tasks were
// written for this bench from the definitions of the tools, before any gateway was asked.
//
//go:embed tasks.json
var tasksJSON []byte

type task struct {
	Need  string
	Tools []string // SERVER.TOOL
}

func searchFigure() *figure {
	return &figure{name: "search", title: "Search",
		about: "Needs in plain words (tools/gatewaybench/tasks.json), asked of the gateway's own search over the tools of real " +
			"servers that the tests of this repository have. R@1: a right tool is the first hit; R@5: it is among the first five. " +
			"Tokens: of an answer with hits, median.",
		columns: []column{{"tasks", "", ""}, {"R@1", "", more}, {"R@5", "", more}, {"tokens of an answer", "", less}},
		run:     (*bench).measureSearch}
}

func (b *bench) measureSearch(f *figure) {
	var tasks []task
	if err := json.Unmarshal(tasksJSON, &tasks); err != nil {
		b.say("tasks.json: %v", err)
		return
	}
	var specs []serverSpec
	for _, one := range b.publishedServers() {
		specs = append(specs, serverSpec{Name: one.Server, Tools: one.Tools})
	}
	b.each(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
		if p.search == nil {
			b.mark(f, p, transport, cell{State: notOffered})
			return nil
		}
		t, err := b.start(p, transport, "", specs, l)
		if err != nil {
			return err
		}
		defer t.stop()
		if err := t.settled(ctx, names(specs)); err != nil {
			return err
		}
		first, five, sizes, err := t.searchAll(ctx, tasks, specs[0].Name)
		if err != nil {
			return err
		}
		b.add(f, "tasks", p, transport, float64(len(tasks)))
		b.add(f, "R@1", p, transport, float64(first)/float64(len(tasks)))
		b.add(f, "R@5", p, transport, float64(five)/float64(len(tasks)))
		if len(sizes) == 0 {
			b.word(f, "tokens of an answer", p, transport, "no hits")
			return nil
		}
		b.add(f, "tokens of an answer", p, transport, median(sizes))
		return nil
	})
}

// searchAll searches for all tasks. bestRight counts the tasks whose best hit is a right tool, fiveRight those with a right
// tool among the best five hits. sizes has the number of tokens of each answer with hits.
func (t *target) searchAll(ctx context.Context, tasks []task, server string) (bestRight, fiveRight int, sizes []float64, err error) {
	for _, one := range tasks {
		answer, err := t.callOwn(ctx, server, step{t.peer.search.tool, query(one.Need)})
		if err != nil {
			return 0, 0, nil, err
		}
		text := seenByModel(answer)
		hits := t.peer.search.hits(text)
		if len(hits) > 0 {
			sizes = append(sizes, float64(tokens.Count(text)))
		}
		rank := slices.IndexFunc(hits, func(hit string) bool {
			return slices.ContainsFunc(one.Tools, func(right string) bool { return sameTool(hit, right) })
		})
		if rank == 0 {
			bestRight++
		}
		if rank >= 0 && rank < 5 {
			fiveRight++
		}
		t.log.note("%s: a right one has the rank %d of %q", one.Need, rank+1, hits[:min(5, len(hits))])
	}
	return bestRight, fiveRight, sizes, nil
}

var separators = regexp.MustCompile(`[._]`)

// sameTool reports whether a hit is the tool SERVER.TOOL. Gateways may write "." or "_" between server and tool; some leave out
// the server if no other server has a tool of that name.
func sameTool(hit, right string) bool {
	_, alone, _ := strings.Cut(right, ".")
	return hit == alone || separators.ReplaceAllString(hit, ".") == separators.ReplaceAllString(right, ".")
}

// matches returns a func that finds names in a text, each name once, in the order of the text. A name is what the group of the
// pattern matches.
func matches(pattern string) func(string) []string {
	compiled := regexp.MustCompile(pattern)
	return func(text string) (found []string) {
		for _, m := range compiled.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(found, m[1]) {
				found = append(found, m[1])
			}
		}
		return found
	}
}
