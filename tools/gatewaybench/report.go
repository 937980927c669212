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

// write writes the report of this run, after measure.
func (b *bench) write() error {
	r := &report{Date: b.began.UTC(), Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU()), Load: b.load,
		Rounds: b.rounds, Quick: b.quick, Seconds: int(time.Since(b.began).Seconds()), Missing: missing, Cells: b.cells}
	for _, p := range b.peers {
		r.Peers = append(r.Peers, peerReport{p.name, p.version, p.registry, p.about})
	}
	return b.writeFiles(r)
}

// rewrite writes the report again from report.json files of earlier runs, whose names are separated by commas. It is used when the
// form of the report has changed, or when a run had no time for some figures. The first file gives the date, the peers and its
// figures; the other files give the figures that the first one lacks.
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

// writeFiles writes the files of a report. If --against names an earlier report, the new report says how the two agree.
func (b *bench) writeFiles(r *report) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	text := r.markdown(b.figures, true)
	if b.against != "" {
		earlier, err := readReport(b.against)
		if err != nil {
			return err
		}
		agreement := r.agreement(earlier, b.figures)
		text += agreement
		fmt.Print(agreement)
	}
	files := map[string][]byte{"report.json": append(data, '\n'), "report.md": []byte(text)}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
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

// markdown writes the tables, with a link to each log if logs is set.
func (r *report) markdown(figures []*figure, logs bool) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# MCP gateways side by side\n\n%s, %s, load %s at the beginning, %d rounds (fewer of starts, memory and faults), "+
		"%d s. A figure is the median of the rounds; ± is half of their range. Bold: the best of the gateways, and what is within "+
		"the noise of it.%s\n\n", r.Date.Format("2006-01-02 15:04 UTC"), r.Machine, r.Load, r.Rounds, r.Seconds, r.caution())
	out.WriteString("| peer | version | from | |\n|---|---|---|---|\n")
	for _, p := range r.Peers {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", p.Name, p.Version, p.From, p.About)
	}
	for _, f := range figures {
		if slices.ContainsFunc(r.Cells, func(c *cell) bool { return c.Figure == f.name }) {
			fmt.Fprintf(&out, "\n## %s\n\n%s\n\n%s", f.title, f.about, r.table(f, logs))
		}
	}
	out.WriteString("\n## Where mcpx is not the first\n\n" + r.behind(figures) + "\n## Missing\n\n")
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

func (c column) heading() string {
	if c.unit == "" || strings.HasSuffix(c.name, c.unit) {
		return c.name
	}
	return c.name + ", " + c.unit
}

// table writes the table of a figure. It has a row for each peer and transport or, if the figure is wide, a row for each column of
// the figure. If the row of a peer would only say "not offered", a line below the table names the peer instead.
func (r *report) table(f *figure, logs bool) string {
	rows, without := r.rows(f), []string{}
	name := func(at row) string { return at.peer + ", " + at.transport }
	head, lines := []string{""}, [][]string{}
	if f.wide {
		for _, at := range rows {
			head = append(head, name(at))
		}
		for _, c := range f.columns {
			line := []string{c.heading()}
			for _, at := range rows {
				line = append(line, r.emphasis(f, c, at, rows))
			}
			lines = append(lines, line)
		}
	} else {
		for _, c := range f.columns {
			head = append(head, c.heading())
		}
		for _, at := range rows {
			line := []string{name(at)}
			for _, c := range f.columns {
				line = append(line, r.emphasis(f, c, at, rows))
			}
			if !slices.ContainsFunc(line[1:], func(text string) bool { return text != notOffered }) {
				without = append(without, name(at))
				continue
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
	if len(without) > 0 {
		fmt.Fprintf(&out, "\nNot offered by %s.\n", strings.Join(without, "; "))
	}
	out.WriteString(r.failures(f, rows))
	if logs {
		var links []string
		for _, at := range rows {
			links = append(links, fmt.Sprintf("[%s](%s)", name(at), r.at(f, f.columns[0].name, at).Log))
		}
		fmt.Fprintf(&out, "\nLogs: %s.\n", strings.Join(links, ", "))
	}
	return out.String()
}

// failures says why cells have failed.
func (r *report) failures(f *figure, rows []row) string {
	var lines []string
	for _, at := range rows {
		for _, c := range f.columns {
			one := r.at(f, c.name, at)
			line := fmt.Sprintf("- %s, %s failed: %s.", at.peer, at.transport, strings.Join(strings.Fields(clip(one.Text, 150)), " "))
			if one.State == failed && one.Text != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	if lines == nil {
		return ""
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// emphasis writes a cell. A number of a gateway is bold if no other gateway is better by more than the noise.
func (r *report) emphasis(f *figure, c column, peerRow row, rows []row) string {
	one := r.at(f, c.name, peerRow)
	text := strings.ReplaceAll(one.show(), "|", "/")
	if c.better == "" || one.State != "" || len(one.Values) == 0 || peerRow.peer == "direct" || r.ahead(f, c, peerRow, rows) != nil {
		return text
	}
	return "**" + text + "**"
}
