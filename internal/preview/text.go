package preview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/compress"
)

// entry is a line that says what follows it in a text: a heading, a file of a diff, or a directory. Its offset is the
// number of lines before it.
type entry struct {
	offset, level int
	text          string
}

// Overview says what is in the lines of a text, in at most about budget tokens: its headings, the files of a diff, the
// directories of a listing or the outermost lines of a tree, and which lines repeat and how often. Where a line of the
// overview quotes a line of the text, it begins with the number of lines before the quoted line. The overview is empty if
// there is nothing to say.
func Overview(lines []string, budget int) string {
	s := scan{diff: diffOf(lines)}
	for i, line := range lines {
		s.line(i, strings.TrimRight(line, "\r\n"))
	}
	title, entries := s.outline()
	if s.diff || s.listing() {
		return listed(title, entries, budget)
	}
	again := repeatsIn(lines).repeated(budget / 3)
	return listed(title, entries, budget-compress.Weigh(again)) + again
}

// scan collects what [Overview] needs in one pass over the lines.
type scan struct {
	diff     bool
	fenced   bool // in a block of code of a Markdown document
	before   string
	filled   int // lines that are not blank
	files    []*file
	headings []entry
	folders  []entry // lines such as "./src:"
	paths    paths
	indented []entry // lines of the text, with their indentation as level
	deep     int     // lines that are indented
}

// file is a file of a diff, with the number of lines that the diff adds and removes.
type file struct {
	entry
	added, removed int
}

// maxEntries is the maximum number of entries that are collected of each kind, such as headings.
const maxEntries = 4096

func diffOf(lines []string) bool {
	for i, line := range lines[:min(len(lines), 200)] {
		if strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ") {
			return true
		}
	}
	return false
}

func (s *scan) line(i int, line string) {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" {
		s.before = ""
		return
	}
	s.filled++
	if s.diff {
		s.diffLine(i, line)
		s.before = line
		return
	}
	if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
		s.fenced = !s.fenced
	} else if !s.fenced {
		s.heading(i, line, trimmed)
	}
	if strings.HasSuffix(line, ":") && !strings.Contains(line, " ") && (s.before == "" || line[0] == '/' || line[0] == '.') &&
		(strings.Contains(line, "/") || line == ".:") {
		s.folders = add(s.folders, entry{i, 0, line})
	}
	s.paths.line(i, trimmed)
	level := indentation(line)
	if level > 0 {
		s.deep++
	}
	s.indented = add(s.indented, entry{i, level, line})
	s.before = line
}

func add(entries []entry, e entry) []entry {
	if len(entries) < maxEntries {
		entries = append(entries, e)
	}
	return entries
}

// diffLine reads a line of a unified diff: it adds a file, or counts the line as one that the diff adds to the file or removes from
// it.
func (s *scan) diffLine(i int, line string) {
	name, git := strings.CutPrefix(line, "diff --git ")
	if at := strings.LastIndex(name, " b/"); git && at >= 0 {
		name = name[at+3:]
	}
	if next, ok := strings.CutPrefix(line, "+++ "); ok && strings.HasPrefix(s.before, "--- ") {
		name, _, _ = strings.Cut(strings.TrimPrefix(next, "b/"), "\t")
		if n := len(s.files); n > 0 {
			last := s.files[n-1]
			if last.removed > 0 { // "--- " was counted as a line of the file before
				last.removed--
			}
			if last.added+last.removed == 0 { // the file of the "diff --git" line
				return
			}
		}
		git, i = true, i-1
	}
	switch {
	case git && len(s.files) < maxEntries:
		s.files = append(s.files, &file{entry: entry{i, 0, name}})
	case git || len(s.files) == 0:
	case line[0] == '+':
		s.files[len(s.files)-1].added++
	case line[0] == '-':
		s.files[len(s.files)-1].removed++
	}
}

// heading adds a line that is a heading in Markdown or HTML.
func (s *scan) heading(i int, line, trimmed string) {
	level := 0
	for level < len(line) && line[level] == '#' {
		level++
	}
	switch {
	case 0 < level && level <= 6 && level < len(line) && line[level] == ' ':
		s.headings = add(s.headings, entry{i, level, line})
	case len(trimmed) >= 3 && s.before != "" && s.before[0] != ' ' && len(trimmed) >= len(s.before)-2 && len(trimmed) <= len(s.before)+2 &&
		(strings.Trim(trimmed, "=") == "" || strings.Trim(trimmed, "-") == ""):
		level = 1
		if trimmed[0] == '-' {
			level = 2
		}
		s.headings = add(s.headings, entry{i - 1, level, s.before})
	default:
		at := strings.Index(line, "<h")
		if at < 0 || at+3 >= len(line) || line[at+2] < '1' || line[at+2] > '6' || line[at+3] != '>' && line[at+3] != ' ' {
			return
		}
		if text := withoutTags(line[at:]); text != "" {
			s.headings = add(s.headings, entry{i, int(line[at+2] - '0'), text})
		}
	}
}

