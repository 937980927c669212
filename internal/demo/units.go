package demo

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

// unit is a unit of measure: base = (value + offset) * factor, both exact decimals.
type unit struct {
	Symbol string `json:"symbol"`
	Name   string `json:"name"`
	factor string
	offset string
}

// quantities are the kinds of units, each with its base unit first.
var quantities = []struct {
	name  string
	units []unit
}{
	{"length", []unit{{"m", "metre", "1", "0"}, {"km", "kilometre", "1000", "0"}, {"cm", "centimetre", "0.01", "0"}, {"mm", "millimetre", "0.001", "0"},
		{"in", "inch", "0.0254", "0"}, {"ft", "foot", "0.3048", "0"}, {"yd", "yard", "0.9144", "0"}, {"mi", "mile", "1609.344", "0"}, {"nmi", "nautical mile", "1852", "0"}}},
	{"mass", []unit{{"kg", "kilogram", "1", "0"}, {"g", "gram", "0.001", "0"}, {"mg", "milligram", "0.000001", "0"}, {"t", "tonne", "1000", "0"},
		{"oz", "ounce", "0.028349523125", "0"}, {"lb", "pound", "0.45359237", "0"}, {"st", "stone", "6.35029318", "0"}}},
	{"temperature", []unit{{"K", "kelvin", "1", "0"}, {"C", "degree Celsius", "1", "273.15"}, {"F", "degree Fahrenheit", "5/9", "459.67"}}},
	{"volume", []unit{{"l", "litre", "1", "0"}, {"ml", "millilitre", "0.001", "0"}, {"m3", "cubic metre", "1000", "0"},
		{"gal", "US gallon", "3.785411784", "0"}, {"pt", "US pint", "0.473176473", "0"}, {"cup", "US cup", "0.2365882365", "0"}, {"floz", "US fluid ounce", "0.0295735295625", "0"}}},
	{"speed", []unit{{"m/s", "metre per second", "1", "0"}, {"km/h", "kilometre per hour", "5/18", "0"}, {"mph", "mile per hour", "0.44704", "0"}, {"kn", "knot", "463/900", "0"}}},
	{"area", []unit{{"m2", "square metre", "1", "0"}, {"ha", "hectare", "10000", "0"}, {"km2", "square kilometre", "1000000", "0"}, {"acre", "acre", "4046.8564224", "0"}, {"sqft", "square foot", "0.09290304", "0"}}},
	{"data", []unit{{"B", "byte", "1", "0"}, {"kB", "kilobyte", "1000", "0"}, {"MB", "megabyte", "1000000", "0"}, {"GB", "gigabyte", "1000000000", "0"},
		{"KiB", "kibibyte", "1024", "0"}, {"MiB", "mebibyte", "1048576", "0"}, {"GiB", "gibibyte", "1073741824", "0"}}},
}

const quantityEnum = `"enum": ["length", "mass", "temperature", "volume", "speed", "area", "data"]`

func unitTools() []server.ServerTool {
	return []server.ServerTool{
		withOutput(tool("convert_unit", "Convert a value", readOnly,
			`Convert a value from one unit of measure to another of the same quantity, computed exactly and rounded at the end. Call list_units for the symbols. Symbols are case-sensitive: MB is a megabyte, mb is nothing.`,
			`{"type": "object", "properties": {
				"value": {"type": "number", "description": "The value to convert"},
				"from": {"type": "string", "description": "Symbol of the unit of value, for example mi"},
				"to": {"type": "string", "description": "Symbol of the unit to convert to, for example km"},
				"precision": {"type": "integer", "description": "Digits after the decimal point", "minimum": 0, "maximum": 15, "default": 6}
			}, "required": ["value", "from", "to"], "additionalProperties": false}`, convertUnit),
			`{"type": "object", "properties": {
				"value": {"type": "number"}, "from": {"type": "string"}, "result": {"type": "number", "description": "The value in the unit to"},
				"to": {"type": "string"}, "quantity": {"type": "string", `+quantityEnum+`}
			}, "required": ["value", "from", "result", "to", "quantity"]}`),
		tool("list_units", "List units", readOnly,
			`List the units that convert_unit knows with their symbols and names, all of them or those of one quantity.`,
			`{"type": "object", "properties": {
				"quantity": {"type": "string", "description": "Only units of this quantity", `+quantityEnum+`}
			}, "additionalProperties": false}`, listUnits),
		tool("convert_base", "Convert a number base", readOnly,
			`Convert an integer of any size from one number base to another. Digits above 9 are the letters a to z; case does not matter. A leading 0x, 0o or 0b is accepted for the bases 16, 8 and 2.`,
			`{"type": "object", "properties": {
				"number": {"type": "string", "description": "The integer, as text so that no digit is lost", "pattern": "^[+-]?[0-9A-Za-z_]+$"},
				"from_base": {"type": "integer", "description": "Base of number", "minimum": 2, "maximum": 36, "default": 10},
				"to_base": {"type": "integer", "description": "Base of the result", "minimum": 2, "maximum": 36, "default": 16}
			}, "required": ["number"], "additionalProperties": false}`, convertBase),
		tool("convert_time", "Convert a time", readOnly,
			`Convert a moment between Unix time, ISO 8601 and a shifted UTC offset, and say what day it is. Time zone names are not known here; give the offset.`,
			`{"type": "object", "properties": {
				"time": {"anyOf": [{"type": "integer", "description": "Unix time in seconds"}, {"type": "string", "format": "date-time"}], "description": "The moment, as Unix seconds or as an RFC 3339 string"},
				"offset_minutes": {"type": "integer", "description": "Offset of the result from UTC in minutes", "minimum": -720, "maximum": 840, "default": 0}
			}, "required": ["time"], "additionalProperties": false}`, convertTime),
	}
}

