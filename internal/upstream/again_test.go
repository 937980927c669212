package upstream

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestAgain: Again reads the tools of a connected server each time. It reports a server that hangs, but not one that is
// busy with a call.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		tools, wedge := filepath.Join(dir, "tools"), filepath.Join(dir, "wedge")
		spec, _ := inProcess(t, mcptest.Spec{ToolsFile: tools, WedgeFile: wedge})
		u := ready(t, spec)
		for _, name := range []string{"one", "two"} {
			if err := os.WriteFile(tools, []byte(`[{"name":"`+name+`","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}]`), 0o600); err != nil {
				t.Fatal(err)
			}
			if silent := u.Again(context.Background()); silent != "" || u.Status().Tools[0].Name != name {
				t.Errorf("%q, %s, want %s", silent, u.Status().Tools[0].Name, name)
			}
		}
		if err := os.WriteFile(wedge, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if silent := u.Again(context.Background()); silent != "no answer to tools/list within 30s" {
			t.Errorf("got %q", silent)
		}
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if silent := u.Again(short); silent != "no answer to tools/list yet" {
			t.Errorf("got %q", silent)
		}
		go u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{}`))}) // ends with u
		synctest.Wait()
		if silent := u.Again(context.Background()); silent != "" {
			t.Errorf("a busy server: %q", silent)
		}
	})
}

// TestAgain_Unavailable: a server that could not be connected is tried at once.
func TestAgain_Unavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec, logs := inProcess(t, mcptest.Spec{NeverInit: true})
		spec.Timeouts.Connect = time.Second
		u := connect(t, spec)
		time.Sleep(time.Hour) // the pause between two attempts is a minute
		// After the next attempt has ended, none is running: Again would wait for its end.
		time.Sleep(time.Until(u.Status().RetryAfter) + 5*time.Second)
		starts := logs.starts()
		began := time.Now()
		u.Again(context.Background())
		if took := time.Since(began); logs.starts() != starts+1 || took > 5*time.Second || u.Status().State != catalog.Unavailable {
			t.Errorf("%d starts after %d, in %v: %s", logs.starts(), starts, took, u.Status().State)
		}
	})
}