// withoutTags returns the text of the element at the beginning of some HTML.
func withoutTags(html string) string {
	if end := strings.Index(html, "</h"); end >= 0 {
		html = html[:end]
	}
	var out strings.Builder
	for len(html) > 0 && out.Len() < 2*maxLine {
		text, rest, _ := strings.Cut(html, "<")
		out.WriteString(text)
		_, html, _ = strings.Cut(rest, ">")
	}
	return strings.TrimSpace(out.String())
}

// indentation returns how deeply a line is indented, with spaces or as in the output of tree.
func indentation(line string) int {
	n := 0
	for _, r := range line {
		switch r {
		case ' ', '\u00a0', '│', '├', '└', '─', '|', '`':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}

// listing reports whether a text is a list of paths: most of its lines are paths, and it is not short.
func (s *scan) listing() bool { return 2*s.paths.count > s.filled && s.filled > minLines }

// outline chooses the kind of entries that says most about a text. title is a label for these entries. If there are no entries of
// any kind, both results are empty.
func (s *scan) outline() (title string, entries []entry) {
	switch {
	case s.diff:
		for _, f := range s.files {
			f.text = clip(f.text) + fmt.Sprintf(" +%d -%d", f.added, f.removed)
			entries = append(entries, f.entry)
		}
		return "files of the diff", entries
	case len(s.headings) > 1:
		return "headings", s.headings
	case len(s.folders) > 1:
		return "directories", s.folders
	case s.listing():
		return "directories and how many lines each has", s.paths.folders()
	case 2*s.deep > s.filled && s.filled > minLines:
		return "outermost lines", outermost(s.indented)
	}
	return "", nil
}

// outermost and folders show more than maxOutermost lines only if they would otherwise show fewer than minOutermost.
const maxOutermost, minOutermost = 60, 3

// outermost returns the lines with the least indentation. It adds the lines of the next level, and so on, as long as there are at
// most maxOutermost lines.
func outermost(lines []entry) (some []entry) {
	for level, last := 0, -1; ; last = level {
		level = 1 << 20
		for _, e := range lines {
			if e.level > last {
				level = min(level, e.level)
			}
		}
		var now []entry
		for _, e := range lines {
			if e.level <= level {
				now = append(now, e)
			}
		}
		if len(now) == len(some) || len(now) > maxOutermost && len(some) >= minOutermost {
			return some
		}
		some = now
	}
}

// maxLine is how many bytes of a line of the text an overview shows.
const maxLine = 120

// clip shortens a line to maxLine bytes. It also removes invisible characters, and each line break within the line becomes a space,
// so that the line cannot look like several lines.
func clip(line string) string {
	more := ""
	if len(line) > maxLine {
		end := maxLine
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		line, more = line[:end], "…"
	}
	return strings.ReplaceAll(sanitize.Lines(line), "\n", " ") + more
}

// listed writes entries. If they need more than budget tokens, the deeper ones are left out, and then the last ones.
func listed(title string, entries []entry, budget int) string {
	if len(entries) == 0 {
		return ""
	}
	deepest := 0
	for _, e := range entries {
		deepest = max(deepest, e.level)
	}
	for ; deepest >= 0; deepest-- {
		var out strings.Builder
		shown, all, size := 0, 0, 0
		for _, e := range entries {
			if e.level > deepest {
				continue
			}
			all++
			line := fmt.Sprintf("%d: %s\n", e.offset, clip(e.text))
			if size += compress.Weigh(line); size <= budget {
				out.WriteString(line)
				shown++
			}
		}
		if all == 0 {
			return ""
		}
		if shown < all && deeper(entries, deepest) {
			continue
		}
		head := fmt.Sprintf("[%s, after the offset of each:]\n", title)
		if shown < len(entries) {
			head = fmt.Sprintf("[%s, %d of %d, after the offset of each:]\n", title, shown, len(entries))
		}
		return head + out.String()
	}
	return ""
}

// deeper reports whether some entries have a smaller level, so that the entries of this level can be left out.
func deeper(entries []entry, level int) bool {
	for _, e := range entries {
		if e.level < level {
			return true
		}
	}
	return false
}
