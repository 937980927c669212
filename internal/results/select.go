package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/jq"
)

// FilterError means that a filter failed on the JSON in Value.
type FilterError struct {
	Value json.RawMessage
	// Handle refers to the value, so that the model can apply another filter to it without calling the tool again. It is empty
	// if the value was too long to be kept.
	Handle string
	Err    error
}

func (e *FilterError) Error() string { return e.Err.Error() }

// Unwrap returns why the filter failed: an error of the jq runner, [ErrBusy], or that no filters can be run here.
func (e *FilterError) Unwrap() error { return e.Err }

// Select applies a filter to a value. If the parameter grep is not empty, it then applies the grep to the output of the filter.
// If the filter does not suit the value (a [jq.FilterError]) and fallback is not nil, the filter is applied to fallback. The
// error is the error of ctx, a [FilterError], a [RefusedError] or, from the grep, [ErrBusy].
func (p Pages) Select(ctx context.Context, filter, grep string, value, fallback json.RawMessage) (*Page, error) {
	s, err := p.filter(ctx, filter, value)
	if _, unfit := errors.AsType[*jq.FilterError](err); unfit && fallback != nil {
		if fits, otherErr := p.filter(ctx, filter, fallback); otherErr == nil {
			s, value, err = fits, fallback, nil
		}
	}
	if err != nil && ctx.Err() == nil {
		err = &FilterError{Value: value, Handle: p.keepValue(value), Err: err}
	}
	if err != nil {
		return nil, err
	}
	page, err := p.selection(ctx, s, filter, grep, value)
	if err != nil {
		return nil, err
	}
	page.notSelected = notSelected(value, filter, string(s.value))
	return page, nil
}

// selection returns the page that shows those parts of the output of a filter that match grep, or all of it if grep is empty.
func (p Pages) selection(ctx context.Context, s *selection, filter, grep string, value json.RawMessage) (*Page, error) {
	if grep == "" || s.empty() {
		return p.selected(s, filter, value), nil
	}
	h := p.divideSelection(s)
	which, err := p.wanted(ctx, h, ReadArguments{Grep: grep})
	if err != nil {
		return nil, err
	}
	if which.len() == h.count() {
		return p.selected(s, filter, value), nil
	}
	p.unasked = true
	return p.page(h, which, ReadArguments{Grep: grep}), nil
}

// keepValue keeps a value, so that another filter can be applied to it. A JSON string is kept as a plain text.
func (p Pages) keepValue(value json.RawMessage) (handle string) {
	p.unasked = true
	if text, ok := wire.WholeText(value); ok {
		return p.Keep(text, true)
	}
	return p.Keep(string(value), false)
}

// selected returns the page that shows a selection, which is cut if it is too long. If there is no output, or if the outputs
// consist of nulls, the filter most likely asked for a key that does not exist. So the page then also has the shape of value,
// unless value is null itself.
func (p Pages) selected(s *selection, filter string, value json.RawMessage) *Page {
	text := p.outputText(s)
	page := &Page{Text: text.Text}
	if s.nulls >= 0 && string(value) != "null" {
		if s.nulls > fewNulls {
			page.Text = fmt.Sprintf("%d × null", s.nulls)
		}
		page.Text = withLine(page.Text, "["+missing(filter, value)+"shape of the result: "+p.Shape(value)+"]")
	}
	if p.Fits(page.Text) {
		if p.Texts.JS && page.Text == text.Text {
			page.Value = text.Value
		}
		page.Structured = append(append([]byte(`{"result":`), s.value...), '}')
		return page
	}
	page.Text = p.look(p.divideSelection(s), p.limit())
	page.cut = max(0, Roughly(text.Text)-Roughly(page.Text))
	return page
}

// fewNulls is the greatest number of nulls that are written out if a selection has nothing but nulls. Of more nulls, only the
// number is written.
const fewNulls = 3

// missing names the keys in a filter that the value does not have, and similar keys of the value that may have been meant. It
// leaves out keys that the filter itself makes.
func missing(filter string, value json.RawMessage) string {
	keys := compress.Keys(value)
	var out strings.Builder
	for _, key := range keysIn(filter) {
		if made := strings.Contains(filter, key+":"); made || slices.Contains(keys, key) {
			continue
		}
		fmt.Fprintf(&out, "no key %q", key)
		if near := sanitize.Nearest(key, keys); len(near) > 0 {
			fmt.Fprintf(&out, " (did you mean %q?)", near[0])
		}
		out.WriteString("; ")
	}
	return out.String()
}

// keysIn returns the keys that a filter names as .KEY, each once.
func keysIn(filter string) (keys []string) {
	for _, m := range namedKey.FindAllStringSubmatch(quotedText.ReplaceAllString(filter, `""`), -1) {
		if !slices.Contains(keys, m[1]) {
			keys = append(keys, m[1])
		}
	}
	return keys
}

