package executor

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/tokens"
)

// The first three constants are prices, in input tokens, for one token: a token that the prompt had already in the turn before, a
// token that is new in the prompt, and a token that the model writes. firstPrompt is the length of the system prompt and the
// definitions of exec and inspect, in tokens. In each turn, the model writes wordsOfTurn tokens of text. In each call of exec it
// writes the arguments, and namesOfCall tokens for the names. A call with the argument "each" has the names only once; the text of
// the turns that it replaces is counted in full.
const (
	priceRead, priceNew, priceWritten = 0.1, 1.25, 5
	firstPrompt                       = 3000 + 1200
	wordsOfTurn, namesOfCall          = 150, 25
)

// turnOf is a turn of a recorded session: calls that the model made together, with their results.
type turnOf struct{ calls []recordedCall }

type recordedCall struct{ id, tool, arguments, text string }

// turnsOf returns the turns of a recorded session.
func turnsOf(events []mcptest.RecordedEvent) (turns []turnOf) {
	answered := true
	for _, e := range events {
		if e.Call != "" {
			if answered {
				turns, answered = append(turns, turnOf{}), false
			}
			turn := &turns[len(turns)-1]
			turn.calls = append(turn.calls, recordedCall{id: e.Call, tool: e.Tool, arguments: e.Arguments})
			continue
		}
		answered = true
		for i := range turns[len(turns)-1].calls {
			if c := &turns[len(turns)-1].calls[i]; c.id == e.Result {
				c.text = e.Text
			}
		}
	}
	return turns
}

var (
	wordOf  = regexp.MustCompile(`[\pL\pN_-]{3,}`)
	failing = regexp.MustCompile(`(?i)^\W*(error|failed)|"error":|"status":[45]\d\d`)
)

// groups divides turns into groups: each turn of a group calls the same tool as the one before it, and no word in its arguments
// was first seen in a result of the group. After a failure a new group begins.
func groups(turns []turnOf) (all [][]turnOf) {
	seen := map[string]bool{} // words of the arguments so far, and of the results before the group
	own := map[string]bool{}  // words of the results in the group
	take := func(into map[string]bool, text string) {
		for _, word := range wordOf.FindAllString(text, -1) {
			into[word] = true
		}
	}
	for n, turn := range turns {
		same := n > 0
		for _, c := range turn.calls {
			same = same && c.tool == turns[n-1].calls[0].tool
			for _, word := range wordOf.FindAllString(c.arguments, -1) {
				same = same && (seen[word] || !own[word])
			}
		}
		for i := 0; same && i < len(turns[n-1].calls); i++ {
			before := turns[n-1].calls[i]
			same = before.tool == turn.calls[0].tool && !failing.MatchString(before.text)
		}
		if !same {
			for word := range own {
				seen[word] = true
			}
			own = map[string]bool{}
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], turn)
		for _, c := range turn.calls {
			take(seen, c.arguments)
			take(own, c.text)
		}
	}
	return all
}

// pricing prices sessions with the results as one executor shows them.
type pricing struct {
	t     *testing.T
	e     *Executor
	first bool // as mcpx at the commit 349393c showed them: JSON only if it is a whole text, no calls in Python literals
	known map[string]int
}

var pythonCall = regexp.MustCompile(`\b(Decimal|datetime|UUID)\b`)

// plain reports whether mcpx at the commit 349393c, with which the results of today are compared, showed the model a text unchanged.
func (p *pricing) plain(text string) bool {
	start := strings.TrimLeft(text, " \t\r\n")
	if start == "" || start[0] != '{' && start[0] != '[' {
		return true
	}
	_, isJSON := wire.Compact(text)
	return !isJSON && pythonCall.MatchString(text)
}

// result returns the result of one call.
func (p *pricing) result(text string, part float64) *oneOf {
	one := &oneOf{raw: wire.Encode(map[string]any{"content": []json.RawMessage{wire.TextBlock(text)}})}
	one.r.part = part
	one.r.Event = &request.Event{}
	a := p.e.begin().answer(&one.r, target{})
	a.Verbatim = p.first && p.plain(text)
	result, err := a.Of(p.t.Context(), one.raw)
	if err != nil {
		p.t.Fatal(err)
	}
	one.result = result
	return one
}

func tokensIn(contents []json.RawMessage) (n int) {
	for _, raw := range contents {
		n += tokens.Count(wire.ReadBlock(raw).Text)
	}
	return n
}

// shown returns the tokens of one result as the model sees it.
func (p *pricing) shown(text string) int {
	n, ok := p.known[text]
	if !ok {
		n = tokensIn(p.result(text, 0).result.Content)
		p.known[text] = n
	}
	return n
}

// together returns the tokens of the results of one call with the argument "each".
func (p *pricing) together(calls []recordedCall) int {
	var all []*oneOf
	for _, c := range calls {
		all = append(all, p.result(c.text, 1))
	}
	if part := partOf(all, p.e.current().ResultTokens); part < 1 {
		for i, c := range calls {
			all[i] = p.result(c.text, part)
		}
	}
	return tokensIn(joinEach(share(all), all, false).Content)
}

