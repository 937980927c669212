package request

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
)

func TestTraceparent(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, sampled := range map[string]bool{
		"00-" + trace + "-" + parent + "-01":      true,
		"00-" + trace + "-" + parent + "-02":      false,
		"01-" + trace + "-" + parent + "-03-more": true,
	} {
		gotTrace, gotParent, got := parseTraceparent(wire.Encode(text))
		if gotTrace != trace || gotParent != parent || got != sampled {
			t.Errorf("%s: %s %s %v", text, gotTrace, gotParent, got)
		}
	}
	for _, text := range []string{
		`""`, `7`, `{}`, `"00-` + trace + `-` + parent + `"`, `"00-` + trace + `-` + parent + `-0g"`, `"00-` + strings.ToUpper(trace) + `-` + parent + `-01"`,
		`"00-00000000000000000000000000000000-` + parent + `-01"`, `"00-` + trace + `-0000000000000000-01"`, `"00-` + trace + parent + `--01"`,
	} {
		if trace, parent, sampled := parseTraceparent(json.RawMessage(text)); trace != "" || parent != "" || sampled {
			t.Errorf("%s: %s %s %v", text, trace, parent, sampled)
		}
	}
}
