package budget

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/plain"
)

// Width is the columns that [WriteTable] stays within.
const Width = 100

// WriteTable writes r for people, as plain text.
func WriteTable(w io.Writer, r *Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Tokens are %s, counted with %s.\n", r.Encoding, r.Library)
	if r.Catalogue != nil {
		writeCatalogue(&b, r.Catalogue, r.Price)
	}
	if r.Results != nil {
		writeResults(&b, r.Results)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCatalogue(b *strings.Builder, c *Catalogue, price float64) {
	rows := [][]string{{"SERVER", "TOOLS", "DIRECT", "RAW", "MCPX", "MEDIAN", "P95", "BREAK-EVEN", "$/1,000"}}
	for _, s := range c.Servers {
		rows = append(rows, serverRow(s.Name, s))
	}
	if len(c.Servers) != 1 {
		rows = append(rows, nil, serverRow(plural(len(c.Servers), "server"), c.Total))
	}
	b.WriteByte('\n')
	writeRows(b, rows)
	b.WriteString("\n" + legend)
	t := c.Total
	parts := make([]string, len(c.Surface))
	for i, part := range c.Surface {
		parts[i] = plain.Line(part.Name, 0) + " " + number(part.Tokens)
	}
	b.WriteByte('\n')
	b.WriteString(wrap(fmt.Sprintf("In every request: %s tokens direct, %s through mcpx (%s): %s.",
		number(t.Direct), number(t.Surface), change(t.Direct, t.Surface), strings.Join(parts, ", "))))
	b.WriteString(wrap(fmt.Sprintf("1,000 requests at $%s per million input tokens, without prompt caching: $%s direct, $%s through mcpx, $%s more where each carries one looked-up tool.",
		strconv.FormatFloat(price, 'f', -1, 64), dollars(t.Cost.Direct), dollars(t.Cost.Surface), dollars(t.Cost.Inspect))))
	if t.Direct > 0 && t.Raw > 0 {
		text := fmt.Sprintf("Looking up every tool once: %s tokens, %.2f of DIRECT; output types are in it: %.2f of RAW.",
			number(t.Inspect.Sum), ratio(t.Inspect.Sum, t.Direct), ratio(t.Inspect.Sum, t.Raw))
		if t.Surface+t.Inspect.Sum <= t.Direct {
			text += " Even then mcpx carries less."
		}
		b.WriteString(wrap(text))
	}
	for _, note := range c.Notes {
		b.WriteString(wrap("Note: " + plain.Line(note, 400)))
	}
}

const legend = `DIRECT      what each request carries without mcpx: minified {name, description, inputSchema}
RAW         the whole definitions, with output schemas and annotations
MCPX        what each request carries with mcpx; of one server: as if it were the only one
MEDIAN P95  of looking up one tool, complete, with inspect
BREAK-EVEN  tools that a conversation can look up before direct would have been cheaper
$/1,000     what DIRECT costs in 1,000 requests
`

func serverRow(name string, s Server) []string {
	if !s.Known {
		return []string{name, "-", "-", "-", "-", "-", "-", "-", "-"}
	}
	return []string{
		name, number(s.Tools), number(s.Direct), number(s.Raw), number(s.Surface),
		number(s.Inspect.Median), number(s.Inspect.P95), breakEven(s.BreakEven), dollars(s.Cost.Direct),
	}
}

func breakEven(n float64) string {
	if n >= 100 {
		return number(int(n))
	}
	return strconv.FormatFloat(math.Floor(n*10)/10, 'f', 1, 64)
}

func writeResults(b *strings.Builder, r *Results) {
	rows := [][]string{{"RESULTS", "COUNT", "RECEIVED", "MINIFIED", "SENT", "CHANGE", "TOON"}}
	for _, c := range r.Classes {
		rows = append(rows, classRow(c.Name, c))
	}
	if len(r.Classes) != 1 {
		rows = append(rows, nil, classRow("all", r.Total))
	}
	b.WriteByte('\n')
	writeRows(b, rows)
	b.WriteString("\nMINIFIED is what mcpx would send without TOON; TOON is how many results became that.\n")
}

func classRow(name string, c Class) []string {
	return []string{
		name, number(c.Documents), number(c.Received), number(c.Minified), number(c.Sent), change(c.Received, c.Sent), number(c.TOON),
	}
}

// writeRows writes a table whose first column is text and whose others are
// figures; the text gives way so that Width holds. A nil row is a rule.
func writeRows(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rest := 0
	for _, w := range widths[1:] {
		rest += w + 2
	}
	widths[0] = max(8, min(widths[0], Width-rest))
	for _, row := range rows {
		if row == nil {
			b.WriteString(strings.Repeat("-", widths[0]+rest) + "\n")
			continue
		}
		name := clip(plain.Line(row[0], 0), widths[0])
		b.WriteString(name + strings.Repeat(" ", widths[0]-utf8.RuneCountInString(name)))
		for i, cell := range row[1:] {
			fmt.Fprintf(b, "  %*s", widths[i+1], cell)
		}
		b.WriteByte('\n')
	}
}

// clip cuts a name in the middle: what tells names apart is often at the end.
func clip(name string, columns int) string {
	runes := []rune(name)
	if len(runes) <= columns {
		return name
	}
	head := (columns - 3) / 3
	return string(runes[:head]) + "..." + string(runes[len(runes)-(columns-3-head):])
}

// wrap breaks a text into lines of Width.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		word = clip(word, Width-2)
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > Width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

// number writes n with commas between the thousands.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func ratio(a, b int) float64 { return float64(a) / float64(b) }

func dollars(x float64) string {
	cents := int(math.Round(x * 100))
	return fmt.Sprintf("%s.%02d", number(cents/100), cents%100)
}

// change is how much more or less to is than from.
func change(from, to int) string {
	if from == 0 {
		return "0 %"
	}
	s := strconv.FormatFloat(100*float64(to-from)/float64(from), 'f', 1, 64)
	if s == "-0.0" {
		s = "0.0"
	}
	return s + " %"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(n) + " " + what + "s"
}
