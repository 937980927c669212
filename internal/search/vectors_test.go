package search

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"mcpx/internal/base/catalog"
)

// TestVectors: for the same texts, the pieces of words and the sums of their vectors are the same as those that
// tools/embed computes.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden []struct {
		Text   string
		Pieces []string
		Vector vector
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	name := make([]string, len(pieces()))
	for text, id := range pieces() {
		name[id] = text
	}
	if len(golden) == 0 || len(vectorTable) != len(name)*(2+dimensions/2) {
		t.Fatalf("%d golden texts, and a table of %d bytes for %d pieces", len(golden), len(vectorTable), len(name))
	}
	for _, g := range golden {
		var got []string
		var sum vector
		scan(g.Text, func(w word) {
			for _, id := range piecesOf(w.text) {
				got = append(got, name[id])
			}
			sum.word(w.text, 1)
		})
		if !slices.Equal(got, g.Pieces) {
			t.Errorf("%q: pieces %q, want %q", g.Text, got, g.Pieces)
		}
		if sum != g.Vector {
			t.Errorf("%q: vector %v, want %v", g.Text, sum, g.Vector)
		}
	}
}

func TestVectors_Nearness(t *testing.T) {
	unit := func(text string) *vector {
		var v vector
		scan(text, func(w word) { v.word(w.text, 1) })
		v.unit()
		return &v
	}
	for _, tt := range [][3]string{
		{"car", "automobile", "banana"},
		{"lawyer", "attorney", "keyboard"},
		{"send a letter", "mail a message", "chop vegetables"},
	} {
		if near, far := unit(tt[0]).dot(unit(tt[1])), unit(tt[0]).dot(unit(tt[2])); near < far+0.2 {
			t.Errorf("%s: %s is at %.2f, %s at %.2f", tt[0], tt[1], near, tt[2], far)
		}
	}
	if got := piecesOf("файл"); got != nil {
		t.Errorf("a word without known pieces has %v", got)
	}
}

// TestSearch_Meaning: a query finds a tool by meaning even if its word is in no table. A query in a script without
// vectors is ranked by its words alone.
func TestSearch_Meaning(t *testing.T) {
	snap := sample()
	legal := catalog.Server{Name: "office", Tools: []catalog.Tool{
		tool("find_keyboard", "Find a keyboard in the office.", "q"),
		tool("find_lawyer", "Find a lawyer in the office.", "q"),
	}}
	x := New(catalog.NewSnapshot(append(snap.Servers, legal)))
	if got := first(x.Search("find an attorney", Options{}), 1)[0]; got != "find_lawyer" {
		t.Errorf("find an attorney: got %s first", got)
	}
	whole, _ := x.analyse("搜索 lawyer")
	r := ranking{x: x, end: uint32(len(x.tools))}
	if near, _ := r.near(&whole); near != nil {
		t.Errorf("a query with Chinese has vectors: %v", near)
	}
	if near, _ := r.near(&need{}); near != nil {
		t.Errorf("a need without words is near to %v", near)
	}
}

// TestSearch_NoVector: a tool whose words have no vectors is found by its words, and is near to no other query.
func TestSearch_NoVector(t *testing.T) {
	unknown := catalog.Server{Name: "_", Tools: []catalog.Tool{tool("წაკითხვა", "ფაილის წაკითხვა.", ""), tool("წაშლა", "ფაილის წაშლა.", "")}}
	x := New(catalog.NewSnapshot(append(sample().Servers, unknown)))
	if hits := x.Search("წაშლა", Options{}); len(hits) == 0 || hits[0].Tool != "წაშლა" {
		t.Errorf("got %v", hits)
	}
	for _, query := range []string{"weather tomorrow in Paris", "draw a pie"} {
		for _, hit := range x.Search(query, Options{}) {
			if hit.Server == "_" {
				t.Errorf("%s: got %v", query, hit)
			}
		}
	}
}
