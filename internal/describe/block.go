package describe

import (
	"strconv"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/schemats"
)

// maxPurpose and maxDesc are the maximum length, in runes, of a server's purpose and of a tool's description in the catalogue.
const (
	maxPurpose = 300
	maxDesc    = 80
	// maxNoise is how many runes withoutNoise is expected to remove from a description at most.
	maxNoise = 40
)

// source is one server, with a cache of its cleaned texts for the catalogue.
type source struct {
	server  *catalog.Server
	purpose *string
	names   []string
	tools   []toolSource
	topics  []topic
}

type toolSource struct {
	ready  bool
	params []schemats.Param
	desc   string
	more   bool // desc is only the beginning of the description
	lines  [allParams + 1]string
}

// block returns the block of the server: its lines in the catalogue, in as much detail as d says, without the last line end.
// The text mark, such as "  Server: ", is written before the name of the server. If mark is empty, the lines of tools are
// indented less, "(?)" means that the tools are not known yet, and the shapes counted and topics give the number of tools.
func (s *source) block(d detail, mark string) string {
	var b strings.Builder
	b.WriteString(mark + sanitize.Line(s.server.Name, 0))
	n, bare := len(s.server.Tools), mark == ""
	if bare && (d.tools == counted || d.tools == topics) && n > 0 {
		b.WriteString(" (" + rounded(n) + ")")
	}
	p := s.purposeLine(d.purpose)
	if p != "" {
		b.WriteString(" - " + p)
	}
	switch {
	case n == 0 && s.server.Known:
		b.WriteString(" (no tools)")
	case n == 0 && !bare:
		b.WriteString(" (tools not known yet)")
	case n == 0:
		b.WriteString(" (?)") // the number of tools is not known yet
	case d.tools == counted:
	case d.tools == listed && bare:
		s.writeTools(&b, d, "\n- ")
	case d.tools == listed:
		s.writeTools(&b, d, "\n    - ")
	default:
		if p == "" {
			b.WriteString(": ")
		} else {
			b.WriteString("\n  ")
		}
		if d.tools == topics {
			b.WriteString(s.about(d.topics))
		} else {
			s.writeRow(&b, d)
		}
	}
	return b.String()
}

// writeTools writes one line for each tool. Each line begins with start: a line end, the indent and a dash.
func (s *source) writeTools(b *strings.Builder, d detail, start string) {
	for i := range s.server.Tools {
		b.WriteString(start)
		b.WriteString(s.withParams(i, d.params))
		t := s.tool(i)
		if desc := sanitize.Cut(t.desc, d.desc, t.more); d.desc > 0 && desc != "" {
			b.WriteString(": ")
			b.WriteString(desc)
		}
	}
}

// writeRow writes all tools on one line. Tools with a common prefix are written together, as in `a_{b, c}`, unless d.tools is
// spelled.
func (s *source) writeRow(b *strings.Builder, d detail) {
	list := s.toolNames()
	if d.params != noParams {
		list = make([]string, len(s.server.Tools))
		for i := range list {
			list[i] = s.withParams(i, d.params)
		}
	}
	if d.tools == spelled {
		b.WriteString(strings.Join(list, ", "))
		return
	}
	b.WriteString(byPrefix(list))
}

// withParams returns the name of tool i, followed by the names of the parameters that p selects, and by "..." if the tool has
// other parameters too. p is not noParams.
func (s *source) withParams(i int, p params) string {
	t := s.tool(i)
	if t.lines[p] == "" {
		var b strings.Builder
		b.WriteString(s.toolNames()[i])
		writeParams(&b, t.params, p)
		t.lines[p] = b.String()
	}
	return t.lines[p]
}

func writeParams(b *strings.Builder, list []schemats.Param, p params) {
	b.WriteByte('(')
	writeNames(b, list, p)
	b.WriteByte(')')
}

func writeNames(b *strings.Builder, list []schemats.Param, p params) {
	sep, left := "", false
	for _, param := range list {
		if param.Optional && p == requiredParams && param.Inside == nil {
			left = true
			continue
		}
		b.WriteString(sep)
		b.WriteString(sanitize.Line(param.Name, 0))
		if param.Optional {
			b.WriteByte('?')
		}
		if param.Inside != nil {
			b.WriteString(": {")
			writeNames(b, param.Inside, p)
			b.WriteByte('}')
		}
		sep = ", "
	}
	if left {
		b.WriteString(sep)
		b.WriteString("...")
	}
}

// skips reports whether d must not be used for this server: d shows topics, but the server has so few tools that their names
// are better.
func (s *source) skips(d detail) bool {
	return d.tools == topics && len(s.server.Tools) <= fewTools
}

func (s *source) purposeLine(max int) string {
	if max == 0 {
		return ""
	}
	if s.purpose == nil {
		p := purpose(s.server, maxPurpose)
		s.purpose = &p
	}
	return sanitize.Cut(*s.purpose, max, false)
}

// toolNames returns the cleaned names of the tools.
func (s *source) toolNames() []string {
	for i := len(s.names); i < len(s.server.Tools); i++ {
		s.names = append(s.names, sanitize.Line(s.server.Tools[i].Name, 0))
	}
	return s.names
}

func (s *source) tool(i int) *toolSource {
	if s.tools == nil {
		s.tools = make([]toolSource, len(s.server.Tools))
	}
	t := &s.tools[i]
	if !t.ready {
		raw := &s.server.Tools[i]
		t.params = schemats.Params(raw.InputSchema)
		t.desc, t.more = sanitize.Clean(withoutHeading(raw.Description, raw.Name), maxDesc+maxNoise)
		if t.desc = withoutNoise(t.desc); !t.more && repeats(t.desc, raw.Name, toolWords) {
			t.desc = ""
		}
		t.ready = true
	}
	return t
}

func count(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return strconv.Itoa(n) + " tools"
}

// rounded returns n as text. A number above fewExact is rounded down to one digit, as in 40+ for 47, so that one more tool
// mostly does not change the text.
func rounded(n int) string {
	if n <= fewExact {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(floor(n)) + "+"
}

// fewExact is the largest number of tools that the catalogue does not round. topicsOf uses it too.
const fewExact = 20

// floor returns n with all digits but the first set to zero.
func floor(n int) int {
	unit := 1
	for n/unit >= 10 {
		unit *= 10
	}
	return n / unit * unit
}