type convertArgs struct {
	Value     float64
	From, To  string
	Precision *int
}

func convertUnit(a convertArgs) (any, error) {
	from, quantity, err := findUnit(a.From)
	if err != nil {
		return nil, err
	}
	to, other, err := findUnit(a.To)
	if err != nil {
		return nil, err
	}
	if quantity != other {
		return nil, fmt.Errorf("%s is a unit of %s, %s of %s", a.From, quantity, a.To, other)
	}
	precision := 6
	if a.Precision != nil {
		precision = min(max(*a.Precision, 0), 15)
	}
	x := new(big.Rat)
	if x.SetFloat64(a.Value) == nil {
		return nil, fmt.Errorf("cannot convert %v", a.Value)
	}
	x.Mul(x.Add(x, rational(from.offset)), rational(from.factor))
	x.Sub(x.Quo(x, rational(to.factor)), rational(to.offset))
	result, _ := strconv.ParseFloat(x.FloatString(precision), 64)
	return struct {
		Value    float64 `json:"value"`
		From     string  `json:"from"`
		Result   float64 `json:"result"`
		To       string  `json:"to"`
		Quantity string  `json:"quantity"`
	}{a.Value, a.From, result, a.To, quantity}, nil
}

func findUnit(symbol string) (unit, string, error) {
	for _, q := range quantities {
		if i := slices.IndexFunc(q.units, func(u unit) bool { return u.Symbol == symbol }); i >= 0 {
			return q.units[i], q.name, nil
		}
	}
	return unit{}, "", fmt.Errorf("unknown unit %q; list_units has the symbols", symbol)
}

// rational reads a number of the table.
func rational(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("demo: not a number: " + s)
	}
	return r
}

type quantityArgs struct{ Quantity string }

func listUnits(a quantityArgs) (any, error) {
	type row struct {
		Quantity string `json:"quantity"`
		unit
		Base bool `json:"base"`
	}
	rows := []row{}
	for _, q := range quantities {
		if a.Quantity != "" && a.Quantity != q.name {
			continue
		}
		for i, u := range q.units {
			rows = append(rows, row{q.name, u, i == 0})
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("unknown quantity %q", a.Quantity)
	}
	return rows, nil
}

type baseArgs struct {
	Number   string
	FromBase int `json:"from_base"`
	ToBase   int `json:"to_base"`
}

func convertBase(a baseArgs) (any, error) {
	from, to := orDefault(a.FromBase, 10), orDefault(a.ToBase, 16)
	if from < 2 || from > 36 || to < 2 || to > 36 {
		return nil, fmt.Errorf("bases are 2 to 36, not %d and %d", from, to)
	}
	digits := strings.ToLower(strings.ReplaceAll(a.Number, "_", ""))
	for base, mark := range map[int]string{16: "0x", 8: "0o", 2: "0b"} {
		if from == base {
			digits = strings.Replace(digits, mark, "", 1)
		}
	}
	const most = 10000
	n, ok := new(big.Int), false
	if len(digits) <= most {
		n, ok = n.SetString(digits, from)
	}
	if !ok {
		return nil, fmt.Errorf("%.40q is not an integer of at most %d digits in base %d", a.Number, most, from)
	}
	return map[string]any{"input": a.Number, "from_base": from, "result": n.Text(to), "to_base": to, "bits": n.BitLen()}, nil
}

type timeArgs struct {
	Time          any
	OffsetMinutes int `json:"offset_minutes"`
}

func convertTime(a timeArgs) (any, error) {
	var t time.Time
	switch v := a.Time.(type) {
	case float64:
		t = time.Unix(int64(v), 0)
	case string:
		var err error
		if t, err = time.Parse(time.RFC3339, v); err != nil {
			return nil, fmt.Errorf("%q is not a time such as 2026-01-15T09:00:00Z", v)
		}
	default:
		return nil, fmt.Errorf("time must be an integer or a string")
	}
	t = t.In(time.FixedZone("", a.OffsetMinutes*60))
	year, week := t.ISOWeek()
	return map[string]any{
		"unix": t.Unix(), "iso": t.Format(time.RFC3339), "weekday": t.Weekday().String(),
		"day_of_year": t.YearDay(), "iso_week": fmt.Sprintf("%d-W%02d", year, week),
	}, nil
}
