package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// Digest returns a text that identifies a tool's definition: name, description, schemas and annotations. White space and the order
// of members make no difference. The text is "sha256:" and hexadecimal digits.
func Digest(t *catalog.Tool) string {
	sum := sha256.Sum256(wire.Encode([]any{
		t.Name, t.Description, canonical(t.InputSchema), canonical(t.OutputSchema), canonical(t.Annotations),
	}))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical decodes a value so that encoding it again sorts its members and keeps its numbers as they were. It returns nil if raw
// is not JSON.
func canonical(raw json.RawMessage) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

// Differences returns the names of the members in which two definitions of a tool differ.
func Differences(a, b *catalog.Tool) (members []string) {
	for _, part := range []struct {
		name string
		a, b json.RawMessage
	}{
		{"description", wire.Encode(a.Description), wire.Encode(b.Description)}, {"inputSchema", a.InputSchema, b.InputSchema},
		{"outputSchema", a.OutputSchema, b.OutputSchema}, {"annotations", a.Annotations, b.Annotations},
	} {
		if !bytes.Equal(wire.Encode(canonical(part.a)), wire.Encode(canonical(part.b))) {
			members = append(members, part.name)
		}
	}
	return members
}
