package executor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/builtin"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// silent returns a server that never answers.
func silent(name string) registry.Server {
	s := registry.Server{}
	s.Spec.Name, s.Spec.Type = name, "in-process"
	s.Spec.Serve = func(ctx context.Context, in io.Reader, _ io.Writer) error {
		_, err := io.Copy(io.Discard, in)
		return errors.Join(err, ctx.Err())
	}
	return s
}

// TestExec_RightsOfTheServerThatAnswers: a call waits while its server is replaced by another one. The call is then checked
// against the rights and the schema of the new server, not of the old one.
func TestExec_RightsOfTheServerThatAnswers(t *testing.T) {
	tools := json.RawMessage(`[{"name":"look"},{"name":"drop","inputSchema":{"type":"object"}}]`)
	strict := json.RawMessage(`[{"name":"look"},{"name":"drop","inputSchema":{"type":"object","required":["really"]}}]`)
	for way, by := range ways {
		t.Run(way, func(t *testing.T) { rightsOfTheServerThatAnswers(t, tools, strict, by) })
	}
}

func rightsOfTheServerThatAnswers(t *testing.T, tools, strict json.RawMessage, by func(testing.TB, *Executor, Request) *results.Result) {
	for _, tt := range []struct {
		name  string
		known bool // the old server's tools are in the cache on disk
		rules catalog.Rules
		tools json.RawMessage
		want  string
	}{
		{"allowed", false, nil, tools, `{}`},
		{"hidden there", false, hiding(func(_ string, tool *catalog.Tool) bool { return tool.Name != "drop" }), tools, results.CodeToolNotFound},
		{"known, and hidden there", true, hiding(func(_ string, tool *catalog.Tool) bool { return tool.Name != "drop" }), tools, results.CodeToolNotFound},
		{"known, and another schema there", true, nil, strict, results.CodeValidation},
		{"known, and allowed", true, nil, tools, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			synctest.Test(t, func(t *testing.T) {
				folder := t.TempDir()
				if tt.known {
					before := piped(t, "one", mcptest.Spec{Tools: tools})
					before.Key = registry.Key("old")
					r := registry.New([]registry.Server{before}, registry.Options{CacheDir: folder})
					r.Start()
					r.WaitTried(t.Context())
					r.Close(0)
				}
				old := silent("one")
				old.Key = registry.Key("old")
				r := registry.New([]registry.Server{old}, registry.Options{CacheDir: folder})
				r.Start()
				e := chained(r, Options{ExecWait: time.Minute})
				seen := e.Catalogue(nil)
				if s, _ := seen.Server("one"); s.Known != tt.known {
					t.Fatalf("known: %v", s.Known)
				}
				done := make(chan string, 1)
				go func() { // ends with the call
					done <- said(t, by(t, e, Request{Catalogue: seen, Server: "one", Tool: "drop", Arguments: json.RawMessage(`{}`)}))
				}()
				synctest.Wait()
				next := piped(t, "one", mcptest.Spec{Tools: tt.tools})
				next.Definition = "another"
				r.Apply([]registry.Server{next}, registry.Options{CacheDir: folder, Rules: tt.rules}, nil)
				if got := <-done; !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				r.Close(0)
			})
		})
	}
}

// TestExec_ServerGone: a call waits for a server, and a reload removes the server. The call fails because the server is
// unknown.
func TestExec_ServerGone(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := registry.New([]registry.Server{silent("one")}, registry.Options{})
		r.Start()
		e := chained(r, Options{ExecWait: time.Minute})
		done := make(chan string, len(ways))
		for _, by := range ways {
			go func() { // ends with the call
				done <- said(t, by(t, e, Request{Server: "one", Tool: "t"}))
			}()
		}
		synctest.Wait()
		r.Apply(nil, registry.Options{}, nil)
		for range ways {
			if got := <-done; !strings.HasPrefix(got, results.CodeServerNotFound) {
				t.Errorf("got %s", got)
			}
		}
		r.Close(0)
	})
}

// TestExec_RightsWhileWaiting: a call waits for its turn while the caller's rights to the server are taken away. Nothing of it is
// sent, whether it is one call, one of several, or reads a resource.
func TestExec_RightsWhileWaiting(t *testing.T) {
	for name, waiting := range map[string]Request{
		"a call":        {Server: "one", Tool: "slow", Arguments: json.RawMessage(`{"ms":1}`)},
		"several calls": {Server: "one", Tool: "slow", Each: []json.RawMessage{json.RawMessage(`{"ms":1}`), json.RawMessage(`{"ms":2}`)}},
		"a resource":    {Server: builtin.Name, Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"test://one"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				server := piped(t, "one", mcptest.Spec{Resources: json.RawMessage(`[{"uri":"test://one","name":"one"}]`)})
				server.Spec.Concurrency.Max = 1
				e := executing(t, Options{}, nil, server)
				first := make(chan *results.Result, 1)
				go func() { // ends with its call
					first <- exec(t, e, as("alice", Request{Server: "one", Tool: "slow", Arguments: json.RawMessage(`{"ms":1000}`)}))
				}()
				synctest.Wait()
				second := make(chan *results.Result, 1)
				go func() { second <- exec(t, e, as("alice", waiting)) }() // ends with its call
				synctest.Wait()
				rights := policy.NewRights([]conf.Right{{Principals: []string{"bob"}}}, nil)
				e.registry.Apply([]registry.Server{server}, registry.Options{Rules: &policy.Rules{Rights: rights}}, nil)
				if got := <-first; got.IsError {
					t.Errorf("the call that its server had begun: %s", got.Content)
				}
				if got := <-second; !got.IsError {
					t.Errorf("the one that waited: %s", got.Content)
				}
			})
		})
	}
}
