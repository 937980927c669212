package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     Message
		response bool
	}{
		{"request", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a": 1.10}}`, Message{ID: json.RawMessage("7"), Method: "ping", Params: json.RawMessage(`{"a": 1.10}`)}, false},
		{"notification", `{"method":"n"}`, Message{Method: "n"}, false},
		{"result", ` {"id":"x","result":{"n":9007199254740993}} `, Message{ID: json.RawMessage(`"x"`), Result: json.RawMessage(`{"n":9007199254740993}`)}, true},
		{"null result", `{"id":1,"result":null}`, Message{ID: json.RawMessage("1"), Result: json.RawMessage("null")}, true},
		{"error", `{"id":1,"error":{"code":-1}}`, Message{ID: json.RawMessage("1"), Error: json.RawMessage(`{"code":-1}`)}, true},
		{"error null beside a result", `{"id":1,"error":null,"result":2}`, Message{ID: json.RawMessage("1"), Result: json.RawMessage("2")}, true},
		{"null id", `{"id":null,"error":{}}`, Message{Error: json.RawMessage("{}")}, true},
		{"escaped keys", `{"\u0069d":1,"m\u0065thod":"\u0070ing"}`, Message{ID: json.RawMessage("1"), Method: "ping"}, false},
		{"nested look-alikes", `{"x":{"id":5,"method":"no"},"s":"\"id\":6}","id":7,"result":[{"error":1}]}`, Message{ID: json.RawMessage("7"), Result: json.RawMessage(`[{"error":1}]`)}, true},
		{"method is no string", `{"id":1,"method":7}`, Message{ID: json.RawMessage("1")}, false},
		{"empty", `{}`, Message{}, false},
		{"white space everywhere", "{ \"id\" :\t1 ,\r\n\"result\" : [ ] }", Message{ID: json.RawMessage("1"), Result: json.RawMessage("[ ]")}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.ID) != string(tt.want.ID) || got.Method != tt.want.Method || string(got.Params) != string(tt.want.Params) ||
				string(got.Result) != string(tt.want.Result) || string(got.Error) != string(tt.want.Error) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if got.IsResponse() != tt.response {
				t.Errorf("IsResponse is %t", got.IsResponse())
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{``, ` `, `null`, `[]`, `"x"`, `7`} {
		if _, err := Parse([]byte(in)); !errors.Is(err, errNotObject) {
			t.Errorf("Parse(%q): got %v, want errNotObject", in, err)
		}
	}
	for _, in := range []string{`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1}x`, `{"a":1}{"b":2}`,
		`{"a":"x}`, `{"a":[1}`, `{"a":{"b":1}`, `{"a":1 2}`, `{"\q":1}`, `{,}`, `{"a":}`} {
		if _, err := Parse([]byte(in)); err == nil {
			t.Errorf("Parse(%q): no error", in)
		}
	}
}

// TestParseBroken: if a value is invalid JSON, Parse still returns the id, before or after the value, and the value
// itself, whose end it finds by brackets and quotes.
func TestParseBroken(t *testing.T) {
	for value, utf8 := range map[string]bool{
		`{"a":01}`: true, `[1,,2]`: true, `{"a":"\q]"}`: true, `"\u12"`: true, `tru`: true, `[}`: true, "\"\x01\"": true, `{"b":[nul],"c":"}\""}`: true,
		strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting): true, "[\"\xff\", 01]": false,
	} {
		for _, in := range []string{`{"id":7,"result":` + value + `}`, `{"result":` + value + ` ,"id":7}`} {
			m, err := Parse([]byte(in))
			if err != nil || string(m.ID) != "7" || string(m.Result) != value || m.Valid || m.UTF8 != utf8 {
				t.Errorf("Parse(%.100s) = %.100s, valid %t, UTF-8 %t, %v", in, m.Result, m.Valid, m.UTF8, err)
			}
		}
	}
	for in, utf8 := range map[string]bool{`{"id":1,"result":"é"}`: true, "{\"id\":1,\"result\":\"aaaaaaaaaaaaaaaa\xe9\"}": false, "{\"\xff\":1}": false} {
		if m, err := Parse([]byte(in)); err != nil || !m.Valid || m.UTF8 != utf8 {
			t.Errorf("Parse(%s): valid %t, UTF-8 %t, %v", in, m.Valid, m.UTF8, err)
		}
	}
}

// TestParseDeep: deep nesting does not overflow the stack.
func TestParseDeep(t *testing.T) {
	const depth = 5 << 20
	deep := `{"id":1,"result":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	if m, err := Parse([]byte(deep)); err != nil || len(m.Result) != 2*depth {
		t.Errorf("got %d bytes, %v", len(m.Result), err)
	}
}

// TestFieldsBoundsValues: appending to a value that yield got does not overwrite the bytes after it.
func TestFieldsBoundsValues(t *testing.T) {
	data := []byte(`{"a":[1],"b":2}`)
	err := Fields(data, func(key string, value []byte) bool {
		_ = append(value, "xxxx"...)
		return true
	})
	if err != nil || string(data) != `{"a":[1],"b":2}` {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestFieldsStops(t *testing.T) {
	var keys []string
	err := Fields([]byte(`{"a":1,"b":2,"c":`), func(key string, _ []byte) bool {
		keys = append(keys, key)
		return key != "b"
	})
	if err != nil || !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("got %v, %v", keys, err)
	}
}

func TestBatch(t *testing.T) {
	messages, err := Batch([]byte(` [{"id":1}, {"method":"n"} ]`))
	if err != nil || len(messages) != 2 || string(messages[1]) != `{"method":"n"}` {
		t.Errorf("got %s, %v", messages, err)
	}
	if messages, err := Batch([]byte(`[]`)); err != nil || len(messages) != 0 {
		t.Errorf("empty batch: got %s, %v", messages, err)
	}
	for _, in := range []string{``, `{}`, `[INFO] up`, `[1,`, `null`} {
		if _, err := Batch([]byte(in)); err != errNotBatch {
			t.Errorf("Batch(%q): %v", in, err)
		}
	}
	for n, want := range map[int]error{maxBatch: nil, maxBatch + 1: ErrLargeBatch} {
		messages, err := Batch([]byte(`[{}` + strings.Repeat(`,{}`, n-1) + `]`))
		if err != want || want == nil && len(messages) != n || want != nil && messages != nil {
			t.Errorf("a batch of %d: %d messages, %v", n, len(messages), err)
		}
	}
}

// FuzzParse compares Parse with encoding/json. An object that encoding/json accepts must be accepted by Parse, with
// the same members. An object that only Parse accepts may have invalid literals, but each value must belong to the
// same member.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{one, `{"id":null,"method":"a\u0062","params":[1,{"x":"]}"}]}`, `{"a":"\\","b":"\\\""}`, `{"a":nonsense}`,
		`{"a":[}}`, `{"id":1,"id":2}`, `{"":{}}`, "{\"a\":1}\n", `{"result":-0.10e+5,"error":null}`, "{\"\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		message, err := Parse(in)
		var members map[string]json.RawMessage
		valid := json.Unmarshal(in, &members) == nil && members != nil
		if valid && err != nil {
			t.Fatalf("Parse refuses a valid object: %v", err)
		}
		if err == nil && (message.Valid != json.Valid(in) || message.Valid && message.UTF8 != utf8.Valid(in)) {
			t.Fatalf("valid %t, UTF-8 %t; want %t, %t", message.Valid, message.UTF8, json.Valid(in), utf8.Valid(in))
		}
		if !valid {
			return
		}
		seen := 0
		last := make(map[string]string)
		err = Fields(in, func(key string, value []byte) bool {
			seen++
			if !json.Valid(value) {
				t.Fatalf("member %q of a valid object: %q", key, value)
			}
			last[strings.ToValidUTF8(key, "\ufffd")] = string(value)
			return true
		})
		if err != nil || seen < len(members) {
			t.Fatalf("%d members of %d, %v", seen, len(members), err)
		}
		for name, raw := range map[string]json.RawMessage{"params": message.Params, "result": message.Result} {
			if want, ok := members[name]; ok != (raw != nil) || string(raw) != string(want) {
				t.Fatalf("%s: got %q, want %q", name, raw, want)
			}
		}
		for key, value := range last {
			if want, ok := members[key]; ok && string(want) != value {
				t.Fatalf("member %q: got %q, want %q", key, value, want)
			}
		}
	})
}

// TestParse_Ambiguous: Ambiguous is true if a member occurs twice or in other letter case. Nested members do not matter.
func TestParse_Ambiguous(t *testing.T) {
	for members, want := range map[string]bool{
		`"method":"ping"`: false,
		`"method":"ping","params":{"METHOD":1,"id":2,"id":3},"extra":1,"extra":2`: false,
		`"method":"ping","Method":"x"`:                                            true,
		`"METHOD":"x","method":"ping"`:                                            true,
		`"method":"x","method":"ping"`:                                            true,
		`"method":"x","m\u0065thod":"ping"`:                                       true,
		`"method":"ping","param\u017f":{}`:                                        true,
		`"method":"ping","params":{},"params":{}`:                                 true,
		`"method":"ping","ID":2`:                                                  true,
		`"jsonrpc":"2.0","method":"ping"`:                                         true,
		`"result":{},"error":null,"RESULT":{}`:                                    true,
	} {
		m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,` + members + `}`))
		if err != nil || m.Ambiguous != want {
			t.Errorf("%s: %t, %v", members, m.Ambiguous, err)
		}
	}
}
