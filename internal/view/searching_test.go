package view

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestInspect_SearchesOfOthers: searches run one at a time. However many searches of one principal wait, the search of another
// principal waits for one of them at most. Only a limited number of searches may wait; further ones fail.
func TestInspect_SearchesOfOthers(t *testing.T) {
	v, r := started(t, Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	r.WaitTried(t.Context())
	search := func(who string) string {
		client := &caller.Client{ID: who, Principal: &caller.Principal{ID: who}}
		result, err := v.Call(t.Context(), Call{From: request.From{Client: client}, Name: InspectTool, Arguments: json.RawMessage(`{"query":"echo"}`)})
		if err != nil {
			return err.Error()
		}
		return string(result.Content[0])
	}
	waiting := func(what string, n int) {
		mcptest.WaitFor(t, what, patience, func() bool {
			_, now := v.searching.Use()
			return now == n
		})
	}
	if err := v.searching.Enter(t.Context(), "mallory"); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 300)
	for range 300 {
		go func() { said <- search("mallory") }() // ends when it has its turn, or is refused
	}
	refused := func(n int) {
		for range n {
			if one := <-said; !strings.Contains(one, "RATE_LIMITED") {
				t.Errorf("got %s", one)
			}
		}
	}
	refused(300 - 256)
	alice := make(chan string, 1)
	go func() { alice <- search("alice") }() // ends when it has its turn
	refused(1)
	waiting("alice, in place of one of mallory's", 256)
	v.searching.Leave("mallory")
	for range 255 {
		if one := <-said; !strings.Contains(one, "echo") {
			t.Errorf("mallory: %s", one)
		}
	}
	if one := <-alice; !strings.Contains(one, "echo") {
		t.Errorf("alice: %s", one)
	}
}
