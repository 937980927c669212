package wire

import (
	"encoding/json"
	"testing"
)

func TestReadBlocks(t *testing.T) {
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
	list := " [ "
	for i, tt := range tests {
		if i > 0 {
			list += " ,"
		}
		list += tt.raw
	}
	blocks, ok := ReadBlocks(json.RawMessage(list + "] "))
	if !ok || len(blocks) != len(tests) {
		t.Fatalf("%d blocks, %t", len(blocks), ok)
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
	for _, bad := range []string{``, `{}`, `[`, `[{"type":"text"}`, `[{"type":}]`, `[{"a":01}]`, `[]x`, `[1,]`} {
		if got, ok := ReadBlocks(json.RawMessage(bad)); ok {
			t.Errorf("%s: got %v", bad, got)
		}
	}
	if b := ReadBlock(json.RawMessage(`{"type":"text","text":"a"`)); b.HasText {
		t.Errorf("got %+v", b)
	}
}
