package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// published are the tools of a real server, as its package defines them.
type published struct {
	Server string
	Tools  []json.RawMessage
}

// publishedServers reads the tools of real servers from the testdata of this repository.
func (b *bench) publishedServers() []published {
	var all []published
	files, _ := filepath.Glob(filepath.Join(b.module, "internal", "schemats", "testdata", "tools", "*.json"))
	for _, file := range files {
		var one published
		b.read(file, &one)
		one.Server = plainName(strings.TrimSuffix(filepath.Base(file), ".json"))
		all = append(all, one)
	}
	var needs []published
	b.read(filepath.Join(b.module, "internal", "search", "testdata", "needs.json"), &needs)
	for _, one := range needs {
		one.Server = plainName(one.Server)
		all = append(all, one)
	}
	var git published
	b.read(filepath.Join(b.module, "internal", "search", "testdata", "git.json"), &git)
	git.Server = "git"
	all = append(all, git)
	for i := range all { // every server of the bench has its own echo and pid
		all[i].Tools = slices.DeleteFunc(all[i].Tools, func(t json.RawMessage) bool {
			name := wire.MemberText(t, "name")
			return name == "echo" || name == "pid"
		})
	}
	return all
}

func (b *bench) read(file string, into any) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		b.say("%s: %v", file, err)
	}
}

// plainName makes a short name from the name of a package. The short name has only lower-case letters and digits, which every
// gateway accepts.
func plainName(whole string) string {
	name := whole
	name = strings.TrimPrefix(name, "modelcontextprotocol__server-")
	if _, rest, ok := strings.Cut(name, "__"); ok {
		name = rest
	}
	for _, end := range []string{"-mcp-server", "-server", "-mcp"} {
		name = strings.TrimSuffix(name, end)
	}
	if name == "mcp" { // the package was @SCOPE/mcp
		name, _, _ = strings.Cut(whole, "__")
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// toolServers returns servers called srv0, srv1 and so on. Together they have as many tools as the parameter tools says: tools of
// real servers first, then made-up tools of about the same size.
func (b *bench) toolServers(tools, servers int) []serverSpec {
	var pool []json.RawMessage
	seen := map[string]bool{}
	for _, one := range b.publishedServers() {
		for _, t := range one.Tools {
			if name := wire.MemberText(t, "name"); !seen[name] {
				seen[name] = true
				pool = append(pool, t)
			}
		}
	}
	for i := len(pool); i < tools; i++ {
		pool = append(pool, madeTool(i))
	}
	each := tools/servers - len(common)
	var all []serverSpec
	for i := range servers {
		all = append(all, serverSpec{Name: fmt.Sprintf("srv%d", i), Instructions: fmt.Sprintf("Tools of the group %d.", i),
			Tools: pool[i*each : (i+1)*each]})
	}
	return all
}

var verbs = []string{"create", "list", "get", "update", "delete", "search", "export", "archive", "merge", "assign"}
var nouns = []string{"issue", "invoice", "repository", "branch", "comment", "label", "milestone", "release", "workflow",
	"project", "user", "team"}

// madeTool makes up a tool with six parameters, like a tool of a server for a web API.
func madeTool(i int) json.RawMessage {
	verb, noun := verbs[i%len(verbs)], nouns[i/len(verbs)%len(nouns)]
	return json.RawMessage(fmt.Sprintf(`{"name":"%[1]s_%[2]s_%[3]d","description":"%[1]s a %[2]s in the workspace. `+
		`Use this when the user asks to %[1]s a %[2]s. Returns the %[2]s with its id, or an error if the account lacks the right.",`+
		`"inputSchema":{"type":"object","properties":{`+
		`"owner":{"type":"string","description":"Account that owns the %[2]s"},`+
		`"query":{"type":"string","description":"Text to look for"},`+
		`"state":{"type":"string","enum":["open","closed","all"],"description":"Only a %[2]s in this state","default":"open"},`+
		`"per_page":{"type":"integer","minimum":1,"maximum":100,"description":"Results for each page"},`+
		`"labels":{"type":"array","items":{"type":"string"},"description":"Labels to filter by"},`+
		`"dry_run":{"type":"boolean","description":"Say what would be done, and do nothing"}},"required":["owner"]}}`, verb, noun, i))
}

// surface returns what a model sees before its first call: all definitions of tools, and the instructions.
func (t *target) surface(ctx context.Context, servers []string) (string, error) {
	var out strings.Builder
	done := map[string]bool{}
	for _, server := range servers {
		s, err := t.session(ctx, server)
		if err != nil {
			return "", err
		}
		if key := t.key(server); done[key] {
			continue
		} else {
			done[key] = true
			out.WriteString(wire.MemberText(t.greetings[key], "instructions") + "\n")
		}
		list, err := listTools(ctx, s)
		if err != nil {
			return "", err
		}
		for _, one := range list {
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false) // clients do not escape < either
			if err := encoder.Encode(one); err != nil {
				return "", err
			}
		}
	}
	return out.String(), nil
}

// seenByModel returns what a model sees of a result: its texts, or structuredContent if there is no content.
func seenByModel(result []byte) string {
	var r struct {
		Content []struct {
			Type, Text string
		}
		StructuredContent json.RawMessage
	}
	if json.Unmarshal(result, &r) != nil {
		return string(result)
	}
	var texts []string
	for _, block := range r.Content {
		texts = append(texts, block.Text)
	}
	if len(texts) == 0 {
		return string(r.StructuredContent)
	}
	return strings.Join(texts, "\n")
}

func names(specs []serverSpec) (all []string) {
	for _, s := range specs {
		all = append(all, s.Name)
	}
	return all
}

func tokensFigure() *figure {
	return &figure{name: "tokens", title: "Tokens before the first call",
		about: "Name, description and input schema of every tool in tools/list, and the instructions, as compact JSON (o200k_base), " +
			"for a client " +
			"that no gateway knows. Then the model calls a tool whose server and name it knows: the turns up to the result, and the " +
			"tokens of the " +
			"list and of what these turns returned before it, with 885 tools.",
		columns: []column{{"10 tools", "tokens", less}, {"100 tools", "tokens", less}, {"885 tools", "tokens", less},
			{"turns to a known tool", "", less}, {"tokens with them", "", less}},
		run: (*bench).measureTokens}
}

func (b *bench) measureTokens(f *figure) {
	b.each(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
		for _, size := range []size{{10, 2}, {100, 5}, {885, 15}} {
			if err := b.tokensOf(ctx, f, p, l, size); err != nil {
				return fmt.Errorf("%d tools: %w", size.tools, err)
			}
		}
		return nil
	})
}

