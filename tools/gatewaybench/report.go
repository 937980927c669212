package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is the content of report.json.
type report struct {
	Date    time.Time    `json:"date"`
	Machine string       `json:"machine"`
	Load    string       `json:"load"` // load average over one minute at the beginning
	Rounds  int          `json:"rounds"`
	Quick   bool         `json:"quick"`
	Seconds int          `json:"seconds"`
	Peers   []peerReport `json:"peers"`
	Missing [][2]string  `json:"missing"`
	Cells   []*cell      `json:"cells"`
}

type peerReport struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	From    string `json:"from"`
	About   string `json:"about"`
}

// write writes the report. If against is the file of an earlier report, it prints which figures agree.
func (b *bench) write(against string) error {
	r := &report{Date: b.began.UTC(), Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU()), Load: b.load,
		Rounds: b.rounds, Quick: b.quick, Seconds: int(time.Since(b.began).Seconds()), Missing: missing, Cells: b.cells}
	for _, p := range b.peers {
		r.Peers = append(r.Peers, peerReport{p.name, p.version, p.registry, p.about})
	}
	if err := b.writeFiles(r); err != nil || against == "" {
		return err
	}
	differing, compared, err := r.differences(against)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d figures agree with %s\n", compared-len(differing), compared, against)
	for _, line := range differing {
		fmt.Println("  " + line)
	}
	return nil
}

// rewrite writes the report again from report.json files of earlier runs, whose names are separated by commas. It is for a changed form
// of the report, or for runs that had no time for all figures. The first file gives the date, the peers and its figures; the others give
// the figures that it lacks.
func (b *bench) rewrite(files string) error {
	var joined *report
	for file := range strings.SplitSeq(files, ",") {
		r, err := readReport(file)
		if err != nil {
			return err
		}
		r.Cells = slices.DeleteFunc(r.Cells, func(c *cell) bool { return c.State == noTime })
		if joined == nil {
			joined = r
			continue
		}
		joined.Seconds += r.Seconds
		joined.Cells = append(joined.Cells, slices.DeleteFunc(r.Cells, func(c *cell) bool {
			return joined.at(&figure{name: c.Figure}, c.Column, row{c.Peer, c.Transport}).Figure != ""
		})...)
	}
	return b.writeFiles(joined)
}

func readReport(file string) (*report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

func (b *bench) writeFiles(r *report) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	files := map[string][]byte{"report.json": append(data, '\n'), "report.md": []byte(r.markdown(b.figures, true)),
		"report.svg": r.drawing(b.figures)}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(b.out, name), content, 0o644); err != nil {
			return err
		}
	}
	b.say("%s", filepath.Join(b.out, "report.md"))
	if b.docs == "" {
		return nil
	}
	return r.putInto(b.docs, b.figures)
}

// The tables in a document are between these two lines.
const (
	tablesBegin = "<!-- gateways -->\n"
	tablesEnd   = "<!-- /gateways -->\n"
)

// putInto replaces the tables in a document.
func (r *report) putInto(file string, figures []*figure) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(data), tablesBegin)
	_, after, ends := strings.Cut(rest, tablesEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the tables: the lines %q and %q", file, tablesBegin, tablesEnd)
	}
	_, tables, _ := strings.Cut(r.markdown(figures, false), "\n\n") // leave out the title
	tables = strings.ReplaceAll(tables, "\n## ", "\n### ")
	return os.WriteFile(file, []byte(before+tablesBegin+tables+tablesEnd+after), 0o644)
}

// differences compares the figures with the figures of an earlier report. lines describe the figures that do not agree, and compared is
// how many were compared.
func (r *report) differences(file string) (lines []string, compared int, err error) {
	earlier, err := readReport(file)
	if err != nil {
		return nil, 0, err
	}
	for _, c := range r.Cells {
		for _, e := range earlier.Cells {
			if c.Figure != e.Figure || c.Column != e.Column || c.Peer != e.Peer || c.Transport != e.Transport {
				continue
			}
			compared++
			if !c.agrees(e) {
				lines = append(lines, fmt.Sprintf("%s, %s, %s (%s): %s before, %s now", c.Figure, c.Column, c.Peer, c.Transport, e.show(),
					c.show()))
			}
		}
	}
	return lines, compared, nil
}

