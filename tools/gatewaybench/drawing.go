package main

import (
	"fmt"
	"slices"

	"mcpx/internal/base/chart"
)

// drawing draws a chart for each figure whose field chart names a column, with a bar for each peer.
func (r *report) drawing(figures []*figure) []byte {
	c := chart.New()
	for _, f := range figures {
		i := slices.IndexFunc(f.columns, func(one column) bool { return one.name == f.chart })
		if f.chart == "" || i < 0 || len(r.rows(f)) == 0 {
			continue
		}
		r.bars(c, f, f.columns[i])
	}
	return c.SVG("MCP gateways side by side", "One figure of each table of the report, a bar for each gateway; the tables have "+
		"all of them.",
		fmt.Sprintf("%s, %s, medians of %d rounds", r.Date.Format("2006-01-02"), r.Machine, r.Rounds))
}

func (r *report) bars(c *chart.Chart, f *figure, column column) {
	better := "shorter is better"
	if column.better == more {
		better = "longer is better"
	}
	c.Heading(fmt.Sprintf("%s: %s (%s)", f.title, column.name, better))
	rows := r.rows(f)
	largest := 0.0
	for _, at := range rows {
		largest = max(largest, r.at(f, column.name, at).Median)
	}
	const whole = 10000
	for _, at := range rows {
		one := r.at(f, column.name, at)
		c.Row(at.peer, at.transport, 26)
		if one.State != "" || len(one.Values) == 0 || largest == 0 {
			c.Note(one.show())
			c.Down(30)
			continue
		}
		colour := chart.Blue
		switch at.peer {
		case "direct":
			colour = chart.Green
		case "mcpx":
			colour = chart.Orange
		}
		width := c.Bar(colour, int(max(0, one.Median)/largest*whole), whole, chart.Length, chart.Thick)
		c.Label(width, 0, one.show()+" "+column.unit)
		c.Down(30)
	}
}
