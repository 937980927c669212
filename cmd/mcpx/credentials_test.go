package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// TestCredentials: two callers at once, in both eras: the
// server gets the key of each with the calls of that one. A caller without a key reads which
// header is missing, and over stdio nobody can have one.
func TestCredentials(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	web := mcptest.Spec{}.HTTP(t)
	config := h.config(t, map[string]server{"web": {"url": web.URL, "credentials": map[string]string{"X-Api-Key": "header:X-User-Key"}}}, nil)
	d := h.serveHTTP(t, "--config", config, "--log-level", "debug")
	open := func(era, key string) *client {
		peer := d.peer(t)
		if key != "" {
			peer.header.Set("X-User-Key", key)
		}
		c := &client{era: era, name: "e2e", peer: peer}
		c.open(t)
		return c
	}
	var callers sync.WaitGroup
	for _, era := range []string{legacy, modern} {
		for i := range 2 {
			key := fmt.Sprintf("hush-%s-%d", era, i)
			c := open(era, key)
			callers.Go(func() {
				for range 5 {
					if got := c.exec(t, "web", "echo", `{"text":"to `+key+`"}`).text(t); got != "to "+key {
						t.Errorf("%s: %s", key, got)
					}
				}
			})
		}
		c := open(era, "")
		if got := c.exec(t, "web", "echo", `{"text":"x"}`).text(t); !strings.Contains(got, "the caller's header X-User-Key") || strings.Contains(got, "hush") {
			t.Errorf("without a key: %s", got)
		}
	}
	callers.Wait()
	keyOf := map[string]string{} // by session
	for _, entry := range web.Log().Event(mcptest.EventHTTP) {
		keyOf[entry.Session] = entry.Header.Get("X-Api-Key")
	}
	calls := web.Log().Calls("echo")
	for _, entry := range calls {
		if key := keyOf[entry.Session]; key == "" || !strings.Contains(string(entry.Message), "to "+key+`"`) {
			t.Errorf("with the key %q: %s", key, entry.Message)
		}
	}
	if len(calls) != 20 {
		t.Errorf("%d calls", len(calls))
	}
	// A legacy session whose next request has another key.
	c := open(legacy, "hush-one")
	c.exec(t, "web", "echo", `{"text":"x"}`)
	c.peer.(*httpPeer).header.Set("X-User-Key", "hush-two")
	c.exec(t, "web", "echo", `{"text":"y"}`)
	seen := web.Log().Event(mcptest.EventHTTP)
	if got := seen[len(seen)-1].Header.Get("X-Api-Key"); got != "hush-two" {
		t.Errorf("after a change of the key: %s", got)
	}
	if strings.Contains(d.stderr.String(), "hush-") {
		t.Errorf("the log:\n%s", d.stderr.String())
	}

	p := h.serveStdio(t, "--config", config)
	over := &client{era: legacy, name: "e2e", peer: p}
	over.open(t)
	if got := over.exec(t, "web", "echo", `{"text":"x"}`).text(t); !strings.Contains(got, "mcpx serves over stdio") {
		t.Errorf("over stdio: %s", got)
	}
	if out, _, code := h.run(t, "", "--config", config, "check"); code != 0 || !strings.Contains(out, "1 ready") {
		t.Errorf("check: %d\n%s", code, out)
	}
	if out, _, _ := h.run(t, "", "--config", config, "exec", "web", "echo", `{"text":"x"}`); !strings.Contains(out, "the caller's header X-User-Key") {
		t.Errorf("exec: %s", out)
	}
}
