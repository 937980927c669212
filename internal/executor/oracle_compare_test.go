package executor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// answered is a result as the client received it.
type answered struct {
	content          []*node
	structured, meta *node
	isError          bool
	// legacy means that structuredContent must be an object. sdk means that content blocks must be objects, so other values are
	// turned into text blocks.
	legacy, sdk bool
}

// oracle compares answers with what the server sent. It collects the texts in TOON, so that the reference decoder can read all
// of them in one process.
type oracle struct {
	toon []toonText
	// numbers of compared results and blocks, so that a test can check how much it has covered
	results, same, shrunk int
}

type toonText struct {
	TOON  string `json:"toon"`
	JSON  string `json:"json"`
	where string
}

// differences returns how the answer differs from direct, the result that the server sent.
func (o *oracle) differences(direct string, got answered, structured results.Structured) []string {
	o.results++
	root := readJSON(direct)
	if root == nil {
		return []string{"the generator made no JSON"}
	}
	blocks, _ := blocksOf(root.last("content"))
	isError := root.last("isError")
	failed := isError != nil && isError.raw == "true"
	var faults []string
	if got.isError != failed {
		faults = append(faults, fmt.Sprintf("isError is %v", got.isError))
	}
	faults = append(faults, o.extra(root, blocks, got, structured)...)
	for i, block := range blocks {
		if i >= len(got.content) {
			break
		}
		if got.sdk && block.kind != '{' {
			block = readJSON(string(wire.TextBlock(block.raw)))
		}
		if fault := o.block(block, got.content[i], failed); fault != "" {
			faults = append(faults, fmt.Sprintf("block %d: %s\n  sent %.600s\n  got  %.600s", i, fault, block.raw, got.content[i].raw))
		}
	}
	return append(faults, metaDifferences(root, got)...)
}

// blocksOf returns the content blocks of a result. If content is a string or a single block instead of a list, it returns that
// as one block.
func blocksOf(content *node) (blocks []*node, ok bool) {
	switch {
	case content == nil:
	case content.kind == '[':
		return content.kids, true
	case content.kind == '"':
		return []*node{readJSON(`{"type":"text","text":` + content.raw + `}`)}, true
	case content.kind == '{' && content.last("type") != nil && content.last("type").kind == '"':
		return []*node{content}, true
	}
	return nil, false
}

// block compares two content blocks and returns the difference.
func (o *oracle) block(sent, got *node, failed bool) string {
	if sent.canonical() == got.canonical() {
		o.same++
		return ""
	}
	before, after := textOf(sent), textOf(got)
	switch {
	case before == nil || after == nil:
		return "is not the same"
	case sent.canonical(before) != got.canonical(after):
		return "has other members than text changed"
	case failed:
		return "of an error is not the same"
	case tokens.Estimate(after.text) > tokens.Estimate(before.text):
		return "has more tokens"
	}
	o.shrunk++
	return o.sameText(before.text, after.text)
}

// textOf returns the text member of a text block, or nil if the block is no text block.
func textOf(block *node) *node {
	kind, text := block.last("type"), block.last("text")
	if kind == nil || kind.kind != '"' || kind.text != "text" || text == nil || text.kind != '"' {
		return nil
	}
	return text
}

// sameAround compares two texts that contain JSON between other text. It returns a reason if the other text or a JSON value
// differs.
func sameAround(before, after string) string {
	plain, pieces := compress.Pieces(before)
	if len(pieces) == 0 {
		return "is no JSON, and was changed"
	}
	rest, ok := strings.CutPrefix(after, plain[:pieces[0].Start])
	for i, piece := range pieces {
		end := len(plain)
		if i+1 < len(pieces) {
			end = pieces[i+1].Start
		}
		around := plain[piece.End:end]
		at := strings.LastIndex(rest, around)
		if i+1 < len(pieces) {
			at = strings.Index(rest, around)
		}
		if !ok || at < 0 {
			return "was changed beside its JSON"
		}
		if shown := rest[:at]; json.Valid([]byte(shown)) && !compress.Equal([]byte(shown), piece.Value) {
			return "has other JSON in its text"
		}
		rest = rest[at+len(around):]
	}
	return ""
}

// sameText returns why the changed text does not have the same content as the original, or "".
func (o *oracle) sameText(before, after string) string {
	values := documentsIn(before)
	if values == nil {
		return sameAround(before, after)
	}
	if again := documentsIn(after); again != nil {
		if spellings(values) != spellings(again) {
			return "is another JSON value"
		}
		return ""
	}
	whole := values[0].raw
	if len(values) > 1 {
		raws := make([]string, len(values))
		for i, value := range values {
			raws[i] = value.raw
		}
		whole = "[" + strings.Join(raws, ",") + "]"
	}
	o.toon = append(o.toon, toonText{TOON: after, JSON: whole})
	return ""
}

