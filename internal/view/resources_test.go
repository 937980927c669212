package view

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestResources_announced: when a server connects, fails or comes back, clients are notified of each list that changes. The
// list of tools still contains the tools of a server that has failed, so there is no notification for it.
func TestResources_announced(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Resources: json.RawMessage(`[{"uri":"a://1","name":"x"}]`), Prompts: json.RawMessage(`[{"name":"p"}]`)}.HTTP(t)
	v, r := idle(t, Options{}, remote("fake", fake))
	var mu sync.Mutex
	heard := make(map[catalog.Kind]int)
	listen(t, v, func(kind catalog.Kind) {
		mu.Lock()
		defer mu.Unlock()
		heard[kind]++
	})
	r.Start()
	awaitTurn := func(what string, n int) {
		t.Helper()
		mcptest.WaitFor(t, what, patience, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			// makes mcpx notice that the server has failed
			_, _ = v.Send(ctx, &request.Request{Method: "resources/read", Params: json.RawMessage(`{"uri":"a://1"}`)})
			mu.Lock()
			defer mu.Unlock()
			return heard[catalog.Resources] == n && heard[catalog.Prompts] == n
		})
	}
	awaitTurn("the server", 1)
	description := v.Tools(t.Context(), nil)
	if !strings.Contains(string(description), "Server: mcpx") || !v.Greeting(nil).Offers.Subscribe {
		t.Errorf("%+v: %s", v.Greeting(nil).Offers, description)
	}
	fake.Down()
	awaitTurn("the end of the server", 2)
	fake.Up()
	awaitTurn("its return", 3)
	if string(v.Tools(t.Context(), nil)) != string(description) {
		t.Error("the description is another one")
	}
	if heard[catalog.ResourceTemplates] != 0 {
		t.Error("templates have not changed")
	}
}
