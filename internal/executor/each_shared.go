package executor

import (
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/results"
)

// share shortens the results of several calls. It replaces each value that occurs in several places by a name, and returns a
// text, head, that declares these names as JavaScript constants. If this saves nothing, or if a line in another text could be
// taken for a line of head, the results stay unchanged and head is empty.
func share(calls []*oneOf) (head string) {
	var of []*oneOf
	var values, texts []string
	for _, one := range calls {
		switch {
		case one.result == nil:
		case one.result.Value == "":
			if declares(one.result) {
				return ""
			}
		default:
			of = append(of, one)
			values = append(values, one.result.Value)
			texts = append(texts, wire.ReadBlock(one.result.Content[0]).Text)
		}
	}
	head, bodies, ok := compress.Shared(values, texts)
	if !ok {
		return ""
	}
	for i, one := range of {
		sent := results.Roughly(bodies[i]) - results.Roughly(texts[i])
		if i == 0 {
			sent += results.Roughly(head)
		}
		one.result.Content[0] = wire.ReadBlock(one.result.Content[0]).WithText(bodies[i])
		one.result.Sent += sent
		one.r.Event.Sent, one.r.Event.SentBytes = one.result.Sent, one.result.Size()
	}
	return head
}

// declares reports whether a line in the texts of a result begins with const, so that it could be taken for a line of the head.
func declares(result *results.Result) bool {
	for _, raw := range result.Content {
		for line := range strings.Lines(wire.ReadBlock(raw).Text) {
			if strings.HasPrefix(strings.TrimSpace(line), "const ") {
				return true
			}
		}
	}
	return false
}
