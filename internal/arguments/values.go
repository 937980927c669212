package arguments

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// kinds is a set of types of values.
type kinds uint8

const (
	kindString kinds = 1 << iota
	kindObject
	kindArray
	kindNull
	kindBoolean
	kindInteger
	kindFraction // a number that is not an integer

	anyKind = 1<<iota - 1
)

var kindNames = map[string]kinds{
	"string": kindString, "object": kindObject, "array": kindArray,
	"null": kindNull, "boolean": kindBoolean, "integer": kindInteger, "number": kindInteger | kindFraction,
}

// kindsOf returns the types that the keyword type names; declared is its value. If the keyword is missing, all types are
// allowed.
func kindsOf(declared any) kinds {
	switch declared := declared.(type) {
	case string:
		return kindNames[declared]
	case []any:
		var all kinds
		for _, one := range declared {
			if name, ok := one.(string); ok {
				all |= kindNames[name]
			}
		}
		return all
	}
	return anyKind
}

// typeOf returns the JSON type of a decoded value.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// have reports whether a decoded value has one of the types. A number such as 1.0 is an integer.
func (k kinds) have(value any) bool {
	if number, ok := value.(json.Number); ok && k&kindFraction == 0 {
		return k&kindInteger != 0 && isInteger(number)
	}
	return k&kindNames[typeOf(value)] != 0
}

// names returns the names of the types.
func (k kinds) names() (all []string) {
	for _, name := range []string{"null", "boolean", "number", "integer", "string", "array", "object"} {
		if one := kindNames[name]; k&one == one {
			all, k = append(all, name), k&^one
		}
	}
	return all
}

func isInteger(number json.Number) bool {
	if strings.ContainsAny(string(number), "eE") {
		return rational(number).IsInt()
	}
	_, fraction, _ := strings.Cut(string(number), ".")
	return strings.Trim(fraction, "0") == ""
}

// rational returns the exact value of a number; measure has bounded its size.
func rational(number json.Number) *big.Rat {
	n, ok := new(big.Rat).SetString(string(number))
	if !ok {
		return new(big.Rat) // cannot happen: number is a JSON number, and SetString can read each of them
	}
	return n
}

// key returns a text that two decoded values have in common if they are equal as JSON Schema means it: 1 and 1.0 are equal, the
// order of members does not matter.
func key(value any) string {
	var out strings.Builder
	writeKey(&out, value)
	return out.String()
}

func writeKey(out *strings.Builder, value any) {
	switch value := value.(type) {
	case string:
		out.WriteString(strconv.Quote(value))
	case json.Number:
		writeNumberKey(out, string(value))
	case []any:
		out.WriteByte('[')
		for _, item := range value {
			writeKey(out, item)
			out.WriteByte(',')
		}
		out.WriteByte(']')
	case map[string]any:
		out.WriteByte('{')
		for _, name := range slices.Sorted(maps.Keys(value)) {
			writeKey(out, name)
			out.WriteByte(':')
			writeKey(out, value[name])
			out.WriteByte(',')
		}
		out.WriteByte('}')
	case bool:
		out.WriteString(strconv.FormatBool(value))
	default:
		out.WriteString("null")
	}
}

// writeNumberKey writes the digits of a number without zeros at the ends, and their exponent: 100, 1e2 and 100.0 are 1e2.
func writeNumberKey(out *strings.Builder, number string) {
	mantissa, power := number, ""
	if at := strings.IndexAny(number, "eE"); at >= 0 {
		mantissa, power = number[:at], number[at+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole, negative := strings.CutPrefix(whole, "-")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		out.WriteByte('0')
		return
	}
	if negative {
		out.WriteByte('-')
	}
	exponent, _ := strconv.Atoi(power) // 0 if there is none; measure has bounded it
	out.WriteString(short + "e" + strconv.Itoa(exponent-len(fraction)+len(digits)-len(short)))
}
