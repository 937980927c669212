package compress

import (
	"math/big"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
)

// Equal reports whether two JSON texts have the same value. Numbers are compared exactly: 1.10 equals 1.1, but 9007199254740993
// does not equal 9007199254740992. A lone surrogate (half of a UTF-16 pair) equals only itself. The order of members does not
// matter, except among members with the same key. A text that is not JSON equals no text.
func Equal(a, b []byte) bool {
	x, ok := wire.Compact(string(a))
	if !ok {
		return false
	}
	y, ok := wire.Compact(string(b))
	if !ok {
		return false
	}
	if x == y {
		return true
	}
	d, ok := wire.Read(x)
	if !ok {
		return false
	}
	e, ok := wire.Read(y)
	return ok && equalNodes(d, 0, e, 0)
}

func equalNodes(d *wire.Document, i int32, e *wire.Document, j int32) bool {
	m, n := &d.Nodes[i], &e.Nodes[j]
	if m.Kind != n.Kind || m.Count != n.Count {
		return false
	}
	switch m.Kind {
	case wire.String:
		return d.Str(m.Text) == e.Str(n.Text)
	case wire.Number:
		a, b := d.Str(m.Text), e.Str(n.Text)
		return a == b || decimalOf(a) == decimalOf(b)
	case wire.Object:
		return equalMembers(d, i, e, j)
	}
	for c, k := i+1, j+1; c < m.Next; c, k = d.Nodes[c].Next, e.Nodes[k].Next {
		if !equalNodes(d, c, e, k) {
			return false
		}
	}
	return true
}

// equalMembers compares two objects with the same number of members.
func equalMembers(d *wire.Document, i int32, e *wire.Document, j int32) bool {
	var byKey map[string][]int32 // set when the first member at a different position is found
	for c, k := i+1, j+1; c < d.Nodes[i].Next; c = d.Nodes[c].Next {
		key := d.Str(d.Nodes[c].Key)
		if byKey == nil && e.Str(e.Nodes[k].Key) == key {
			if !equalNodes(d, c, e, k) {
				return false
			}
			k = e.Nodes[k].Next
			continue
		}
		if byKey == nil {
			byKey = map[string][]int32{}
			for r := k; r < e.Nodes[j].Next; r = e.Nodes[r].Next {
				k := e.Str(e.Nodes[r].Key)
				byKey[k] = append(byKey[k], r)
			}
		}
		left := byKey[key]
		if len(left) == 0 || !equalNodes(d, c, e, left[0]) {
			return false
		}
		byKey[key] = left[1:]
	}
	return true
}

// decimal is an exact number in a form that is unique: 0.digits times ten to the power of exponent. The exponent is a string,
// since 1e999999999 must not be expanded to a billion digits.
type decimal struct {
	negative bool
	digits   string // does not begin or end with 0; empty if the number is 0
	exponent string
}

// decimalOf reads a JSON number.
func decimalOf(s string) decimal {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	point := len(whole)
	d.digits = strings.TrimLeft(digits, "0")
	point -= len(digits) - len(d.digits)
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	if n, err := strconv.ParseInt(exponent, 10, 32); err == nil {
		d.exponent = strconv.FormatInt(n+int64(point), 10)
		return d
	}
	n, _ := new(big.Int).SetString(strings.TrimPrefix(exponent, "+"), 10)
	d.exponent = n.Add(n, big.NewInt(int64(point))).String()
	return d
}
