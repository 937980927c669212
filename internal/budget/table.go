package budget

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/describe"
)

// WriteTable writes r as text for the screen s. If s is a terminal and complete is false, WriteTable writes only what fits on one
// screen: the totals, and the servers with the highest cost.
func WriteTable(w io.Writer, r *Report, s terminal.Screen, complete bool) error {
	t := &table{Screen: s, all: complete || s.Height() == 0}
	if r.Catalogue != nil {
		t.catalogue(r)
	}
	if r.Results != nil {
		if r.Catalogue != nil {
			t.b.WriteByte('\n')
		}
		t.results(r.Results)
	}
	note := fmt.Sprintf("Tokens are those of %s.", r.Encoding)
	if !t.all {
		note += " --all says more."
	}
	t.b.WriteString("\n" + t.Dim(strings.TrimSuffix(t.Wrap(0, note), "\n")) + "\n")
	_, err := io.WriteString(w, t.b.String())
	return err
}

// table is a report that is being written.
type table struct {
	terminal.Screen
	all bool
	b   strings.Builder
}

func (t *table) say(format string, args ...any) {
	t.b.WriteString(t.Hang("", fmt.Sprintf(format, args...)))
}

const (
	// linesAround is how many lines of one screen are needed for everything except the rows of servers and the notes.
	linesAround = 17
	// fewNotes is how many notes are shown on one screen.
	fewNotes = 3
)

func (t *table) catalogue(r *Report) {
	c, total := r.Catalogue, r.Catalogue.Total
	t.b.WriteString(t.Bold("Tool definitions in every request") + "\n\n")
	t.bars(total)
	rows := []terminal.Row{{Cells: t.cells("SERVER", "TOOLS", "DIRECT", "RAW", "MCPX", "MEDIAN", "P95", "BREAK-EVEN", "$/1,000")}}
	shown, left := c.Servers, 0
	if room := max(t.Height()-linesAround-min(len(c.Notes), fewNotes), 3); !t.all && len(shown) > room {
		shown, left = slices.Clone(shown), len(shown)-room
		slices.SortStableFunc(shown, func(a, b Server) int { return cmp.Compare(b.Direct, a.Direct) })
		shown = shown[:room]
	}
	for _, server := range shown {
		rows = append(rows, terminal.Row{Cells: t.server(server.Name, server)})
	}
	if left > 0 {
		rows = append(rows, terminal.Row{Cells: t.cells(t.Dim(fmt.Sprintf("and %d more", left)), "", "", "", "", "", "", "", "")})
	}
	if len(c.Servers) != 1 {
		rows = append(rows, terminal.Row{}, terminal.Row{Cells: t.server(terminal.Count(len(c.Servers), "server"), total)})
	}
	t.b.WriteString("\n" + t.Table(1, rows) + "\n")
	if !t.all {
		raw := ""
		if !t.narrow() {
			raw = ", RAW is DIRECT with output schemas"
		}
		t.say("DIRECT is without mcpx, MCPX with it (of one server: alone), MEDIAN and P95 are what one look-up costs, BREAK-EVEN is how many look-ups make direct cheaper%s.", raw)
		t.say("%s", searchLine(c))
		for _, note := range c.Notes[:min(len(c.Notes), fewNotes)] {
			t.b.WriteString(terminal.Clip(t.Yellow("Note: ")+sanitize.Line(note, 400), t.Width()) + "\n")
		}
		return
	}
	t.legend()
	t.costs(r)
	t.searching(c)
	for _, note := range c.Notes {
		t.b.WriteString(t.Hang(t.Yellow("Note: "), sanitize.Line(note, 400)))
	}
}

// bars draws one bar for the cost without mcpx, and one for the cost with mcpx.
func (t *table) bars(total Server) {
	columns, most := t.Width()-40, max(total.Direct, total.Surface, 1)
	fmt.Fprintf(&t.b, "  connected directly %9s  %s\n", terminal.Number(total.Direct), t.Yellow(t.Bar(total.Direct, most, columns)))
	fmt.Fprintf(&t.b, "  through mcpx       %9s  %s %s\n", terminal.Number(total.Surface), t.Green(t.Bar(total.Surface, most, columns)),
		t.Bold(terminal.Change(total.Direct, total.Surface)))
}

func (t *table) legend() {
	for _, line := range [...][2]string{
		{"DIRECT", "what each request carries without mcpx: minified {name, description, inputSchema}"},
		{"RAW", "the whole definitions, with output schemas and annotations"},
		{"MCPX", "what each request carries with mcpx; of one server: as if it were the only one"},
		{"MEDIAN P95", "of looking up one tool, complete, with inspect"},
		{"BREAK-EVEN", "tools that a conversation can look up before direct would have been cheaper"},
		{"$/1,000", "what DIRECT costs in 1,000 requests"},
	} {
		if line[0] == "RAW" && t.narrow() {
			continue // the table has no such column
		}
		t.b.WriteString(t.Hang(terminal.Pad(line[0], 12), line[1]))
	}
	t.b.WriteByte('\n')
}

