package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/jq"
)

// ValueError says why a kept result gives no value. Member is "handle" or "select", whichever is at fault.
type ValueError struct{ Member, Reason string }

func (e *ValueError) Error() string { return e.Reason }

// Value returns a kept result as one JSON value: the result's JSON or, if it is not JSON, its text as a string. If filter is not
// empty, the filter is applied to that value and must have exactly one output. If the parameter text is true, Value returns a
// string: without a filter, the complete text of the result, or its content if it is a JSON string; with a filter, the JSON of the
// output, if that is an object or array.
// The error is the error of ctx, a [ValueError], [ErrBusy] or [state.ErrAway], or says that filters cannot be run. The value must
// not be changed.
func (p Pages) Value(ctx context.Context, handle, filter string, text bool) (json.RawMessage, error) {
	h, err := p.known(ctx, handle)
	if err != nil {
		return nil, err
	}
	value := h.value
	if value == nil {
		value = wire.Encode(h.whole())
	}
	if filter != "" {
		return p.valueOf(ctx, filter, value, text)
	}
	if text && value[0] != '"' {
		value = wire.Encode(h.whole())
	}
	return value, nil
}

// known returns a kept result. The error is a [ValueError] if there is none with this handle, or if its call still runs.
func (p Pages) known(ctx context.Context, handle string) (*result, error) {
	h, err := p.get(ctx, handle)
	switch {
	case errors.Is(err, errRunning):
		err = &ValueError{"handle", err.Error()}
	case errors.Is(err, state.ErrUnknown):
		err = &ValueError{"handle", "the result " + gone}
	}
	return h, err
}

// valueOf returns the only output of a filter. The error is a [ValueError] if the filter fails, or if it has no output or more than
// one. If the parameter text is true, an object or array becomes a string that contains its JSON.
func (p Pages) valueOf(ctx context.Context, filter string, value json.RawMessage, text bool) (json.RawMessage, error) {
	s, err := p.filter(ctx, filter, value)
	limit, over := errors.AsType[*jq.LimitError](err)
	broken, wrong := errors.AsType[*jq.FilterError](err)
	switch {
	case over:
		return nil, &ValueError{"select", "the filter went over its limit of " + limit.What}
	case wrong:
		return nil, &ValueError{"select", broken.Message}
	case err != nil:
		return nil, err
	case s.several:
		n := 0
		_ = wire.Elements(s.value, func([]byte) bool { n++; return true })
		return nil, &ValueError{"select", fmt.Sprintf("the filter gave %d values; it must give one, such as an array: [%s]", n, "...")}
	case text && (s.value[0] == '{' || s.value[0] == '['):
		return wire.Encode(string(s.value)), nil
	}
	return s.value, nil
}

// whole returns the complete text of a result. If the result is divided into lines in which JSON was compressed, whole returns the
// JSON.
func (h *result) whole() string {
	switch {
	case h.items != nil:
		return h.text(h.items, true)
	case h.verbatim || h.value == nil:
		return strings.Join(h.units, "")
	}
	return string(h.value)
}