// documentsIn returns the JSON objects or arrays in a text: a single one, or the objects of JSON Lines. It returns nil for any
// other text.
func documentsIn(text string) []*node {
	if one := readJSON(text); one != nil {
		if one.kind != '{' && one.kind != '[' {
			return nil
		}
		return []*node{one}
	}
	var all []*node
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Trim(line, " \t\r") == "" {
			continue
		}
		value := readJSON(line)
		if value == nil || value.kind != '{' {
			return nil
		}
		all = append(all, value)
	}
	return all
}

func spellings(values []*node) string {
	var all []string
	for _, value := range values {
		all = append(all, value.canonical())
	}
	return strings.Join(all, "\n")
}

// extra checks structuredContent, and the text block that may replace it.
func (o *oracle) extra(root *node, blocks []*node, got answered, wanted results.Structured) []string {
	sent := root.last("structuredContent")
	more := len(got.content) - len(blocks)
	if wanted == results.StructuredOnce {
		wanted = results.StructuredNone
		if got.structured != nil {
			if sent != nil && saysSame(blocks, sent) {
				return []string{"structuredContent though a text says the same: " + got.structured.raw}
			}
			wanted = results.StructuredOwn
		}
	}
	if wanted != results.StructuredNone {
		if more != 0 {
			return []string{fmt.Sprintf("%d blocks, want %d", len(got.content), len(blocks))}
		}
		if sent != nil && got.legacy && sent.kind != '{' {
			if sent.raw == "null" {
				sent = nil
			} else {
				sent = readJSON(`{"result":` + sent.raw + `}`)
			}
			return structuredDifferences(sent, nil, got.structured)
		}
		var derived *node
		if wanted == results.StructuredAlways {
			derived = derivedFrom(root, blocks)
		}
		return structuredDifferences(sent, derived, got.structured)
	}
	switch {
	case got.structured != nil:
		return []string{"structuredContent was not wanted: " + got.structured.raw}
	case sent == nil || saysSame(blocks, sent):
		if more != 0 {
			return []string{fmt.Sprintf("%d blocks, want %d: the texts say it all", len(got.content), len(blocks))}
		}
		return nil
	case more != 1:
		return []string{fmt.Sprintf("%d blocks, want %d and one for structuredContent %.300s", len(got.content), len(blocks), sent.raw)}
	}
	text := textOf(got.content[len(blocks)])
	if text == nil {
		return []string{"the block for structuredContent is no text"}
	}
	if rest, begins := strings.CutPrefix(text.text, "\n"); begins != (len(blocks) > 0) {
		return []string{"the block for structuredContent does not begin a line of its own, or one too many: " + text.text}
	} else {
		text.text = rest
	}
	if value := readJSON(text.text); value != nil && value.canonical() == sent.canonical() {
		return nil
	}
	if fault := o.sameText(sent.raw, text.text); fault != "" {
		return []string{"the block for structuredContent " + fault + ": " + text.text}
	}
	return nil
}

func structuredDifferences(sent, derived, got *node) []string {
	want := sent
	if want == nil {
		want = derived
	}
	switch {
	case want == nil && got != nil:
		return []string{"structuredContent out of nothing: " + got.raw}
	case want != nil && got == nil:
		return []string{"structuredContent is gone: " + want.raw}
	case want != nil && want.canonical() != got.canonical():
		return []string{fmt.Sprintf("structuredContent differs:\n  sent %.600s\n  got  %.600s", want.raw, got.raw)}
	}
	return nil
}

// derivedFrom returns the structuredContent that mcpx should derive from a result with a single JSON text block.
func derivedFrom(root *node, blocks []*node) *node {
	if isError := root.last("isError"); len(blocks) != 1 || isError != nil && isError.raw == "true" {
		return nil
	}
	text := textOf(blocks[0])
	if text == nil || strings.Contains(text.text, tooDeep) {
		return nil
	}
	value := readJSON(text.text)
	switch {
	case value == nil || value.kind != '{' && value.kind != '[':
		return nil
	case value.kind == '{':
		return value
	}
	return readJSON(`{"result":` + value.raw + `}`)
}

// tooDeep has more nested arrays than decoders accept.
var tooDeep = strings.Repeat("[", 10_001)

