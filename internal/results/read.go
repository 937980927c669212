package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
)

// Server and Tool name the tool that reads the rest of a result.
const (
	Server = "mcpx"
	Tool   = "read_result"
)

// Schema is the JSON Schema of [ReadArguments].
const Schema = `{"type":"object","properties":{` +
	`"handle":{"type":"string"},` +
	`"offset":{"type":"integer","minimum":0,"default":0,"description":"items or lines to skip"},` +
	`"limit":{"type":"integer","minimum":1,"description":"most items or lines"},` +
	`"select":{"type":"string","description":"jq filter on the JSON"},` +
	`"grep":{"type":"string","description":"regular expression; only items or lines that match"}},` +
	`"required":["handle"],"additionalProperties":false}`

// ReadArguments are the arguments of read_result.
type ReadArguments struct {
	Handle string `json:"handle"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Select string `json:"select,omitempty"`
	Grep   string `json:"grep,omitempty"`
}

// ParseArguments reads the arguments of read_result. Whole numbers may be written as 1.0 or 1e2, since JSON Schema allows it.
// If an argument is invalid, violation says why, in the form "/path: reason"; otherwise violation is empty.
func ParseArguments(raw json.RawMessage) (args ReadArguments, violation string) {
	var written struct {
		Handle, Select, Grep string
		Offset, Limit        json.RawMessage
	}
	if json.Unmarshal(raw, &written) != nil {
		return args, "/: handle, select and grep must be strings"
	}
	args = ReadArguments{Handle: written.Handle, Select: written.Select, Grep: written.Grep}
	var ok bool
	if args.Offset, ok = wholeNumber(written.Offset); !ok {
		return args, "/offset: must be a whole number, 0 or more"
	}
	if args.Limit, ok = wholeNumber(written.Limit); !ok || args.Limit == 0 && written.Limit != nil {
		return args, "/limit: must be a whole number, 1 or more"
	}
	return args, ""
}

// maxNumber is the largest offset or limit; larger numbers are lowered to it. No result has so many parts.
const maxNumber = 1e9

// wholeNumber reads a JSON number. It returns 0 if the number is absent. ok is false if it is negative, not whole or not a number.
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

// Page is the part of a result that one call returns.
type Page struct {
	Text string
	// Structured is {"result": …} with the JSON that Text shows. It is nil if Text shows no JSON, or only a part of it, or if
	// the JSON is too long.
	Structured json.RawMessage
	// Value is the JSON that Text shows, in compact form. It is empty if Text is not the output of a filter, or if mcpx may not
	// write the output as JavaScript.
	Value string
	// Origin is the tool that the kept result comes from. It is zero if the page is not a part of a kept result, or if that
	// result was kept for another reason than its length.
	Origin Origin
	// cut is how many tokens of a selection are not on the page but kept under a handle.
	cut int
	// notSelected is a line about paging members that the filter or the grep of a call left out. It may be empty; see the function
	// notSelected.
	notSelected string
}

// RefusedError means that an argument of read_result, or the grep of a call, was refused. Violation has the form "/path:
// reason".
type RefusedError struct{ Violation string }

func (e *RefusedError) Error() string { return e.Violation }

// gone says that no result is kept under a handle. A call that changes something must not be made twice only to read its result.
const gone = "is unknown or has expired; a call that only reads can be made again"

// Read answers read_result. The error is the error of ctx, [ErrBusy], a [RefusedError], a [FilterError] or [state.ErrAway].
func (p Pages) Read(ctx context.Context, args ReadArguments) (*Page, error) {
	h, err := p.get(ctx, args.Handle)
	switch {
	case errors.Is(err, errRunning):
		return nil, &RefusedError{"/handle: " + err.Error()}
	case errors.Is(err, state.ErrUnknown):
		return nil, &RefusedError{"/handle: " + gone}
	case err != nil:
		return nil, err
	}
	// Parts of the result that are kept have the same origin.
	p.Origin, p.unasked, p.Verbatim = h.origin, h.unasked, h.file
	page, err := p.read(ctx, h, args)
	if page != nil && !h.unasked {
		page.Origin = h.origin
	}
	return page, err
}

// read returns the part of h that args ask for. It returns the same errors as Read.
func (p Pages) read(ctx context.Context, h *result, args ReadArguments) (*Page, error) {
	if args.Select != "" {
		value := h.value
		if value == nil { // a filter gets a text as a JSON string
			value = wire.Encode(strings.Join(h.units, ""))
		}
		selected, err := p.filter(ctx, args.Select, value)
		if err != nil && ctx.Err() == nil {
			err = &FilterError{Value: value, Handle: args.Handle, Err: err}
		}
		if err != nil {
			return nil, err
		}
		if selected.empty() || args.Grep == "" && args.Offset == 0 && args.Limit == 0 {
			return p.selected(selected, args.Select, value), nil
		}
		// The method cut keeps the selection under a new handle.
		h, args.Handle, args.Select = p.divideSelection(selected), "", ""
	}
	wanted, err := p.wanted(ctx, h, args)
	if err != nil {
		return nil, err
	}
	return p.page(h, wanted, args), nil
}

// MayRead reports whether the principal may, at this moment, read results of this origin (server and tool).
func (p Pages) MayRead(ctx context.Context, origin Origin) bool {
	return p.Readable == nil || p.Readable(ctx, origin)
}

// page renders the wanted items or lines. args are the arguments of the request.
func (p Pages) page(h *result, wanted span, args ReadArguments) *Page {
	switch {
	case wanted.len() > 0 || wanted.whole:
	case wanted.list != nil:
		kept := ""
		if args.Handle == "" && h.omitsMuch(wanted) {
			kept = p.keep(h)
		}
		return &Page{Text: p.withMatched("", h, wanted, kept)}
	default:
		return &Page{Text: fmt.Sprintf("[none of %d %s]", h.count(), h.noun())}
	}
	page := &Page{Text: p.cut(h, wanted, p.limit(), args, "")}
	if h.items != nil && h.within(wanted, likelyBytes*p.limit()) && p.Fits(page.Text) {
		if value, ok := wire.Compact(h.json(h.chosen(wanted), wanted.whole)); ok && p.Fits(value) {
			page.Structured = json.RawMessage(`{"result":` + value + "}")
		}
	}
	return page
}

// wanted returns the items or lines that the arguments select. The error is the error of ctx, [ErrBusy] or a [RefusedError].
func (p Pages) wanted(ctx context.Context, h *result, args ReadArguments) (which span, err error) {
	which = h.all()
	if args.Grep != "" {
		m, err := p.newGrep(ctx, args.Grep)
		if err == nil {
			which, err = h.grep(m, p.rows(h))
			m.end()
		}
		if err != nil {
			return span{}, refusedGrep(err)
		}
	}
	which = which.skip(max(0, args.Offset))
	if args.Limit > 0 {
		which = which.first(args.Limit)
	}
	return which, nil
}
