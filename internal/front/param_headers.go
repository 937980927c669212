package front

import (
	"context"
	"encoding/json"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
)

// compareParams checks that the Mcp-Param headers of a modern call over HTTP have the same values as the
// arguments that they repeat (SEP-2243). A proxy may have allowed the call because of a header, so a call with
// other arguments must not reach the server.
func (f *Front) compareParams(ctx context.Context, r *incoming) *rpcError {
	if r.headers == nil || r.Method != string(mcp.MethodToolsCall) {
		return nil
	}
	name, _ := wire.Text(r.name)
	tool := f.view.HeaderTool(ctx, r.client, name)
	if tool == nil {
		return nil
	}
	arguments := r.arguments
	if text, ok := wire.Text(arguments); ok { // the executor also accepts arguments that are JSON in a string
		arguments = json.RawMessage(text)
	}
	var names memberNames
	_ = wire.Fields(arguments, func(key string, _ []byte) bool {
		names.twice = !names.add(key)
		return !names.twice
	})
	if names.twice {
		return &rpcError{code: mcp.INVALID_PARAMS, message: "a member of arguments is repeated"}
	}
	for _, binding := range mcp.ExtractParamHeaderBindings(tool) {
		value := arguments
		for _, name := range binding.Path {
			value = wire.Member(value, name)
		}
		// Proxies join the values of a repeated header with a comma and a space.
		values := r.headers[textproto.CanonicalMIMEHeaderKey(binding.HeaderName())]
		if wrong := differs(strings.Join(values, ", "), values != nil, value); wrong != "" {
			return &rpcError{code: mcp.HEADER_MISMATCH, message: "the header " + binding.HeaderName() + " " + wrong + " the argument " + strings.Join(binding.Path, ".")}
		}
	}
	return nil
}

// differs describes how a header differs from the JSON value; an empty string means that they agree. Headers repeat only strings,
// numbers and booleans, so for any other value the header must be missing or empty. differs does not check that the value has the
// type which the tool's schema requires.
func differs(header string, present bool, value json.RawMessage) string {
	text, isText := wire.Text(value)
	simple := len(value) > 0 && value[0] != '{' && value[0] != '[' && string(value) != "null"
	switch decoded, ok := mcp.DecodeHeaderValue(header); {
	case !simple && header == "":
		return ""
	case !simple:
		return "has a value, unlike"
	case !present:
		return "is missing, unlike"
	case !ok:
		return "is not valid base64, unlike"
	case isText && decoded == text, !isText && (decoded == string(value) || sameNumber(decoded, string(value))):
		return ""
	}
	return "does not match"
}

// sameNumber reports whether two numbers have the same value, such as 5 and 5.0. For very large numbers it returns false.
func sameNumber(a, b string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	const exact = 1 << 53 // larger integers may have the same float64 although they differ
	return errA == nil && errB == nil && x == y && -exact < x && x < exact
}
