package describe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/schemats"
	"mcpx/internal/tokens"
)

// Options are the settings of the answers of inspect.
type Options struct {
	// TypeScript is false for minified JSON Schema.
	TypeScript bool
	// MaxDescription cuts the descriptions of parameters in a text with several
	// complete tools, in characters; 0 means 300.
	MaxDescription int
	// ShortNames means that the tools take server and tool.
	ShortNames bool
	// ListingTokens bounds the complete tools in an answer about several tools; 0
	// means 3000.
	ListingTokens int
	// Seen returns what is known of the results of a tool that declares no output type, as
	// a TypeScript type behind prefix; empty = nothing. Nil = nothing is known of any.
	Seen func(s *catalog.Server, t *catalog.Tool, prefix string) string
}

const (
	defaultMaxDescription = 300
	defaultListingTokens  = 3000
	// inputDescription bounds the description of a parameter in an error, in characters.
	inputDescription = 120
	// maxResult bounds the type of a tool's result, in tokens: a model will see the
	// result itself.
	maxResult = 400
)

// named is a text of mcpx with the configured names of the arguments.
func (o Options) named(text string) string { return Features{ShortNames: o.ShortNames}.named(text) }

func (o Options) withDefaults() Options {
	if o.MaxDescription <= 0 {
		o.MaxDescription = defaultMaxDescription
	}
	if o.ListingTokens <= 0 {
		o.ListingTokens = defaultListingTokens
	}
	return o
}

// Servers is the answer to inspect without arguments: every server with the number of
// its tools, its purpose, and its present state unless it is ready.
func Servers(snap *catalog.Snapshot) string {
	if len(snap.Servers) == 0 {
		return nothing(snap)
	}
	text := servers(snap, maxPurpose)
	if tokens.Estimate(text) > defaultListingTokens {
		text = servers(snap, maxPurpose/4)
	}
	return text
}

// nothing is the answer if there is no server.
func nothing(snap *catalog.Snapshot) string { return cmp.Or(snap.Empty, "No servers are configured.") }

func servers(snap *catalog.Snapshot, maxPurpose int) string {
	var b strings.Builder
	for i := range snap.Servers {
		s := &snap.Servers[i]
		var parts []string
		if !ready(s) {
			parts = append(parts, state(s))
		}
		switch {
		case s.Known || len(s.Tools) > 0:
			tools := count(len(s.Tools))
			if s.Hidden != "" {
				tools += " (" + s.Hidden + ")"
			}
			parts = append(parts, tools)
		case ready(s), s.State == catalog.Connecting, s.State == catalog.Idle:
			parts = append(parts, "tools not known yet")
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(sanitize.Line(s.Name, 0) + ": " + strings.Join(parts, ", "))
		if p := purpose(s, maxPurpose); p != "" {
			b.WriteString(" - " + p)
		}
	}
	if slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool { return s.State == catalog.Idle }) {
		b.WriteString("\n// An idle server starts with its next call.")
	}
	return b.String()
}

func ready(s *catalog.Server) bool { return s.State == "" || s.State == catalog.Ready }

// state is the state of s in words, with the reason and the time of the next attempt.
func state(s *catalog.Server) string {
	text := string(cmp.Or(s.State, catalog.Ready))
	if r := sanitize.Line(s.Reason, catalog.MaxReason); r != "" {
		text += " (" + r + ")"
	}
	if s.RetryAfter > 0 {
		text += ", next attempt in " + strconv.Itoa(int(math.Ceil(s.RetryAfter))) + " s"
	}
	return text
}

// stateLine is a line with the state of s, empty if s is ready.
func stateLine(s *catalog.Server) string {
	if ready(s) || s.State == catalog.Idle {
		return ""
	}
	return "// " + sanitize.Line(s.Name, 0) + " is " + state(s) + "\n"
}

// Server is the answer to inspect with a server's name: its whole purpose and all its
// tools. complete reports whether the tools are complete, which they are if they fit
// into o.ListingTokens; otherwise they are signatures.
func Server(s *catalog.Server, o Options) (text string, complete bool) {
	o = o.withDefaults()
	if len(s.Tools) == 0 && !s.Known {
		text = about(s) + sanitize.Line(s.Name, 0) + " is " + state(s)
		switch s.State {
		case catalog.Disabled:
			return text + ".", true
		case catalog.Connecting:
			return text + "; its tools are not known yet.", true
		}
		return text + "; its tools are not known.", true
	}
	head := stateLine(s) + about(s)
	if len(s.Tools) == 0 {
		text = head + sanitize.Line(s.Name, 0) + " has no tools"
		if s.Hidden != "" {
			text += " here: " + s.Hidden
		}
		return text + ".", true
	}
	if list, ok := all(s, o); ok {
		return head + list, true
	}
	return head + listing(s, o, listingOver*o.ListingTokens-tokens.Estimate(head)), false
}

