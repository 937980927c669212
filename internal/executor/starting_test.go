package executor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// TestStarting: ten servers have commands that install for 40 s each, at most three at a time. Several clients call one of the
// last servers. It becomes the next to install, and the calls wait for it longer than exec_wait, with progress.
func TestStarting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var servers []registry.Server
		for i := range 10 {
			s := piped(t, fmt.Sprint("s", i), mcptest.Spec{InstallFor: 40 * time.Second, InstallEvery: time.Second})
			s.Spec.Launch.Command = "npx"
			servers = append(servers, s)
		}
		silent := piped(t, "silent", mcptest.Spec{InstallFor: -1}) // has no command that could install
		r := registry.New(append(servers, silent), registry.Options{})
		r.Start()
		t.Cleanup(func() { r.Close(0) })
		e := chained(r, Options{ExecWait: 20 * time.Second, Servers: map[string]ServerOptions{"s8": {CallTimeout: 30 * time.Second}}})
		hasty := chained(r, Options{ExecWait: time.Nanosecond}) // exec_wait = 0
		bound := chained(r, Options{ExecWait: 5 * time.Second, ExecWaitSet: true})
		time.Sleep(time.Second)
		began := time.Now()
		var all sync.WaitGroup
		calls := func(name string, e *Executor, r Request, after time.Duration, want string) {
			all.Go(func() {
				var told []string
				r.Client = &caller.Client{ID: name, Principal: &caller.Principal{ID: name}}
				r.Tool, r.Arguments = "echo", json.RawMessage(`{"text":"here"}`)
				last := 0.0
				r.Sink.Progress = func(params json.RawMessage) {
					var p struct {
						Progress float64
						Message  string
					}
					if err := json.Unmarshal(params, &p); err != nil || p.Progress <= last || p.Progress >= 1 {
						t.Errorf("%s: progress %s after %v: %v", name, params, last, err)
					}
					last = p.Progress
					told = append(told, p.Message)
				}
				got := said(t, exec(t, e, r))
				took := time.Since(began)
				if !strings.HasPrefix(got, want) || took < after-2*time.Second || took > after+3*time.Second {
					t.Errorf("%s: got %q after %v, want %q after %v", name, got, took, want, after)
				}
				text := strings.Join(told, "\n")
				if after > 70*time.Second && (!strings.Contains(text, r.Server+" waits for other installs\n") || !strings.Contains(text, r.Server+" npx installs it")) {
					t.Errorf("%s: was told %q", name, told)
				}
			})
		}
		calls("one", e, Request{Server: "s9"}, 79*time.Second, "here")
		calls("two", e, Request{Server: "s9"}, 79*time.Second, "here")
		calls("one that does not wait so long", e, Request{Server: "s9", Format: results.Format{Wait: 50 * time.Second}}, 50*time.Second, "[still running after 50 s; do not repeat the call")
		calls("one with a deadline", e, Request{Server: "s8"}, 30*time.Second, `SERVER_UNAVAILABLE: server "s8" is connecting`)
		calls("one without a command", e, Request{Server: "silent"}, 20*time.Second, `SERVER_UNAVAILABLE: server "silent" is connecting`)
		calls("one that does not wait", hasty, Request{Server: "s9"}, 0, `SERVER_UNAVAILABLE: server "s9" is connecting`)
		calls("one that waits as long as the config says", bound, Request{Server: "s9"}, 5*time.Second, `SERVER_UNAVAILABLE: server "s9" is connecting`)
		all.Wait()
		e.Close()
		if _, _, failure := e.FindServer(t.Context(), Request{Server: "silent", Catalogue: e.Catalogue(nil)}); failure == nil || time.Since(began) > 105*time.Second {
			t.Errorf("inspect: %v after %v, want a failure after exec_wait", failure, time.Since(began))
		}
	})
}

// TestStarting_Kept: a replica whose server is still starting waits for it before it shows a result that another replica has kept,
// because it does not know yet whether the caller may call the tool.
func TestStarting_Kept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		options := Options{Results: results.InMemory(0), ResultTokens: 500, ExecWait: 20 * time.Second}
		cut := said(t, exec(t, executing(t, options, nil, piped(t, "s", mcptest.Spec{})), Request{Server: "s", Tool: "table", Arguments: json.RawMessage(`{"rows":900}`)}))
		handle := regexp.MustCompile(`"handle":"([a-z0-9]+)"`).FindStringSubmatch(cut)
		if handle == nil {
			t.Fatalf("no handle: %s", cut)
		}
		r := registry.New([]registry.Server{piped(t, "s", mcptest.Spec{InitDelay: 5 * time.Second})}, registry.Options{})
		r.Start()
		t.Cleanup(func() { r.Close(0) })
		began := time.Now()
		got := said(t, exec(t, chained(r, options), Request{Server: "mcpx", Tool: "read_result", Arguments: json.RawMessage(`{"handle":"` + handle[1] + `","offset":899}`)}))
		if took := time.Since(began); !strings.Contains(got, "row 899") || took < 5*time.Second || took > 10*time.Second {
			t.Errorf("after %v: %s", took, got)
		}
	})
}

// TestStarting_Again: a call waits longer than exec_wait for the command of a server also if the tools of the server are known from
// an earlier start, or if the server is being restarted. If the start fails, the call gets the reason immediately.
func TestStarting_Again(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		server := func(fake mcptest.Spec) registry.Server {
			s := piped(t, "s", fake)
			s.Spec.Launch.Command, s.Key = "npx", "key"
			return s
		}
		first := registry.New([]registry.Server{server(mcptest.Spec{})}, registry.Options{CacheDir: dir})
		first.Start()
		first.WaitTried(t.Context())
		first.Close(0)
		for _, tt := range []struct {
			fake  mcptest.Spec
			after time.Duration
			want  string
		}{
			{mcptest.Spec{InstallFor: time.Minute, InstallEvery: time.Second}, time.Minute, "here"},
			{mcptest.Spec{InstallFor: -1}, 30 * time.Second, `SERVER_UNAVAILABLE: server "s" is unavailable: nothing has moved for 30s`},
		} {
			r := registry.New([]registry.Server{server(tt.fake)}, registry.Options{CacheDir: dir})
			r.Start()
			e, began := chained(r, Options{ExecWait: 20 * time.Second}), time.Now()
			got := said(t, exec(t, e, Request{Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":"here"}`)}))
			if took := time.Since(began); !strings.HasPrefix(got, tt.want) || took < tt.after-3*time.Second || took > tt.after+3*time.Second {
				t.Errorf("got %q after %v, want %q after %v", got, took, tt.want, tt.after)
			}
			r.Close(0)
		}
	})
}
