package describe

import (
	"strconv"
	"strings"

	"mcpx/internal/catalog"
	"mcpx/internal/plain"
	"mcpx/internal/schemats"
)

// The bounds of a purpose and a description in the catalogue, in runes (design 6).
const (
	maxPurpose = 300
	maxDesc    = 80
	// maxNoise is the start of a description that may be noise, in runes.
	maxNoise = 40
)

// source is one server with a cache of its cleaned texts.
type source struct {
	server  *catalog.Server
	purpose *string
	names   []string
	tools   []toolSource
}

type toolSource struct {
	ready  bool
	params []schemats.Param
	desc   string
	more   bool // desc is only the start
}

// block is the lines of the server in detail d, without the last line end.
func (s *source) block(d detail) string {
	var b strings.Builder
	b.WriteString("  Server: ")
	b.WriteString(plain.Line(s.server.Name, 0))
	if p := s.purposeLine(d.purpose); p != "" {
		b.WriteString(" - ")
		b.WriteString(p)
	}
	n := len(s.server.Tools)
	switch {
	case n == 0 && s.server.Known:
		b.WriteString(" (no tools)")
	case n == 0 && s.server.State == catalog.Disabled: // the only state here, as only the config changes it
		b.WriteString(" (disabled)")
	case n == 0:
		b.WriteString(" (tools not known yet)")
	case d.tools == counted && d.hint:
		b.WriteString(" (" + count(n) + ", use query)")
	case d.tools == counted:
		b.WriteString(" (" + count(n) + ")")
	case d.tools == firstFew && d.first < n:
		b.WriteString("\n    " + strings.Join(s.toolNames(d.first), ", ") + ", ... (" + count(n) + ", use query)")
	default:
		s.writeTools(&b, d)
	}
	return b.String()
}

func (s *source) writeTools(b *strings.Builder, d detail) {
	sep, next := "\n    ", ", "
	if d.tools == listed {
		sep, next = "\n    - ", "\n    - "
	}
	for i, name := range s.toolNames(len(s.server.Tools)) {
		b.WriteString(sep)
		b.WriteString(name)
		sep = next
		if d.params == noParams {
			continue
		}
		t := s.tool(i)
		writeParams(b, t.params, d.params)
		if desc := plain.Cut(t.desc, d.desc, t.more); d.desc > 0 && desc != "" {
			b.WriteString(": ")
			b.WriteString(desc)
		}
	}
}

func writeParams(b *strings.Builder, list []schemats.Param, p params) {
	b.WriteByte('(')
	sep, left := "", false
	for _, param := range list {
		if param.Optional && p == requiredParams {
			left = true
			continue
		}
		b.WriteString(sep)
		b.WriteString(plain.Line(param.Name, 0))
		if param.Optional {
			b.WriteByte('?')
		}
		sep = ", "
	}
	if left {
		b.WriteString(sep)
		b.WriteString("...")
	}
	b.WriteByte(')')
}

// skips reports whether a neighbouring detail gives the same block as d, or a better one.
func (s *source) skips(d detail) bool {
	n := len(s.server.Tools)
	switch d.tools {
	case counted:
		return d.hint && n <= 3
	case firstFew:
		return n <= d.first
	}
	return false
}

// least is a lower bound of the tokens of the complete block: each line has an indent, a
// dash, a name and brackets.
func (s *source) least() int { return 4 * len(s.server.Tools) }

func (s *source) purposeLine(max int) string {
	if max == 0 {
		return ""
	}
	if s.purpose == nil {
		p := purpose(s.server, maxPurpose)
		s.purpose = &p
	}
	return plain.Cut(*s.purpose, max, false)
}

// toolNames are the first n names, cleaned.
func (s *source) toolNames(n int) []string {
	for i := len(s.names); i < n; i++ {
		s.names = append(s.names, plain.Line(s.server.Tools[i].Name, 0))
	}
	return s.names[:n]
}

func (s *source) tool(i int) *toolSource {
	if s.tools == nil {
		s.tools = make([]toolSource, len(s.server.Tools))
	}
	t := &s.tools[i]
	if !t.ready {
		raw := &s.server.Tools[i]
		t.params = schemats.Params(raw.InputSchema)
		t.desc, t.more = plain.Clean(raw.Description, maxDesc+maxNoise)
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
