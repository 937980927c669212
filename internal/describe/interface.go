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
	// TypeScript shows the schemas of tools as TypeScript; otherwise they are shown as
	// minified JSON Schema.
	TypeScript bool
	// MaxDescription is the maximum length of a parameter's description, in characters, if several complete tools are shown as
	// TypeScript; longer descriptions are cut. 0 means 300. In the answer of [Matches] it is at most matchDescription.
	MaxDescription int
	// ShortNames means that the arguments of inspect are named server and tool, not
	// server_name and tool_name.
	ShortNames bool
	// ListingTokens is the maximum number of tokens that complete tools may take in the answer about a server, or to a query that
	// is a list of several tool names; 0 means 3000. In the answer to a call that names several tools of one server, they may take
	// listingOver times as many.
	ListingTokens int
	// LearnedType is for tools without an output schema. It returns the TypeScript type of the results that the tool has returned
	// so far, as a text that will be written after prefix, or "" if no results are known. Without LearnedType, answers have no
	// such types.
	LearnedType func(s *catalog.Server, t *catalog.Tool, prefix string) string
}

const (
	defaultMaxDescription = 300
	defaultListingTokens  = 3000
	// inputDescription is how many characters of a parameter's description an error shows at most.
	inputDescription = 120
	// maxResult is the maximum length of the type of a tool's result, in tokens. It may be small, since the model will see the
	// result itself.
	maxResult = 400
)

// named returns text in which the arguments of exec and inspect have their short names if o.ShortNames is set.
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

// Servers returns the answer to inspect without arguments: every server with its present state unless it is ready, the number of
// its tools if it is known, and its purpose. If the answer is too long, the purposes are cut.
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

// nothing returns the answer to inspect if there is no server.
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

// state returns the state of s in words, with the reason for it and the time until mcpx tries to connect again, if these are
// known.
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

// stateLine returns a line with the state of s. It is empty if s is ready, or idle, since an
// idle server starts with the next call.
func stateLine(s *catalog.Server) string {
	if ready(s) || s.State == catalog.Idle {
		return ""
	}
	return "// " + sanitize.Line(s.Name, 0) + " is " + state(s) + "\n"
}

// Server returns the answer to inspect with the name of a server. It has the server's state (but not the states ready and idle),
// the server's purpose, and all tools of the server if they are known. complete is false if the complete definitions of the tools
// do not fit into o.ListingTokens. The answer then has signatures, parameter names, or only the names of the tools.
func Server(s *catalog.Server, o Options) (text string, complete bool) {
	o = o.withDefaults()
	if len(s.Tools) == 0 && !s.Known {
		text = about(s) + sanitize.Line(s.Name, 0) + " is " + state(s)
		switch s.State {
		case catalog.Disabled:
			return text + ".", true
		case catalog.NeedsLogin:
			return about(s) + sanitize.Line(s.Name, 0) + " needs the user's own login; call any of its tools for the link.", true
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

// Tool returns the answer to inspect with the names of a server and a tool: the state of the server unless it is ready or idle, the
// complete definition of the tool, and the type of the results that the tool has returned so far, if it is known.
func Tool(s *catalog.Server, t *catalog.Tool, o Options) string {
	texts, _ := definitions([]*catalog.Tool{t}, o.withDefaults())
	return stateLine(s) + texts[0] + o.learned(s, t)
}

// learned returns a line with the type of the results that t has returned so far. It is empty if no results are known, if t has an
// output schema, or if tools are shown as JSON Schema.
func (o Options) learned(s *catalog.Server, t *catalog.Tool) string {
	const prefix = "\n// seen: "
	if o.LearnedType == nil || !o.TypeScript || t.OutputSchema != nil {
		return ""
	}
	if text := o.LearnedType(s, t, prefix); text != "" {
		return prefix + text
	}
	return ""
}

// Tools returns the answer to a call of inspect that names several tools of one server. In TypeScript, the text of a tool leaves
// out the parts that the text of an earlier tool in the answer already has. If the complete tools take more than listingOver times
// o.ListingTokens, the answer has the form of [Named], and its complete tools take at most as many tokens.
func Tools(s *catalog.Server, ts []*catalog.Tool, o Options) string {
	if len(ts) == 1 {
		return Tool(s, ts[0], o)
	}
	o = o.withDefaults()
	texts, legend := definitions(ts, o)
	text := stateLine(s) + legend + strings.Join(texts, "\n\n")
	if tokens.Estimate(text) <= listingOver*o.ListingTokens {
		return text
	}
	ms := make([]Match, len(ts))
	for i, t := range ts {
		ms[i] = Match{Server: s, Tool: t}
	}
	return namedWithin(ms, nil, o, listingOver*o.ListingTokens)
}

// Input returns the input type of t as TypeScript, reduced to the parts that lead to the places, in at most limit tokens (see
// [schemats.Along]). It is for errors about arguments: places are the paths of the wrong arguments.
func Input(t *catalog.Tool, places [][]string, limit int) string {
	return schemats.Along(t.InputSchema, places, schemats.Options{
		MaxDescription: inputDescription,
	}, limit, tokens.Estimate)
}

// Declaration returns the input and output types of t as complete and valid TypeScript, for
// the structuredContent of an answer.
func Declaration(t *catalog.Tool) string {
	return schemats.Declaration(t.InputSchema, t.OutputSchema, schemats.Options{})
}

// cutLegend explains the mark [+N] at the end of a description that was cut.
const cutLegend = "// [+N]: N more characters, all with that tool_name alone\n"

// definitions returns the complete definition of each tool, for an answer that has all of them. If there are several, TypeScript
// has the descriptions of parameters cut to o.MaxDescription. If a description was cut, legend is a line to write above the
// definitions, otherwise it is empty.
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

// signature returns one line about a tool: with the types of its parameters, or, if
// o.TypeScript is false, with their names.
func signature(t *catalog.Tool, o Options) string {
	if o.TypeScript {
		tool := render(t)
		tool.Description = withoutHeading(t.Description, t.Name)
		return schemats.Listing(tool)
	}
	var b strings.Builder
	b.WriteString(sanitize.Line(t.Name, 0))
	writeParams(&b, schemats.Params(t.InputSchema), allParams)
	if desc := sanitize.Line(withoutHeading(t.Description, t.Name), maxDesc); desc != "" {
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

// notes returns the annotations that help a model to decide about a call. It knows three hints: read-only, destructive and
// idempotent. A value that is the default of the MCP specification is left out. But if the server itself sets the hint
// destructiveHint to true, which is the default, "destructive" is written.
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

// definition returns t as minified JSON, for configs that show JSON Schema, not TypeScript. If a schema is not valid JSON, it
// returns only the name.
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
