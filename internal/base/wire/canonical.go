package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// AppendCanonical appends a form of a JSON value that is the same however the value was written: without white space, members
// sorted by name, strings decoded and encoded again, and numbers as doubles, as a JavaScript client reads them. It is for
// comparing, not for sending. Of duplicate members it keeps the last. A value that is not valid JSON is appended as it is.
func AppendCanonical(out []byte, raw json.RawMessage) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return out
	}
	switch raw[0] {
	case '{':
		members := make(map[string][]byte)
		var names []string
		err := Fields(raw, func(name string, value []byte) bool {
			if _, twice := members[name]; !twice {
				names = append(names, name)
			}
			members[name] = value
			return true
		})
		if err != nil {
			return append(out, raw...)
		}
		slices.Sort(names)
		out = append(out, '{')
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(AppendQuoted(out, name), ':')
			out = AppendCanonical(out, members[name])
		}
		return append(out, '}')
	case '[':
		start := len(out)
		out = append(out, '[')
		n := 0
		err := Elements(raw, func(value []byte) bool {
			if n++; n > 1 {
				out = append(out, ',')
			}
			out = AppendCanonical(out, value)
			return true
		})
		if err != nil {
			return append(out[:start], raw...)
		}
		return append(out, ']')
	case '"':
		if text, ok := Text(raw); ok {
			return AppendQuoted(out, text)
		}
		return append(out, raw...)
	case 't', 'f', 'n':
		return append(out, raw...)
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil { // also too large for JavaScript
		return append(out, raw...)
	}
	return strconv.AppendFloat(out, number+0, 'g', -1, 64)
}
