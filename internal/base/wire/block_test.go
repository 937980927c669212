package wire

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestReadResult(t *testing.T) {
	tests := []struct {
		raw, text       string
		isText, hasText bool
		with            string // the block with the text NEW
	}{
		{`{"type":"text","text":"a\n\u00e9"}`, "a\né", true, true, `{"type":"text","text":"NEW"}`},
		{`{ "text" : "a" , "x":[{"text":"no"}], "\u0074ype":"te\u0078t" }`, "a", true, true, `{ "text" : "NEW" , "x":[{"text":"no"}], "\u0074ype":"te\u0078t" }`},
		{`{"type":"text","text":"a","text":"b"}`, "b", true, true, `{"type":"text","text":"a","text":"NEW"}`},
		{`{"type":"resource","text":"no","resource":{"uri":"u","text":"yes"}}`, "yes", false, true, `{"type":"resource","text":"no","resource":{"uri":"u","text":"NEW"}}`},
		{`{"type":"resource","resource":{"uri":"u","blob":"AA=="}}`, "", false, false, ""},
		{`{"type":"resource","resource":{"text":"no"},"resource":["x"]}`, "", false, false, ""},
		{`{"type":"image","text":"a"}`, "", false, false, ""},
		{`{"type":"text","text":"\ud800"}`, "", false, false, ""},
		{`{"type":"text","text":7}`, "", false, false, ""},
		{`{"type":"text"}`, "", false, false, ""},
		{`7`, "", false, false, ""}, {`[{"type":"text"}]`, "", false, false, ""}, {`{}`, "", false, false, ""}, {`"text"`, "", false, false, ""},
	}
	list := ` {"_meta" : {} , "content" : [ `
	for i, tt := range tests {
		if i > 0 {
			list += " ,"
		}
		list += tt.raw
	}
	others := ""
	other := func(key string, written, value []byte) { others += key + string(written) + string(value) }
	blocks, ok := ReadResult(json.RawMessage(list+`] , "is\u0045rror":true, "content":"text"} `), other)
	if !ok || len(blocks) != len(tests) || others != `_meta"_meta"{}isError"is\u0045rror"truecontent"content""text"` {
		t.Fatalf("%d blocks, %t, other members %s", len(blocks), ok, others)
	}
	for i, tt := range tests {
		for _, b := range []Block{blocks[i], ReadBlock(json.RawMessage(tt.raw))} {
			if string(b.Raw) != tt.raw || b.IsText != tt.isText || b.HasText != tt.hasText || b.HasText && b.Text != tt.text {
				t.Errorf("%s: got %+v", tt.raw, b)
			}
			if b.HasText && string(b.WithText("NEW")) != tt.with {
				t.Errorf("%s: with another text %s", tt.raw, b.WithText("NEW"))
			}
		}
	}
	for _, bad := range []string{
		``, `7`, `[]`, `{"content":[`, `{"content":[{"type":"text"}`, `{"content":[{"type":}]}`, `{"content":[{"a":01}]}`, `{"content":[]}x`,
		`{"content":[1,]}`, `{"content":[]`, `{"a":1,}`,
	} {
		if got, ok := ReadResult(json.RawMessage(bad), other); ok {
			t.Errorf("%s: got %v", bad, got)
		}
	}
	if b := ReadBlock(json.RawMessage(`{"type":"text","text":"a"`)); b.HasText {
		t.Errorf("got %+v", b)
	}
}

// FuzzReadResult compares ReadResult with Members and Elements.
func FuzzReadResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"},7],"isError":true}`, ` { "a" : [ ] , "content" : [ ] } x`,
		`{"content":{},"content":[[]],"\u0063ontent":1}`, `{"content":[{"resource":{"text":"\ud800"}}`, `{"content":[1 2]}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want, wantBlocks, got, gotBlocks []string
		valid, err := members(in, nil, func(key string, keyStart, keyEnd, start, end int) bool {
			if value := in[start:end]; key != "content" || value[0] != '[' {
				want = append(want, key, string(in[keyStart:keyEnd]), string(value))
				return true
			}
			wantBlocks = nil
			_ = Elements(in[start:end], func(value []byte) bool {
				wantBlocks = append(wantBlocks, string(value))
				return true
			})
			return true
		})
		blocks, ok := ReadResult(in, func(key string, written, value []byte) {
			got = append(got, key, string(written), string(value))
		})
		for _, b := range blocks {
			gotBlocks = append(gotBlocks, string(b.Raw))
		}
		if ok != (valid && err == nil) {
			t.Fatalf("valid: %t, want %t", ok, valid)
		}
		if ok && !(slices.Equal(got, want) && slices.Equal(gotBlocks, wantBlocks)) {
			t.Fatalf("members %q, blocks %q; want %q, %q", got, gotBlocks, want, wantBlocks)
		}
	})
}
