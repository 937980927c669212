package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestDemo_Picture: docs/demo.svg shows what mcpx demo prints on a terminal. With -update it draws the picture again.
func TestDemo_Picture(t *testing.T) {
	mcptest.Parallel(t)
	var out bytes.Buffer
	if err := (&demoCommand{}).Run(t.Context(), &cli{}, streams{out: &out, screen: sized(80, 40, true)}); err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/demo.svg"
	got := terminalPicture("$ mcpx demo\n" + out.String())
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, got) {
		t.Errorf("docs/demo.svg shows another demo (%v): go test ./cmd/mcpx -run Demo_Picture -update draws it again", err)
	}
}

// The layout of a picture of a terminal, in pixels. The font may be wider or narrower; textLength sets the width of a line.
const (
	cellWidth, cellHeight = 8, 18
	pictureColumns        = 80
	pictureMargin         = 16
)

// styles are the classes of the picture by the codes of the terminal.
var styles = map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y"}

// terminalPicture draws the output of a command, with its styles, as an SVG image.
func terminalPicture(output string) []byte {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	width, height := pictureColumns*cellWidth+2*pictureMargin, len(lines)*cellHeight+2*pictureMargin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title">
<title id="title">What mcpx demo prints on a terminal</title>
<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#d6dbe1}
.b{font-weight:700;fill:#fff}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#3fb950}.y{fill:#d29922}</style>
<rect width="%d" height="%d" rx="8" fill="#15191f"/>
`, width, height, width, height, width, height)
	escape := regexp.MustCompile("\x1b\\[([0-9]*)m")
	class := ""
	for i, line := range lines {
		column, rest := 0, line
		for rest != "" {
			text, code := rest, ""
			if at := escape.FindStringSubmatchIndex(rest); at != nil {
				text, code, rest = rest[:at[0]], rest[at[2]:at[3]], rest[at[1]:]
			} else {
				rest = ""
			}
			n := len([]rune(text))
			if strings.TrimSpace(text) != "" {
				fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d" class="%s" xml:space="preserve">%s</text>`+"\n",
					pictureMargin+column*cellWidth, pictureMargin+i*cellHeight+13, n*cellWidth, class, html.EscapeString(text))
			}
			column += n
			if code != "" {
				class = styles[code]
			}
		}
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