// saysSame reports whether the texts have the same content as structuredContent or as its only member. That is so if one text is
// the same JSON value or string, or contains it (see holds). It is also so if each text is one element of that member, a list.
func saysSame(blocks []*node, structured *node) bool {
	only := structured
	if structured.kind == '{' && len(structured.kids) == 1 {
		only = structured.kids[0]
	}
	for _, block := range blocks {
		if sameValue(block, structured) || sameValue(block, only) || holds(block, structured, only) {
			return true
		}
	}
	if only == structured || only.kind != '[' || len(only.kids) != len(blocks) || len(blocks) < 2 {
		return false
	}
	for i, block := range blocks {
		if !sameValue(block, only.kids[i]) {
			return false
		}
	}
	return true
}

// holds reports whether a text is structuredContent or its only member in another form than JSON, or has structuredContent within
// other text.
func holds(block, structured, only *node) bool {
	text := textOf(block)
	if text == nil {
		return false
	}
	whole := text.text
	if quoted := readJSON(whole); quoted != nil && quoted.kind == '"' {
		whole = quoted.text
	}
	if value, _, ok := compress.Value(whole); ok {
		return compress.Equal(value, []byte(structured.raw)) || compress.Equal(value, []byte(only.raw))
	}
	var values []string
	_, pieces := compress.Pieces(whole)
	for _, piece := range pieces {
		values = append(values, string(piece.Value))
	}
	within := strings.Join(values, ",")
	if len(values) > 1 {
		within = "[" + within + "]"
	}
	return compress.Equal([]byte(within), []byte(structured.raw))
}

func sameValue(block, value *node) bool {
	text := textOf(block)
	if text == nil {
		return false
	}
	if value.kind == '"' && value.text == text.text {
		return true
	}
	read := readJSON(text.text)
	return read != nil && compress.Equal([]byte(read.raw), []byte(value.raw))
}

// metaDifferences checks _meta. It must contain the server's _meta and, under mcpx/result, the unknown members of the server's
// result.
func metaDifferences(root *node, answer answered) []string {
	want := &node{kind: '{'}
	others := &node{kind: '{'}
	for i, key := range root.keys {
		value := root.kids[i]
		switch key {
		case "content":
			if _, ok := blocksOf(value); ok || value.raw == "null" || value != root.last(key) {
				continue
			}
		case "structuredContent":
			continue
		case "isError":
			if value.kind == 't' || value.kind == 'f' || value.raw == "null" || value != root.last(key) {
				continue
			}
		case "resultType":
			if value.text == "complete" || value != root.last(key) {
				continue
			}
		case "_meta":
			if value.kind == '{' || value.raw == "null" || value != root.last(key) {
				continue
			}
		}
		others.keys, others.kids = append(others.keys, key), append(others.kids, value)
	}
	if sent := root.last("_meta"); sent != nil && sent.kind == '{' {
		want.keys, want.kids = slices.Clone(sent.keys), slices.Clone(sent.kids)
	}
	if len(others.kids) > 0 {
		want.keys, want.kids = append(want.keys, "mcpx/result"), append(want.kids, others)
	}
	got := answer.meta
	if got == nil {
		got = &node{kind: '{'}
	}
	if want.canonical() != got.canonical() {
		return []string{fmt.Sprintf("_meta differs:\n  want %.600s\n  got  %.600s", want.canonical(), got.canonical())}
	}
	return nil
}

// reference decodes the collected TOON texts with the reference decoder in strict mode. The decoder reads numbers as float64,
// so the test searches the TOON text for the exact numbers.
func (o *oracle) reference(t *testing.T) {
	type answer struct{ Value, Error string }
	for i, a := range mcptest.Answers[answer](t, mcptest.Node(t, "@toon-format/toon", "check-toon.mjs"), o.toon) {
		o.toon[i].judge(t, a.Value, a.Error)
	}
}

func (one *toonText) judge(t *testing.T, value, failure string) {
	sent := readJSON(one.JSON)
	switch {
	case failure != "":
		t.Errorf("%s: TOON is refused: %s\n%s", one.where, failure, one.TOON)
	case !compress.Equal([]byte(sent.floats()), []byte(value)):
		t.Errorf("%s: TOON reads as another value:\nsent %.800s\nread %.800s", one.where, one.JSON, value)
	}
	written := strings.FieldsFunc(one.TOON, func(r rune) bool { return strings.ContainsRune(",:[]{}\"\n ", r) })
	for _, literal := range sent.numbers() {
		if !slices.Contains(written, literal) {
			t.Errorf("%s: the number %s is not in the TOON text:\n%s", one.where, literal, one.TOON)
		}
	}
}
