package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// figure is a table of the report.
type figure struct {
	name, title string
	about       string // what is measured, and by which rule, for the readers of the report
	columns     []column
	run         func(*bench, *figure)
	wide        bool // many columns: the table has a column for each peer
	varies      bool // values differ from run to run, so report.agreement leaves out cells with one value: their noise is unknown
}

type column struct{ name, unit, better string }

const (
	less = "less"
	more = "more"
)

func allFigures() []*figure {
	return []*figure{tokensFigure(), resultsFigure(), searchFigure(), loadFigure(), startFigure(), memoryFigure(), lossFigure(),
		faultsFigure()}
}

func figureNames() string {
	var names []string
	for _, f := range allFigures() {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// cell returns the cell of a column, and adds it to the report if it is new.
func (b *bench) cell(f *figure, name string, p *peer, transport string) *cell {
	for _, c := range b.cells {
		if c.Figure == f.name && c.Column == name && c.Peer == p.name && c.Transport == transport {
			return c
		}
	}
	c := &cell{Figure: f.name, Column: name, Peer: p.name, Transport: transport, Log: logName(f.name, p, transport)}
	for _, column := range f.columns {
		if column.name == name {
			c.Unit, c.Better = column.unit, column.better
		}
	}
	b.cells = append(b.cells, c)
	return c
}

func (b *bench) add(f *figure, name string, p *peer, transport string, value float64) {
	c := b.cell(f, name, p, transport)
	c.Values = append(c.Values, value)
}

// word gives a cell a word instead of a number. If the rounds give different words, the cell has all of them.
func (b *bench) word(f *figure, name string, p *peer, transport, text string) {
	c := b.cell(f, name, p, transport)
	if words := strings.Split(c.Text, " or "); c.Text == "" {
		c.Text = text
	} else if !slices.Contains(words, text) {
		c.Text = strings.Join(slices.Sorted(slices.Values(append(words, text))), " or ")
	}
}

// fail marks the given columns as failed, except those that have a value or a word already. Without columns, it marks all
// columns of f.
func (b *bench) fail(f *figure, p *peer, transport string, err error, columns ...string) {
	b.say("%s: %s: %s", f.name, p.name, clip(err.Error(), 160))
	b.mark(f, p, transport, cell{State: failed, Text: err.Error()}, columns...)
}

// mark marks columns with the cell in the parameter why: they get its state and its text. It skips columns that have a value or a
// word already. Without columns, it marks all columns of f.
func (b *bench) mark(f *figure, p *peer, transport string, why cell, columns ...string) {
	if columns == nil {
		for _, c := range f.columns {
			columns = append(columns, c.name)
		}
	}
	for _, name := range columns {
		if c := b.cell(f, name, p, transport); len(c.Values) == 0 && c.Text == "" {
			c.State, c.Text = why.State, clip(why.Text, 300)
		}
	}
}

// each calls measure for each peer, over the first of the peer's transports. If measure fails, the columns without a value are
// marked as failed.
func (b *bench) each(f *figure, measure func(ctx context.Context, p *peer, transport string, l *logFile) error) {
	for _, p := range b.peers {
		transport := p.transports[0]
		if b.ctx.Err() != nil {
			b.mark(f, p, transport, cell{State: noTime})
			continue
		}
		l := b.logFor(f.name, p, transport)
		ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
		err := b.usable(p)
		if err == nil {
			err = measure(ctx, p, transport, l)
		}
		cancel()
		if err != nil {
			l.note("failed: %v", err)
			b.fail(f, p, transport, err)
		}
		_ = l.file.Close()
	}
}

func (b *bench) usable(p *peer) error {
	if _, ok := b.installed[p.name]; !ok {
		return fmt.Errorf("%s could not be installed", p.name)
	}
	return nil
}

func (p *peer) has(transport string) bool { return slices.Contains(p.transports, transport) }
