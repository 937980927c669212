package results

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// Data returns a kept result as the bytes of a file. If filter is not empty, Data applies it to the result and returns its output,
// of which there must be exactly one. For a content block with an image, audio or other binary data, Data returns the decoded
// base64. It returns a text as it is, also if the text is a JSON string, and everything else as JSON. Of the output of a filter, it
// returns the content of a string. It returns the same errors as [Pages.Value].
func (p Pages) Data(ctx context.Context, handle, filter string) ([]byte, error) {
	value, err := p.Value(ctx, handle, filter, false)
	if err != nil {
		return nil, err
	}
	if data, ok := binary(value); ok {
		return data, nil
	}
	if filter == "" {
		h, err := p.known(ctx, handle)
		if err != nil {
			return nil, err
		}
		return []byte(h.whole()), nil
	}
	if text, ok := wire.WholeText(value); ok {
		return []byte(text), nil
	}
	return value, nil
}

// binary decodes a content block with binary data. value is the block, or a list or tool result that has no other block. For any
// other value, ok is false.
func binary(value json.RawMessage) (data []byte, ok bool) {
	if content := wire.Member(value, "content"); len(content) > 0 && content[0] == '[' {
		value = content
	}
	if value[0] == '[' {
		var blocks []json.RawMessage
		if wire.Elements(value, func(one []byte) bool { blocks = append(blocks, one); return len(blocks) < 2 }) != nil || len(blocks) != 1 {
			return nil, false
		}
		value = blocks[0]
	}
	if value[0] != '{' {
		return nil, false
	}
	encoded := ""
	switch wire.MemberText(value, "type") {
	case "image", "audio":
		encoded = wire.MemberText(value, "data")
	case "resource":
		encoded = wire.MemberText(wire.Member(value, "resource"), "blob")
	}
	if encoded == "" {
		return nil, false
	}
	encoded = strings.TrimRight(strings.Map(withoutSpace, encoded), "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, err := encoding.DecodeString(encoded); err == nil {
			return data, true
		}
	}
	return nil, false
}

// withoutSpace drops the line ends and spaces with which some encoders wrap base64.
func withoutSpace(r rune) rune {
	if r == '\n' || r == '\r' || r == ' ' {
		return -1
	}
	return r
}