// shortKeysIn returns the names in a filter that may be keys in the short form {KEY}, which stands for {KEY: .KEY}.
func shortKeysIn(filter string) (keys []string) {
	filter = strings.ReplaceAll(quotedText.ReplaceAllString(filter, `""`), ",", ",,") // one comma for each of its neighbours
	for _, m := range shortKey.FindAllStringSubmatch(filter, -1) {
		keys = append(keys, m[1])
	}
	return keys
}

var (
	quotedText = pattern.New(`"(?:\\.|[^"\\])*"`)
	namedKey   = pattern.New(`\.([A-Za-z_][A-Za-z0-9_]*)`)
	shortKey   = pattern.New(`[{,]\s*([A-Za-z_][A-Za-z0-9_]*)\s*[,}]`)
)

// Shape describes which keys and types a value has, so that the model can correct its filter.
func (p Pages) Shape(value json.RawMessage) string {
	h := &result{value: value}
	if len(value) > 0 && (value[0] == '[' || value[0] == '{') {
		p.listIn(h)
	}
	return h.shape(shapeTokens)
}

const shapeTokens = 300

// selection is the output of a filter.
type selection struct {
	text string // one value, JSON Lines if there are several outputs, or noOutput
	// value is the only output. If several is true, value is an array of all outputs; it is empty if there is no output.
	value   json.RawMessage
	several bool
	// nulls is the number of nulls if every output contains nulls and no other scalar, otherwise -1 (see nullsIn). It is 0 if
	// there is no output.
	nulls int
}

// filter runs a jq filter. The error is the error of ctx, [ErrBusy], an error of the jq runner, or errNoFilter if p has no runner.
func (p Pages) filter(ctx context.Context, filter string, value json.RawMessage) (*selection, error) {
	if p.Filter == nil {
		return nil, errNoFilter
	}
	outputs, err := p.Filter.Run(ctx, p.Principal, filter, value)
	_, busy := errors.AsType[*semaphore.BusyError](err)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case busy:
		return nil, ErrBusy
	case err != nil:
		return nil, err
	}
	inOrder(filter, value, outputs)
	nulls := 0
	for _, output := range outputs {
		if n := nullsIn(output); n > 0 && nulls >= 0 {
			nulls += n
		} else {
			nulls = -1
		}
	}
	s := &selection{several: len(outputs) != 1, nulls: nulls}
	switch len(outputs) {
	case 0:
		s.value, s.text = json.RawMessage("[]"), noOutput
	case 1:
		s.value, s.text = outputs[0], plainText(outputs[0], p.Verbatim)
	default:
		s.value, s.text = together(outputs), joined("", outputs, "\n", "")
	}
	return s, nil
}

// nullsIn returns the number of nulls in a value that has no other scalars and no empty array or object, otherwise 0. It does not
// read long values, as they hardly ever consist of nulls.
func nullsIn(value json.RawMessage) (n int) {
	if len(value) > maxNulls {
		return 0
	}
	doc, ok := wire.Read(string(value))
	if !ok {
		return 0
	}
	for i := range doc.Nodes {
		switch node := &doc.Nodes[i]; {
		case node.Kind == wire.Null:
			n++
		case !node.Kind.Container() || node.Count == 0:
			return 0
		}
	}
	return n
}

// maxNulls is the size of the longest value that nullsIn reads, in bytes.
const maxNulls = 256 << 10

// noOutput is the text that the model gets if the filter has no output.
const noOutput = "[select gave nothing]"

// empty reports whether the filter had no output.
func (s *selection) empty() bool { return s.several && len(s.value) == len("[]") }

var errNoFilter = errors.New("filters are not available here")

// plainText returns a value as text. A string is written without its quotes, unless it would then be blank or look like another JSON
// value. If verbatim is true, a string may look like JSON: it is most likely the text of a file.
func plainText(value json.RawMessage, verbatim bool) string {
	var text string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	if trimmed := strings.TrimSpace(text); trimmed == "" || !verbatim && json.Valid([]byte(trimmed)) {
		return string(value)
	}
	return text
}

// outputText returns a selection as the model sees it if it is not cut.
func (p Pages) outputText(s *selection) compress.Output {
	if p.Verbatim {
		return compress.Output{Text: s.text}
	}
	return compress.Text(s.text, p.Texts)
}

// divideSelection makes a result of a selection. If there are several outputs, they become the items of the result.
func (p Pages) divideSelection(s *selection) *result {
	if s.several {
		return p.divide(string(s.value), s.text, false)
	}
	return p.divide(s.text, p.outputText(s).Text, p.Verbatim)
}