// size is how many tools there are, and of how many servers.
type size struct{ tools, servers int }

func (b *bench) tokensOf(ctx context.Context, f *figure, p *peer, l *logFile, size size) error {
	specs := b.toolServers(size.tools, size.servers)
	t, err := b.start(p, p.transports[0], "", specs, l)
	if err != nil {
		return err
	}
	defer t.stop()
	if err := t.settled(ctx, names(specs)); err != nil {
		return err
	}
	surface, err := t.surface(ctx, names(specs))
	if err != nil {
		return err
	}
	l.note("%s", surface)
	n := tokens.Count(surface)
	b.add(f, fmt.Sprintf("%d tools", size.tools), p, t.transport, float64(n))
	if size.tools != 885 {
		return nil
	}
	const server = "srv3"
	known := wire.MemberText(specs[3].Tools[5], "name")
	steps := p.before(server, known)
	for _, one := range steps {
		answer, err := t.callOwn(ctx, server, one)
		if err != nil {
			return err
		}
		l.note("%s %s\n%s", one.tool, one.args, seenByModel(answer))
		n += tokens.Count(seenByModel(answer))
	}
	if result, err := t.call(ctx, server, known, `{"owner":"ann"}`); err != nil || !strings.Contains(string(result),
		"called "+known) {
		l.note("the call itself: %s %v", clip(string(result), 500), err)
	}
	b.add(f, "turns to a known tool", p, t.transport, float64(len(steps)+1))
	b.add(f, "tokens with them", p, t.transport, float64(n))
	return nil
}

// callOwn calls a tool of the gateway itself, and returns the raw result. A result with isError is an error.
func (t *target) callOwn(ctx context.Context, server string, one step) ([]byte, error) {
	s, err := t.session(ctx, server)
	if err != nil {
		return nil, err
	}
	answer, err := s.send(ctx, "tools/call", []byte(`{"name":`+string(wire.Encode(one.tool))+`,"arguments":`+one.args+`}`))
	if err == nil && string(wire.Member(answer, "isError")) == "true" {
		err = fmt.Errorf("%s %s: %s", one.tool, one.args, clip(seenByModel(answer), 300))
	}
	return answer, err
}

func resultsFigure() *figure {
	return &figure{name: "results", title: "Tokens of results",
		about: "Results of real servers and APIs (internal/compress/testdata/results) as one text each. What a model gets: the " +
			"texts, or " +
			"structuredContent where there is no content.",
		columns: []column{{"results", "", ""}, {"tokens", "tokens", less}, {"share of direct", "", less}, {"larger than sent", "",
			less}},
		run: (*bench).measureResults}
}

func (b *bench) measureResults(f *figure) {
	files, _ := filepath.Glob(filepath.Join(b.module, "internal", "compress", "testdata", "results", "*.json"))
	spec := serverSpec{Name: "files", Results: map[string]json.RawMessage{}}
	sent, mark := map[string]int{}, map[string]string{}
	all := 0
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.say("%v", err)
			continue
		}
		name := fmt.Sprintf("result_%d", i)
		spec.Tools = append(spec.Tools,
			json.RawMessage(`{"name":"`+name+`","description":"Returns a document.","inputSchema":{"type":"object","properties":{}}}`))
		spec.Results[name] = json.RawMessage(textResult(string(text)))
		sent[name] = tokens.Count(string(text))
		mark[name] = longestWord(string(text))
		all += sent[name]
	}
	order := slices.Sorted(maps.Keys(sent))
	b.each(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
		t, err := b.start(p, transport, "", []serverSpec{spec, {Name: "other"}}, l)
		if err != nil {
			return err
		}
		defer t.stop()
		if err := t.ready(ctx, "files"); err != nil {
			return err
		}
		total, larger := 0, 0
		for _, name := range order {
			result, err := t.call(ctx, "files", name, `{}`)
			if err != nil {
				return err
			}
			if !strings.Contains(seenByModel(result), mark[name]) {
				return fmt.Errorf("%s: the answer is not the document: %s", name, clip(string(result), 200))
			}
			n := tokens.Count(seenByModel(result))
			l.note("%s: %d sent, %d received", name, sent[name], n)
			total += n
			if n > sent[name] {
				larger++
			}
		}
		b.add(f, "results", p, transport, float64(len(order)))
		b.add(f, "tokens", p, transport, float64(total))
		b.add(f, "share of direct", p, transport, float64(total)/float64(all))
		b.add(f, "larger than sent", p, transport, float64(larger))
		return nil
	})
}

// longestWord returns the longest word of letters in a text. A check looks for this word, so it finds the text even if a gateway
// writes the text in another form.
func longestWord(text string) (longest string) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' }) {
		if len(word) > len(longest) {
			longest = word
		}
	}
	return longest
}
