package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/catalog"
	"mcpx/internal/wire"
)

// Builtin is the name of the server that mcpx itself is.
const Builtin = "mcpx"

const readResult = "read_result"

const readResultSchema = `{"type":"object","properties":{` +
	`"handle":{"type":"string"},` +
	`"offset":{"type":"integer","minimum":0,"default":0,"description":"items or lines to skip"},` +
	`"limit":{"type":"integer","minimum":1,"description":"most items or lines"},` +
	`"select":{"type":"string","description":"jq filter on the JSON"},` +
	`"grep":{"type":"string","description":"regular expression; only items or lines that match"}},` +
	`"required":["handle"],"additionalProperties":false}`

// builtin describes the server mcpx. It is not in the catalogue: the line under
// a cut result says how to call it.
func builtin() *catalog.Server {
	yes, no := true, false
	server := catalog.Server{
		Name: Builtin, State: catalog.Ready, Known: true, Transport: "built-in",
		Instructions: "Reads results that were too long to be shown whole.",
	}.WithTools([]catalog.Tool{{
		Name:        readResult,
		Description: "Read on in a long result by its handle.",
		InputSchema: json.RawMessage(readResultSchema),
		Hints:       catalog.Hints{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Annotations: json.RawMessage(`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`),
	}})
	return &server
}

// readArguments are the arguments of read_result.
type readArguments struct {
	Handle string `json:"handle"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Select string `json:"select,omitempty"`
	Grep   string `json:"grep,omitempty"`
}

// takeReadArguments reads the arguments of read_result. Whole numbers may be
// written in any way that the schema allows, as 1.0 or 1e2.
func takeReadArguments(raw json.RawMessage) (args readArguments, violation string) {
	var written struct {
		Handle, Select, Grep string
		Offset, Limit        json.RawMessage
	}
	if json.Unmarshal(raw, &written) != nil {
		return args, "/: handle, select and grep must be strings"
	}
	args = readArguments{Handle: written.Handle, Select: written.Select, Grep: written.Grep}
	var ok bool
	if args.Offset, ok = wholeNumber(written.Offset); !ok {
		return args, "/offset: must be a whole number, 0 or more"
	}
	if args.Limit, ok = wholeNumber(written.Limit); !ok {
		return args, "/limit: must be a whole number, 1 or more"
	}
	return args, ""
}

// maxNumber stands for every offset or limit above: it is over all that is kept.
const maxNumber = 1e9

// wholeNumber reads a JSON number; 0 where it is absent.
func wholeNumber(raw json.RawMessage) (n int, ok bool) {
	if len(raw) == 0 {
		return 0, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || f != math.Trunc(f) || f < 0 {
		return 0, false
	}
	return int(min(f, maxNumber)), true
}

// execBuiltin runs a tool of the server mcpx.
func (e run) execBuiltin(ctx context.Context, r Request) (*Result, error) {
	t, err := e.find(ctx, &r)
	if err == nil {
		t.arguments, err = e.schemas.Read(r.Arguments, t.tool.InputSchema, true)
	}
	if err != nil {
		return e.fault(r, t, err).Result(r.Structured), nil
	}
	args, violation := takeReadArguments(t.arguments)
	switch {
	case violation != "":
	case args.Select == "":
		args.Select = r.Select
	case r.Select != "":
		violation = "/select: is given twice"
	}
	if violation != "" {
		return e.fault(r, t, arguments.Invalid(violation)).Result(r.Structured), nil
	}
	return e.read(ctx, r, t, args)
}

// read answers read_result.
func (e run) read(ctx context.Context, r Request, t target, args readArguments) (*Result, error) {
	refuse := func(violation string) (*Result, error) {
		return e.fault(r, t, arguments.Invalid(violation)).Result(r.Structured), nil
	}
	h, ok := e.store.get(args.Handle, r.principal())
	if !ok {
		return refuse("/handle: is unknown or has expired")
	}
	if args.Select != "" {
		if h.value == nil {
			return refuse("/select: the result is not JSON; use grep, offset and limit")
		}
		selected, err := e.filter(ctx, args.Select, h.value)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return filterFault(err, h.value, args.Handle).Result(r.Structured), nil
		}
		if selected.empty() || args.Grep == "" && args.Offset == 0 && args.Limit == 0 {
			return e.selection(selected, nil, r), nil
		}
		// The note keeps the selection under a handle of its own.
		h, args.Handle, args.Select = e.holdSelection(selected, h.principal), "", ""
	}
	wanted, violation, err := h.wanted(ctx, args)
	if err != nil {
		return nil, err
	}
	if violation != "" {
		return refuse(violation)
	}
	text := e.cut(h, wanted, e.limit(), args)
	if wanted.len() == 0 {
		text = fmt.Sprintf("[none of %d %s]", h.count(), h.noun())
	}
	out := &Result{Content: []json.RawMessage{wire.TextBlock(text)}}
	if r.Structured && h.items != nil && h.within(wanted, likelyBytes*e.limit()) && e.fits([]string{text}) {
		if value, ok := wire.Compact(h.part(wanted)); ok && e.fits([]string{value}) {
			out.Structured = append(append([]byte(`{"result":`), value...), '}')
		}
	}
	return out, nil
}

// limit is what one answer may have, in tokens.
func (e run) limit() int {
	if e.options.ResultTokens <= 0 {
		return 1 << 30
	}
	return e.options.ResultTokens
}

// wanted are the items or lines that were asked for. The only error is ctx's.
func (h *held) wanted(ctx context.Context, args readArguments) (which span, violation string, err error) {
	which = h.all()
	if args.Grep != "" {
		if len(args.Grep) > 1000 {
			return span{}, "/grep: is too long", nil
		}
		pattern := args.Grep
		if h.merged {
			pattern = "(?m)" + pattern // ^ and $ are those of a line
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return span{}, "/grep: " + err.Error(), nil
		}
		if which, err = h.grep(newMatcher(ctx, re, time.Now().Add(grepTime))); errors.Is(err, errGrepTime) {
			return span{}, "/grep: took more than " + grepTime.String() + "; use a simpler expression, or select", nil
		} else if err != nil {
			return span{}, "", err
		}
	}
	which = which.skip(max(0, args.Offset))
	if args.Limit > 0 {
		which = which.first(args.Limit)
	}
	return which, "", nil
}