// markdown returns the report in Markdown, with a link to each log if logs is set.
func (r *report) markdown(figures []*figure, logs bool) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# MCP gateways side by side\n\n%s, %s, load %s at the beginning, %d rounds, %d s. A figure is the median "+
		"of the rounds; ± is half of "+
		"their range. Bold: the best of the gateways, and what is within the noise of it.\n\n",
		r.Date.Format("2006-01-02 15:04 UTC"), r.Machine, r.Load, r.Rounds, r.Seconds)
	out.WriteString("| peer | version | from | |\n|---|---|---|---|\n")
	for _, p := range r.Peers {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", p.Name, p.Version, p.From, p.About)
	}
	for _, f := range figures {
		if slices.ContainsFunc(r.Cells, func(c *cell) bool { return c.Figure == f.name }) {
			fmt.Fprintf(&out, "\n## %s\n\n%s\n\n%s", f.title, f.about, r.table(f, logs))
		}
	}
	out.WriteString("\n## Missing\n\n")
	for _, m := range r.Missing {
		fmt.Fprintf(&out, "- %s: %s.\n", m[0], m[1])
	}
	return out.String()
}

// row is a row of a table: a peer over one transport.
type row struct{ peer, transport string }

func (r *report) rows(f *figure) (rows []row) {
	for _, c := range r.Cells {
		if one := (row{c.Peer, c.Transport}); c.Figure == f.name && !slices.Contains(rows, one) {
			rows = append(rows, one)
		}
	}
	place := func(at row) int {
		return slices.IndexFunc(r.Peers, func(p peerReport) bool { return p.Name == at.peer })
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if f.name == "load" && a.transport != b.transport {
			return strings.Compare(b.transport, a.transport) // rows over stdio first
		}
		return place(a) - place(b)
	})
	return rows
}

func (r *report) at(f *figure, column string, at row) *cell {
	for _, c := range r.Cells {
		if c.Figure == f.name && c.Column == column && c.Peer == at.peer && c.Transport == at.transport {
			return c
		}
	}
	return &cell{State: "-"}
}

// table returns the table of a figure. It has a row for each peer or, if the figure is wide, a column for each peer.
func (r *report) table(f *figure, logs bool) string {
	rows := r.rows(f)
	name := func(at row) string { return at.peer + ", " + at.transport }
	head, lines := []string{""}, [][]string{}
	heading := func(c column) string {
		if c.unit == "" || strings.HasSuffix(c.name, c.unit) {
			return c.name
		}
		return c.name + ", " + c.unit
	}
	if f.wide {
		for _, at := range rows {
			head = append(head, name(at))
		}
		for _, c := range f.columns {
			line := []string{heading(c)}
			for _, at := range rows {
				line = append(line, r.emphasis(f, c, at, rows))
			}
			lines = append(lines, line)
		}
	} else {
		for _, c := range f.columns {
			head = append(head, heading(c))
		}
		for _, at := range rows {
			line := []string{name(at)}
			for _, c := range f.columns {
				line = append(line, r.emphasis(f, c, at, rows))
			}
			lines = append(lines, line)
		}
	}
	var out strings.Builder
	write := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	write(head)
	out.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, line := range lines {
		write(line)
	}
	if logs {
		var links []string
		for _, at := range rows {
			links = append(links, fmt.Sprintf("[%s](%s)", name(at), r.at(f, f.columns[0].name, at).Log))
		}
		fmt.Fprintf(&out, "\nLogs: %s.\n", strings.Join(links, ", "))
	}
	return out.String()
}

// emphasis returns the text of a cell. It is bold if no other gateway is better by more than the noise of both. Load figures are compared
// only with gateways over the same transport.
func (r *report) emphasis(f *figure, c column, at row, rows []row) string {
	one := r.at(f, c.name, at)
	text := strings.ReplaceAll(one.show(), "|", "/")
	if c.better == "" || one.State != "" || len(one.Values) == 0 || at.peer == "direct" {
		return text
	}
	for _, other := range rows {
		rival := r.at(f, c.name, other)
		if other == at || other.peer == "direct" || f.name == "load" && other.transport != at.transport || rival.State != "" ||
			len(rival.Values) == 0 {
			continue
		}
		if c.better == less && rival.High < one.Low || c.better == more && rival.Low > one.High {
			return text
		}
	}
	return "**" + text + "**"
}
