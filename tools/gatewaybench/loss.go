package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"mcpx/internal/base/wire"
)

// lossCase is a result of a server, and a check whether it has reached the client without loss.
type lossCase struct {
	class, result string
	kept          func(got []byte) bool
}

// lossCases returns a case for each kind of content that a gateway could lose or change. In some cases, a gateway may write the
// content in another form, such as TOON, but its words must still be there, in the same order. [says] makes the check for these
// cases. In all other cases the content must be the same.
func lossCases() []lossCase {
	text := func(s string) string { return textResult(s) }
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	image := `{"type":"image","data":"` + png + `","mimeType":"image/png"}`
	audio := `{"type":"audio","data":"UklGRiQAAABXQVZF","mimeType":"audio/wav"}`
	link := `{"type":"resource_link","uri":"file:///a.txt","name":"a.txt","mimeType":"text/plain"}`
	resource := `{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"in the file"}}`
	unknown := `{"type":"video","uri":"https://example.org/v","seconds":3}`
	extra := `{"type":"text","text":"with more","annotations":{"audience":["user"],"priority":0.5},"x-extra":{"a":1}}`
	wrap := func(block string) string { return `{"content":[` + block + `]}` }
	return []lossCase{
		{"text as it is", text("  two\tlines \n\nand ünïcödé 漢字 \U0001F600  "),
			hasText("  two\tlines \n\nand ünïcödé 漢字 \U0001F600  ")},
		{"big integers in a text", text(`{"id":12345678901234567890123,"n":9007199254740993}`), says("12345678901234567890123",
			"9007199254740993")},
		{"order of members", text(`{"zeta":1,"alpha":2,"mid":{"y":1,"b":2}}`), says("zeta", "alpha", "mid", "y", "b")},
		{"numbers as written", text(`{"a":1e2,"b":1.10,"c":-0.0}`), says("1e2", "1.10", "-0.0")},
		{"structuredContent alone", `{"content":[],"structuredContent":{"city":"Osaka","people":2691185}}`, says("Osaka", "2691185")},
		{"structuredContent as such", `{"content":[{"type":"text","text":"see there"}],"structuredContent":{"city":"Osaka"}}`,
			member("structuredContent", `{"city":"Osaka"}`)},
		{"big integers in structuredContent", `{"content":[],"structuredContent":{"id":12345678901234567890123}}`,
			says("12345678901234567890123")},
		{"image", wrap(image), block(image)},
		{"audio", wrap(audio), block(audio)},
		{"resource link", wrap(link), block(link)},
		{"embedded resource", wrap(resource), block(resource)},
		{"unknown kind of block", wrap(unknown), block(unknown)},
		{"annotations and unknown members of a block", wrap(extra), block(extra)},
		{"order of blocks", wrap(`{"type":"text","text":"one"},` + image + `,{"type":"text","text":"two"}`), blocks("text", "image",
			"text")},
		{"isError", `{"content":[{"type":"text","text":"it broke"}],"isError":true}`, member("isError", `true`)},
		{"_meta of the result", `{"content":[{"type":"text","text":"ok"}],"_meta":{"example.org/trace":"t-1"}}`,
			says("example.org/trace", "t-1")},
		{"unknown members of the result", `{"content":[{"type":"text","text":"ok"}],"x-cost":{"cents":7}}`, says("x-cost", "cents",
			"7")},
	}
}

// says returns a check that all words are in the result, in this order. They must be in the texts that a model sees, or anywhere in
// the JSON of the result.
func says(words ...string) func([]byte) bool {
	return func(got []byte) bool {
		inOrder := func(text string) bool {
			for _, word := range words {
				_, rest, found := strings.Cut(text, word)
				if !found {
					return false
				}
				text = rest
			}
			return true
		}
		return inOrder(seenByModel(got)) || inOrder(string(got))
	}
}

func hasText(text string) func([]byte) bool {
	return func(got []byte) bool { return seenByModel(got) == text }
}

func member(name, value string) func([]byte) bool {
	return func(got []byte) bool { return same(wire.Member(got, name), []byte(value)) }
}

func contentOf(got []byte) (all []json.RawMessage) {
	_ = json.Unmarshal(wire.Member(got, "content"), &all) // if content is no list, there are no blocks
	return all
}

// block returns a check that one of the content blocks is the same JSON value as want (see the func same).
func block(want string) func([]byte) bool {
	return func(got []byte) bool {
		for _, one := range contentOf(got) {
			if same(one, []byte(want)) {
				return true
			}
		}
		return false
	}
}

// blocks returns a check that the content has blocks of exactly these kinds, in this order.
func blocks(kinds ...string) func([]byte) bool {
	return func(got []byte) bool {
		var found []string
		for _, one := range contentOf(got) {
			found = append(found, wire.MemberText(one, "type"))
		}
		return reflect.DeepEqual(found, kinds)
	}
}

// same reports whether two texts are the same JSON value. Numbers must be written with the same digits, so 1 and 1.0 differ. A
// member of the outermost object that is null counts as absent.
func same(a, b []byte) bool {
	read := func(data []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		_ = d.Decode(&v) // v stays nil if data is not JSON
		return withoutNull(v)
	}
	return reflect.DeepEqual(read(a), read(b))
}

func withoutNull(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for key, value := range object {
		if value == nil {
			delete(object, key)
		}
	}
	return object
}

func lossFigure() *figure {
	f := &figure{name: "loss", title: "What is lost", wide: true,
		about: "A result of each kind, and whether what it has reaches the client. JSON in texts may come in another form, if " +
			"digits and order " +
			"are there; all else must be the same value. A result that a gateway turns into an error is lost.",
		run: (*bench).measureLoss}
	for _, c := range lossCases() {
		f.columns = append(f.columns, column{name: c.class})
	}
	return f
}

func (b *bench) measureLoss(f *figure) {
	cases := lossCases()
	spec := serverSpec{Name: "cases", Results: map[string]json.RawMessage{}}
	for i, c := range cases {
		name := fmt.Sprintf("case_%d", i)
		spec.Tools = append(spec.Tools,
			json.RawMessage(`{"name":"`+name+`","description":"Returns a case.","inputSchema":{"type":"object","properties":{}}}`))
		spec.Results[name] = json.RawMessage(c.result)
	}
	b.each(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
		t, err := b.start(p, transport, "", []serverSpec{spec, {Name: "other"}}, l)
		if err != nil {
			return err
		}
		defer t.stop()
		if err := t.ready(ctx, "cases"); err != nil {
			return err
		}
		for i, c := range cases {
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			got, err := t.call(limited, "cases", fmt.Sprintf("case_%d", i), `{}`)
			cancel()
			verdict := "kept"
			if err != nil || !c.kept(got) {
				verdict = "lost"
			}
			l.note("%s: %s\n  sent %s\n  got  %s %v", c.class, verdict, c.result, clip(string(got), 2000), err)
			b.word(f, c.class, p, transport, verdict)
		}
		return nil
	})
}
