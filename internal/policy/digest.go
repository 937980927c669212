package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// Digest identifies what a server declares of a tool: name, description, schemas and
// annotations, whatever the order of members and the white space. It is "sha256:" and
// hexadecimal digits.
func Digest(t *catalog.Tool) string {
	sum := sha256.Sum256(wire.Encode([]any{
		t.Name, t.Description, canonical(t.InputSchema), canonical(t.OutputSchema), canonical(t.Annotations),
	}))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical is a value whose encoding has sorted members, and numbers as they were
// written.
func canonical(raw json.RawMessage) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

// Differences are the members that differ between two definitions of a tool.
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