// Tool is the answer to inspect with the names of a server and a tool.
func Tool(s *catalog.Server, t *catalog.Tool, o Options) string {
	texts, _ := definitions([]*catalog.Tool{t}, o.withDefaults())
	return stateLine(s) + texts[0] + o.seen(s, t)
}

// seen is a line with what is known of the results of t, empty if that is nothing or t
// declares it.
func (o Options) seen(s *catalog.Server, t *catalog.Tool) string {
	const prefix = "\n// seen: "
	if o.Seen == nil || !o.TypeScript || t.OutputSchema != nil {
		return ""
	}
	if seen := o.Seen(s, t, prefix); seen != "" {
		return prefix + seen
	}
	return ""
}

// Tools is [Tool] for several. Later tools do not repeat parts of earlier ones.
func Tools(s *catalog.Server, ts []*catalog.Tool, o Options) string {
	if len(ts) == 1 {
		return Tool(s, ts[0], o)
	}
	texts, legend := definitions(ts, o.withDefaults())
	return stateLine(s) + legend + strings.Join(texts, "\n\n")
}

// Input is the part of the TypeScript of the input of t that leads to some places, in at
// most that many tokens; see [schemats.Along]. It is for errors about arguments.
func Input(t *catalog.Tool, places [][]string, most int) string {
	return schemats.Along(t.InputSchema, places, schemats.Options{
		MaxDescription: inputDescription,
	}, most, tokens.Estimate)
}

// Declaration is the interface of t as complete and valid TypeScript, for structuredContent.
func Declaration(t *catalog.Tool) string {
	return schemats.Declaration(t.InputSchema, t.OutputSchema, schemats.Options{})
}

// cutLegend explains the mark of a cut description.
const cutLegend = "// [+N]: N more characters, all with that tool_name alone\n"

// definitions are complete tools for one text. If they have cut descriptions, legend is a
// line to put above them. The descriptions of a single tool are never cut.
func definitions(ts []*catalog.Tool, o Options) (texts []string, legend string) {
	if !o.TypeScript {
		for _, t := range ts {
			texts = append(texts, definition(t))
		}
		return texts, ""
	}
	so := schemats.Options{MaxResult: maxResult}
	if len(ts) > 1 {
		so.MaxDescription = o.MaxDescription
	}
	list := make([]schemats.Tool, len(ts))
	for i, t := range ts {
		list[i] = render(t)
	}
	texts, cut := schemats.All(list, so, tokens.Estimate)
	if cut {
		legend = o.named(cutLegend)
	}
	return texts, legend
}

// signature is one tool in a line: its types, or without schema compression the names
// of its parameters.
func signature(t *catalog.Tool, o Options) string {
	if o.TypeScript {
		return schemats.Listing(render(t))
	}
	var b strings.Builder
	b.WriteString(sanitize.Line(t.Name, 0))
	writeParams(&b, schemats.Params(t.InputSchema), allParams)
	if desc := sanitize.Line(t.Description, maxDesc); desc != "" {
		b.WriteString(": " + desc)
	}
	return b.String()
}

func render(t *catalog.Tool) schemats.Tool {
	return schemats.Tool{
		Name: t.Name, Description: t.Description,
		Input: t.InputSchema, Output: t.OutputSchema, Notes: notes(t.Hints),
	}
}

// notes are the annotations that help to decide about a call, without defaults of the
// specification.
func notes(h catalog.Hints) []string {
	if h.IsReadOnly() {
		return []string{"read-only"}
	}
	var list []string
	if h.Destructive != nil && *h.Destructive {
		list = append(list, "destructive")
	}
	if h.IsIdempotent() {
		list = append(list, "idempotent")
	}
	return list
}

// definition is t as minified JSON, for configs without schema compression.
func definition(t *catalog.Tool) string {
	fields := struct {
		Name         string          `json:"name"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  json.RawMessage `json:"annotations,omitempty"`
	}{t.Name, t.Description, t.InputSchema, t.OutputSchema, t.Annotations}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil { // a schema that is not JSON
		return sanitize.Line(t.Name, 0)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
