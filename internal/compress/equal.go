package compress

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Equal says whether two JSON texts have the same value: numbers as exact decimals (1.10 is 1.1, and
// 9007199254740993 is not 9007199254740992), strings decoded (a lone surrogate equals itself only),
// the members of objects in any order, members of one key among themselves in their order. What is
// not JSON equals nothing.
func Equal(a, b []byte) bool {
	x, ok := minify(string(a))
	if !ok {
		return false
	}
	y, ok := minify(string(b))
	if !ok {
		return false
	}
	if x == y {
		return true
	}
	if len(x) > math.MaxInt32 || len(y) > math.MaxInt32 {
		return false
	}
	return equalNodes(readAll(x), 0, readAll(y), 0)
}

func equalNodes(d *document, i int32, e *document, j int32) bool {
	m, n := &d.nodes[i], &e.nodes[j]
	if m.kind != n.kind || m.count != n.count {
		return false
	}
	switch m.kind {
	case kindString:
		return d.str(m.text) == e.str(n.text)
	case kindNumber:
		a, b := d.str(m.text), e.str(n.text)
		return a == b || decimalOf(a) == decimalOf(b)
	case kindObject:
		return equalMembers(d, i, e, j)
	}
	for c, k := i+1, j+1; c < m.next; c, k = d.nodes[c].next, e.nodes[k].next {
		if !equalNodes(d, c, e, k) {
			return false
		}
	}
	return true
}

// equalMembers compares two objects with the same number of members.
func equalMembers(d *document, i int32, e *document, j int32) bool {
	var byKey map[string][]int32 // made at the first member that is not where it is in the other
	for c, k := i+1, j+1; c < d.nodes[i].next; c = d.nodes[c].next {
		key := d.str(d.nodes[c].key)
		if byKey == nil && e.str(e.nodes[k].key) == key {
			if !equalNodes(d, c, e, k) {
				return false
			}
			k = e.nodes[k].next
			continue
		}
		if byKey == nil {
			byKey = map[string][]int32{}
			for r := k; r < e.nodes[j].next; r = e.nodes[r].next {
				k := e.str(e.nodes[r].key)
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

// decimal is an exact number, 0.digits times ten to the exponent, in the one form that each number
// has. The exponent stays text: 1e999999999 must not become a billion digits.
type decimal struct {
	negative bool
	digits   string // no zero at either end; empty for zero
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
