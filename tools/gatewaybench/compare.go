package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// reasons has two texts for a column in which mcpx is not the first: why this is so, and what would make mcpx the first. A person
// has to find out both. For a column without these texts, the report says that nobody has looked yet.
var reasons = map[string][2]string{
	"10 tools": {"the first names no tool: the model searches before it knows what there is",
		"no names, and texts of the two tools under 170 tokens; they have 269"},
	"100 tools": {"as with 10 tools", "as with 10 tools"},
	"885 tools": {"as with 10 tools", "as with 10 tools"},
	"turns to a known tool": {"the definitions of all tools are in the list, for 100 times the tokens",
		"the signatures of the tools used last in the description"},
	"1 MB JSON":           {"the first passes the text on; mcpx writes it in fewer tokens", "no other form for texts that no model reads"},
	"1 MB text":           {"the first passes the text on; mcpx looks for JSON in it", "no look at texts that no model reads"},
	"tokens of an answer": {"the first answers with fewer tools, the right ones less often: its R@5", "fewer hits in an answer"},
	"100 MB: caller":      {"mcpx refuses messages over `max_message_bytes` (64 MiB), and says so", "a higher one; no model can read such a result"},
	"storm: slowest": {"the first ignores list_changed (it asked for the tools once, with 2,000 changes announced); mcpx reads the list again",
		"nothing: what has changed must be seen"},
	"100 MB: memory": {"the first gave its caller nothing", "a lower `max_message_bytes`: mcpx holds so much before it refuses"},
}

// ahead returns the best of the gateways that beat the gateway of peerRow in the column c; nil if none does. In the figure called
// load, it compares only gateways over the same transport.
func (r *report) ahead(f *figure, c column, peerRow row, rows []row) (best *cell) {
	one := r.at(f, c.name, peerRow)
	for _, other := range rows {
		rival := r.at(f, c.name, other)
		switch {
		case other.peer == peerRow.peer, other.peer == "direct", f.name == "load" && other.transport != peerRow.transport:
		case rival.beats(one, c.better) && (best == nil || c.better == less && rival.Median < best.Median ||
			c.better == more && rival.Median > best.Median):
			best = rival
		}
	}
	return best
}

// beats reports whether c is better than other by more than the noise: even the worst value of c is better than the best value of
// other. A cell with values beats one without. In a column of words, a fine cell beats one that is not fine.
func (c *cell) beats(other *cell, better string) bool {
	switch {
	case c.State != "" || better != "" && len(c.Values) == 0:
		return false
	case better == "":
		return c.fine() && !other.fine()
	case len(other.Values) == 0:
		return true
	case better == less:
		return c.High < other.Low
	}
	return c.Low > other.High
}

// fine reports whether the text of a cell says that the gateway did well.
func (c *cell) fine() bool {
	return c.State == "" && slices.Contains([]string{"kept", "answers", "survived", "the result"}, c.Text)
}

// behind returns a table of the columns in which mcpx is not the first.
func (r *report) behind(figures []*figure) string {
	out := "| column | the first | mcpx | why | what it would take |\n|---|---|---|---|---|\n"
	for _, f := range figures {
		rows := r.rows(f)
		for _, c := range f.columns {
			for _, at := range rows {
				best := r.ahead(f, c, at, rows)
				if at.peer != "mcpx" || best == nil {
					continue
				}
				why := reasons[c.name]
				if why[0] == "" {
					why = [2]string{"nobody has looked yet", "not known"}
				}
				out += fmt.Sprintf("| %s, %s | %s, %s | %s | %s | %s |\n", c.heading(), at.transport, best.Peer, best.show(),
					r.at(f, c.name, at).show(), why[0], why[1])
			}
		}
	}
	return out
}

// caution returns a warning for the report if the machine had other work, since then small differences between times mean nothing.
func (r *report) caution() string {
	load, err := strconv.ParseFloat(r.Load, 64)
	var processors float64
	if _, after, ok := strings.Cut(r.Machine, ", "); ok {
		_, _ = fmt.Sscan(after, &processors) // stays 0 in an older report that does not have the number
	}
	if err != nil || load <= processors {
		return ""
	}
	return " The machine had other work: of times only large differences say anything."
}

// agreement returns a part of the report that compares it with an earlier report. For each figure, this part says how many cells
// agree within the noise, and names the cells that do not.
func (r *report) agreement(earlier *report, figures []*figure) string {
	out := fmt.Sprintf("\n## Against the run of %s\n\nTwo figures agree if the ranges of their rounds, each widened by half of itself on "+
		"both sides and by at least 5 %%, meet. What never varies must be equal. Times and sizes of one round only are not compared.\n\n"+
		"| | agree | differ | not compared |\n|---|---|---|---|\n", earlier.Date.Format("2006-01-02 15:04 UTC"))
	var lines []string
	for _, f := range figures {
		agree, differ, not, noise := 0, 0, 0, 0.0
		if f.varies {
			noise = minNoise
		}
		for _, c := range r.Cells {
			if c.Figure != f.name {
				continue
			}
			e := earlier.at(f, c.Column, row{c.Peer, c.Transport})
			single := f.varies && min(len(c.Values), len(e.Values)) == 1
			switch {
			case e.Figure == "" || c.State == noTime || e.State == noTime || single:
				not++
			case c.agrees(e, noise):
				agree++
			default:
				differ++
				lines = append(lines, fmt.Sprintf("- %s, %s, %s: %s before, %s now\n", c.Column, c.Peer, c.Transport, e.show(), c.show()))
			}
		}
		if agree+differ+not > 0 {
			out += fmt.Sprintf("| %s | %d | %d | %d |\n", f.title, agree, differ, not)
		}
	}
	return out + "\n" + strings.Join(lines, "")
}
