package describe

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

// TestServer_About: the answer about one server has the whole purpose of the server, up to
// maxAbout tokens. If the purpose is longer, the answer says how many characters it leaves out.
func TestServer_About(t *testing.T) {
	var long strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&long, "Rule %d: do this before that.\n", i)
	}
	tests := []struct {
		name, text string
		first      string
		last       string // the end of the text; empty if the text is cut
		most       int    // the most tokens of the text
	}{
		{"short", "Reads mail.", "// Reads mail.\n", "", 20},
		{"over the catalogue's bound", strings.Repeat("Reads mail. ", 30) + "\nNever delete.", "/*\nReads mail. ", "\nNever delete.\n*/\n", 200},
		{"hundreds of lines", long.String()[:12000], "/*\nRule 0: ", "", 4100},
		{"thousands of lines", long.String(), "/*\nRule 0: ", "", maxAbout + 100},
		{"one endless line", strings.Repeat("word ", 100_000), "/*\nword word", "", maxAbout + 100},
		{"without a space", strings.Repeat("x", 1<<20), "/*\n", "", maxAbout + 100},
		{"the end of a comment", strings.Repeat("*/ type Evil = 1; /* ", 40), "/*\n*\\/ type", "", 600},
		{"blank lines", "\n\n" + strings.Repeat("a\n\n\n\n", 200), "/*\na\n\na", "\na\n*/\n", 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &catalog.Server{Name: "s", Known: true, State: catalog.Ready, Instructions: tt.text}
			text, _ := Server(s, Options{TypeScript: true})
			text = strings.TrimSuffix(text, "s has no tools.")
			if !strings.HasPrefix(text, tt.first) || !strings.HasSuffix(text, tt.last) {
				t.Errorf("got %.200q ... %q", text, text[max(0, len(text)-100):])
			}
			if n := tokens.Count(text); n > tt.most {
				t.Errorf("%d tokens, want at most %d", n, tt.most)
			}
			if strings.Count(text, "*/") > 1 {
				t.Errorf("the comment ends twice: %q", text)
			}
			whole := sanitize.Line(tt.text, 0)
			shown := sanitize.Line(strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/\n"), 0)
			if cut := strings.Contains(text, " characters left out]"); !cut && !strings.Contains(strings.ReplaceAll(text+shown, `*\/`, "*/"), whole) {
				t.Errorf("some is left out and not said so: %q", text)
			} else if cut && tokens.Count(text) < maxAbout*9/10 && !strings.Contains(tt.name, "space") {
				t.Errorf("cut at %d tokens", tokens.Count(text))
			}
		})
	}
}