// costs writes the totals in tokens and dollars, and what it costs to look up every tool once.
func (t *table) costs(r *Report) {
	c, total := r.Catalogue, r.Catalogue.Total
	parts := make([]string, len(c.Surface))
	for i, part := range c.Surface {
		parts[i] = sanitize.Line(part.Name, 0) + " " + terminal.Number(part.Tokens)
	}
	t.say("In every request: %s tokens direct, %s through mcpx (%s): %s.",
		terminal.Number(total.Direct), terminal.Number(total.Surface),
		terminal.Change(total.Direct, total.Surface), strings.Join(parts, ", "))
	t.say("1,000 requests at $%s per million input tokens, without prompt caching: "+
		"$%s direct, $%s through mcpx, $%s more where each carries one looked-up tool.",
		strconv.FormatFloat(r.Price, 'f', -1, 64),
		terminal.Dollars(total.Cost.Direct), terminal.Dollars(total.Cost.Surface), terminal.Dollars(total.Cost.Inspect))
	if total.Direct > 0 && total.Raw > 0 {
		text := fmt.Sprintf("Looking up every tool once: %s tokens, %.2f of DIRECT; output types are in it: %.2f of the definitions with output schemas.",
			terminal.Number(total.Inspect.Sum), ratio(total.Inspect.Sum, total.Direct), ratio(total.Inspect.Sum, total.Raw))
		if total.Surface+total.Inspect.Sum <= total.Direct {
			text += " Even then mcpx carries less."
		}
		t.say("%s", text)
	}
}

// searching writes the figures of clients that search for tools themselves, and what they gain from mcpx.
func (t *table) searching(c *Catalogue) {
	rows := []terminal.Row{{Cells: []string{"TOOL SEARCH", "DIRECT", "MCPX", "CHANGE"}}}
	for _, s := range c.ToolSearch {
		rows = append(rows, terminal.Row{Cells: []string{
			s.Client, terminal.Number(s.Direct), terminal.Number(s.Surface), terminal.Change(s.Direct, s.Surface),
		}})
	}
	t.b.WriteString("\n" + t.Table(1, rows) + "\n")
	for _, s := range describe.Searchers {
		t.b.WriteString(t.Hang(terminal.Pad(s.Client, 12), "shows "+s.Says))
	}
	d, i := c.Total.Definition, c.Total.Inspect
	t.say("These clients search for tools themselves, and show a model little before that. A tool found so costs its definition: %s tokens in the median, "+
		"%s at P95; with inspect %s and %s. What mcpx gains there: results, one search over all servers by what tools do, and arguments checked before a call.",
		terminal.Number(d.Median), terminal.Number(d.P95), terminal.Number(i.Median), terminal.Number(i.P95))
}

// searchLine returns the figures of clients that search for tools themselves, in one sentence.
func searchLine(c *Catalogue) string {
	parts := make([]string, len(c.ToolSearch))
	for i, s := range c.ToolSearch {
		parts[i] = fmt.Sprintf("%s %s, with mcpx %s", s.Client, terminal.Number(s.Direct), terminal.Number(s.Surface))
	}
	return "Clients that search for tools themselves carry: " + strings.Join(parts, "; ") + "."
}

func (t *table) server(name string, s Server) []string {
	name = sanitize.Line(name, 0)
	if !s.Known {
		return t.cells(name, "-", "-", "-", "-", "-", "-", "-", "-")
	}
	return t.cells(
		name, terminal.Number(s.Tools), terminal.Number(s.Direct), terminal.Number(s.Raw), terminal.Number(s.Surface),
		terminal.Number(s.Inspect.Median), terminal.Number(s.Inspect.P95), breakEven(s.BreakEven), terminal.Dollars(s.Cost.Direct),
	)
}

// cells returns a row of the table. It leaves out the column RAW if the screen is too narrow.
func (t *table) cells(all ...string) []string {
	if t.narrow() {
		return slices.Delete(all, 3, 4)
	}
	return all
}

func (t *table) narrow() bool { return t.Width() < 100 }

func breakEven(n float64) string {
	if n >= 100 {
		return terminal.Number(int(n))
	}
	return strconv.FormatFloat(math.Floor(n*10)/10, 'f', 1, 64)
}

func (t *table) results(r *Results) {
	rows := []terminal.Row{{Cells: []string{"RESULTS", "COUNT", "RECEIVED", "MINIFIED", "PLAIN TOON", "SENT", "CHANGE", "TOON"}}}
	for _, c := range r.Classes {
		rows = append(rows, terminal.Row{Cells: classCells(c.Name, c)})
	}
	if len(r.Classes) != 1 {
		rows = append(rows, terminal.Row{}, terminal.Row{Cells: classCells("all", r.Total)})
	}
	t.b.WriteString(t.Table(1, rows) + "\n")
	t.say("MINIFIED is what mcpx would send without TOON, PLAIN TOON what toon-go makes of all JSON; TOON is how many results became that.")
}

func classCells(name string, c Class) []string {
	return []string{
		sanitize.Line(name, 0), terminal.Number(c.Documents), terminal.Number(c.Received),
		terminal.Number(c.Minified), terminal.Number(c.PlainTOON), terminal.Number(c.Sent),
		terminal.Change(c.Received, c.Sent), terminal.Number(c.TOON),
	}
}

func ratio(a, b int) float64 { return float64(a) / float64(b) }
