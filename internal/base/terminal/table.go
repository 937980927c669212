package terminal

import (
	"math"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// minName is the smallest width to which the first column is cut.
const minName = 8

// Row is a row of a [Screen.Table]. A row without cells is printed as a line of dashes.
type Row struct {
	Cells []string
	Notes []string // printed below the row
}

// Table arranges rows in columns. The first row has the headings. firstNumber is the index of the first column with numbers: this
// column and those after it are aligned to the right. If the table is wider than the terminal, the names in the first column are
// cut, but not to less than minName columns. If the table would still be too wide then, the names stay whole, and the lines wrap.
func (s Screen) Table(firstNumber int, rows []Row) string {
	widths := make([]int, len(rows[0].Cells))
	for _, row := range rows {
		for i, cell := range row.Cells {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	rest := 0
	for _, width := range widths[1:] {
		rest += width + 2
	}
	if room := s.Width() - rest; s.Height() > 0 && room >= minName {
		widths[0] = min(widths[0], room)
	}
	var b strings.Builder
	for i, row := range rows {
		var line strings.Builder
		for at, cell := range row.Cells {
			switch {
			case at == 0:
				line.WriteString(Pad(ClipMiddle(cell, widths[0]), widths[0]))
			case at >= firstNumber:
				line.WriteString(strings.Repeat(" ", 2+widths[at]-ansi.StringWidth(cell)) + cell)
			default:
				line.WriteString("  " + Pad(cell, widths[at]))
			}
		}
		text := strings.TrimRight(line.String(), " ")
		switch {
		case row.Cells == nil:
			text = s.Dim(strings.Repeat("-", widths[0]+rest))
		case i == 0:
			text = s.Bold(text)
		}
		b.WriteString(text + "\n")
		for _, note := range row.Notes {
			b.WriteString(s.Wrap(4, note))
		}
	}
	return b.String()
}

// Number formats n with commas between the thousands.
func Number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Dollars formats an amount with two decimals.
func Dollars(x float64) string {
	cents := int(math.Round(x * 100))
	return Number(cents/100) + "." + strconv.Itoa(100 + cents%100)[1:]
}

// Change formats the change between two numbers in percent, such as "-41.3 %". If from is 0, it returns "0 %".
func Change(from, to int) string {
	if from == 0 {
		return "0 %"
	}
	text := strconv.FormatFloat(100*float64(to-from)/float64(from), 'f', 1, 64)
	if text == "-0.0" {
		text = "0.0"
	}
	return text + " %"
}

// Count formats a number of things, such as "1 tool" or "2 tools".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return Number(n) + " " + thing + "s"
}

// Bar returns a bar that shows how large n is, compared with whole. If n is equal to whole, the bar has as many columns as the
// parameter columns says. It has at least one.
func (s Screen) Bar(n, whole, columns int) string {
	mark := "#"
	if s.live {
		mark = "█"
	}
	return strings.Repeat(mark, max(1, n*columns/max(1, whole)))
}