// price returns the price of a session, and its turns. use says for which groups the model makes one call with the argument
// "each".
func (p *pricing) price(of [][]turnOf, use func(group int) bool) (price float64, turns int) {
	prompt, fresh := 0, firstPrompt
	turn := func(written, results int) {
		price += priceRead*float64(prompt) + priceNew*float64(fresh) + priceWritten*float64(written)
		prompt += fresh
		fresh = written + results
		turns++
	}
	grouped := 0
	for _, group := range of {
		if len(group) > 1 {
			grouped++
		}
		if len(group) == 1 || !use(grouped) {
			for _, one := range group {
				written, results := wordsOfTurn, 0
				for _, c := range one.calls {
					written += namesOfCall + tokens.Count(c.arguments)
					results += p.shown(c.text)
				}
				turn(written, results)
			}
			continue
		}
		var calls []recordedCall
		for _, one := range group {
			calls = append(calls, one.calls...)
		}
		for some := range slices.Chunk(calls, MaxEach) {
			written := wordsOfTurn*len(group)*len(some)/len(calls) + namesOfCall
			for _, c := range some {
				written += tokens.Count(c.arguments) + 1
			}
			turn(written, p.together(some))
		}
	}
	turn(wordsOfTurn, 0) // the model's last words
	return price, turns
}

// TestGroups: turns form a group if they call one tool, none failed, and none uses what another of them found out.
func TestGroups(t *testing.T) {
	of := func(tool, arguments, text string) turnOf { return turnOf{[]recordedCall{{"", tool, arguments, text}}} }
	turns := []turnOf{
		of("list", `{}`, `["alpha","beta"]`),
		of("get", `{"name":"alpha"}`, `{"owner":"gamma"}`), of("get", `{"name":"beta"}`, `{"owner":"alpha"}`),
		of("get", `{"name":"gamma"}`, `Error: no gamma`), of("get", `{"name":"alpha"}`, `{"owner":"gamma"}`),
		of("put", `{"name":"alpha"}`, `{}`), of("put", `{"name":"alpha"}`, `{}`),
	}
	var sizes []int
	for _, group := range groups(turns) {
		sizes = append(sizes, len(group))
	}
	if !slices.Equal(sizes, []int{1, 2, 1, 1, 2}) {
		t.Errorf("groups of %v turns", sizes)
	}
}

// sessionPrice adds up the prices of sessions.
type sessionPrice struct {
	sessions, turns, possible         int
	before, results, half, everywhere float64
}

// TestSessions replays recorded sessions and prices them (docs/benchmark.md, "A session"): with the results as 349393c showed
// them, with the results as they are shown now, and also with the argument "each" in half of the places where a session allows
// it. With -update it writes the table.
func TestSessions(t *testing.T) {
	options := Options{TOON: true, ResultTokens: 20_000, PreviewTokens: 3000}
	before := &pricing{t: t, e: chained(registry.New(nil, registry.Options{}), options), first: true, known: map[string]int{}}
	options.JS = true
	now := &pricing{t: t, e: chained(registry.New(nil, registry.Options{}), options), known: map[string]int{}}
	sums := map[string]*sessionPrice{}
	mcptest.RecordedSessions(t, func(server string, _ int, events []mcptest.RecordedEvent) {
		turns := turnsOf(events)
		of := groups(turns)
		old, _ := before.price(of, func(int) bool { return false })
		without, all := now.price(of, func(int) bool { return false })
		odd, _ := now.price(of, func(group int) bool { return group%2 == 1 })
		even, _ := now.price(of, func(group int) bool { return group%2 == 0 })
		every, _ := now.price(of, func(int) bool { return true })
		for _, name := range []string{server, "all"} {
			s := sums[name]
			if s == nil {
				s = &sessionPrice{}
				sums[name] = s
			}
			s.sessions++
			s.turns += all
			s.possible += len(turns) - len(of)
			s.before, s.results, s.half, s.everywhere = s.before+old, s.results+without, s.half+(odd+even)/2, s.everywhere+every
		}
	})
	var table strings.Builder
	table.WriteString("| server | sessions | turns | turns that each can spare | price at 349393c | results as now | and each in half | change | each everywhere |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		each := float64(s.sessions)
		fmt.Fprintf(&table, "| %s | %d | %.1f | %d %% | %.0f | %.0f | %.0f | −%.1f %% | −%.1f %% |\n", name, s.sessions, float64(s.turns)/each, 100*s.possible/s.turns,
			s.before/each, s.results/each, s.half/each, 100-100*s.half/s.before, 100-100*s.everywhere/s.before)
	}
	t.Log("\n" + table.String())
	mcptest.TableIn(t, "../../docs/benchmark.md", "sessions", table.String(), *update)
	if all := sums["all"]; all.half > 0.85*all.before {
		t.Errorf("a session costs %.3f of what it did, want 0.85", all.half/all.before)
	}
}
