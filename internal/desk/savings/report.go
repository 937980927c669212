package savings

import (
	"cmp"
	"fmt"
	"slices"

	"mcpx/internal/base/chart"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

// Report has the savings of some days. `mcpx stats --json` prints it.
type Report struct {
	// Encoding is the encoding whose tokens are estimated: o200k_base.
	Encoding string `json:"encoding"`
	// Since is the first day of the report, Days the number of days. The last day is today.
	Since string `json:"since"`
	Days  int    `json:"days"`
	// By says what each row is about: a server, tool, client or day.
	By    string  `json:"by"`
	Total Figures `json:"total"`
	// Rows are sorted by what was saved, the most first. If the rows are days, they are in the order of time.
	Rows []Row `json:"rows"`
}

// Row has the figures of one server, tool, client or day.
type Row struct {
	Name string `json:"name"`
	Figures
}

// saved returns the sum of the three kinds of savings.
func (f Figures) saved() int64 { return f.Definitions + f.Compression + f.Cut }

// Sum adds up days by server, tool, client or day.
func Sum(days []Day, by string) (total Figures, rows []Row) {
	sums := make(map[string]Figures)
	for i := range days {
		d := &days[i]
		sum := d.total()
		total.Add(sum)
		part := map[string]map[string]Figures{"server": d.Servers, "tool": d.Tools, "client": d.Clients, "day": {d.Date: sum}}[by]
		for name, f := range part {
			one := sums[name]
			one.Add(f)
			sums[name] = one
		}
	}
	rows = []Row{}
	for name, f := range sums {
		rows = append(rows, Row{name, f})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if by == "day" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.saved(), a.saved()), cmp.Compare(a.Name, b.Name))
	})
	return total, rows
}

// Fewer returns at most limit rows. If there are more rows, it replaces those with the least savings by one row with their sum, the last
// row. If the rows are days, it replaces the oldest days by one row with their sum, the first row.
func (r *Report) Fewer(limit int) []Row {
	n := len(r.Rows)
	if n <= limit {
		return r.Rows
	}
	kept, left := r.Rows[:limit-1], r.Rows[limit-1:]
	if r.By == "day" {
		kept, left = r.Rows[n-limit+1:], r.Rows[:n-limit+1]
	}
	rest := Row{Name: fmt.Sprintf("%d others", len(left))}
	for _, one := range left {
		rest.Add(one.Figures)
	}
	if r.By == "day" {
		rest.Name = fmt.Sprintf("%d days before", len(left))
		return append([]Row{rest}, kept...)
	}
	return append(slices.Clone(kept), rest)
}

const (
	maxRows = 20 // the maximum number of rows of the chart; if the rows are days, it is maxDays
	maxDays = 31
	maxName = 20 // the maximum length of a row's name, in runes

	columnWidth, barLength = 196, 108 // in pixels
)

// Chart draws the report as an SVG image, with a column for each of the three kinds of savings. Each column has a scale of its own.
func Chart(r *Report) []byte {
	c := chart.New()
	c.Heading(fmt.Sprintf("Tokens saved by %s, %s since %s", r.By, terminal.Count(r.Days, "day"), r.Since))
	most := maxRows
	if r.By == "day" {
		most = maxDays
	}
	rows := r.Fewer(most)
	columns := []struct {
		name, colour string
		of           func(Figures) int64
		largest      int64
	}{
		{"definitions", chart.Green, func(f Figures) int64 { return f.Definitions }, 1},
		{"compression", chart.Blue, func(f Figures) int64 { return f.Compression }, 1},
		{"behind a handle", chart.Orange, func(f Figures) int64 { return f.Cut }, 1},
	}
	if len(rows) > 1 {
		rows = append(slices.Clone(rows), Row{"all", r.Total})
	}
	for i := range columns {
		column := &columns[i]
		for _, row := range rows {
			column.largest = max(column.largest, column.of(row.Figures))
		}
		c.Column(chart.Left + i*columnWidth)
		c.Note(column.name)
	}
	c.Down(2 * chart.Thick)
	for _, row := range rows {
		c.Row(terminal.ClipMiddle(sanitize.Line(row.Name, 0), maxName), terminal.Count(int(row.Calls), "call"), 2*chart.Thick)
		for i, column := range columns {
			n := column.of(row.Figures)
			c.Column(chart.Left + i*columnWidth)
			switch {
			case n > 0:
				c.Label(c.Bar(column.colour, int(n), int(column.largest), barLength, chart.Thick), 0, terminal.Number(int(n)))
			case n < 0:
				c.Label(0, 0, terminal.Number(int(n)))
			}
		}
		c.Down(34)
	}
	total := fmt.Sprintf("%s, %s: %s tokens of definitions, %s by compression, %s left behind a handle.", terminal.Count(int(r.Total.Sessions), "session"),
		terminal.Count(int(r.Total.Calls), "call"), terminal.Number(int(r.Total.Definitions)), terminal.Number(int(r.Total.Compression)), terminal.Number(int(r.Total.Cut)))
	return c.SVG("Tokens saved by mcpx", total, "Estimated tokens of "+r.Encoding+", counted by mcpx stats. Each column has a scale of its own.")
}
