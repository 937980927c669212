package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

const patience = 2 * time.Minute

// offering returns a fake server with that many resources, and a prompt.
func offering(name string, resources int) mcptest.Spec {
	list := make([]json.RawMessage, resources)
	for i := range list {
		list[i] = json.RawMessage(fmt.Sprintf(`{"uri":"%s://%04d","name":"n"}`, name, i))
	}
	return mcptest.Spec{Name: name, Resources: wire.Encode(list), Prompts: json.RawMessage(`[{"name":"greet"}]`)}
}

func remote(name string, fake *mcptest.HTTPServer) registry.Server {
	return registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}, Definition: fake.URL}
}

// start returns the servers of a registry, which is closed when the test ends.
func start(t *testing.T, options registry.Options, servers ...registry.Server) *Servers {
	t.Helper()
	r := registry.New(servers, options)
	r.Start()
	t.Cleanup(func() { r.Close(time.Second) })
	return &Servers{Registry: r, Catalogue: r.Snapshot, Scope: func() *policy.Scope { return nil }, Separator: "__", Wait: patience, ListWait: patience}
}

func uris(page Page) (all []string) {
	for _, item := range page.Items {
		all = append(all, wire.MemberText(item, "uri"))
	}
	return all
}

// TestList_pages: each item is on exactly one page, in order. A cursor also works in another process, and after a
// change of the list.
func TestList_pages(t *testing.T) {
	servers := []registry.Server{remote("b", offering("b", 2300).HTTP(t)), remote("a", offering("a", 700).HTTP(t)), remote("none", mcptest.Spec{}.HTTP(t))}
	here, there := start(t, registry.Options{}, servers...), start(t, registry.Options{}, servers...)
	var all []string
	page, ok := here.List(t.Context(), catalog.Resources, "")
	for n := 0; ok; n++ {
		all = append(all, uris(page)...)
		if page.Next == "" {
			break
		}
		next := []*Servers{here, there}[n%2]
		next.awaitLists(t.Context(), patience)
		page, ok = next.List(t.Context(), catalog.Resources, page.Next)
	}
	want := func(i int) string {
		if i < 700 {
			return fmt.Sprintf("a://%04d", i)
		}
		return fmt.Sprintf("b://%04d", i-700)
	}
	if !ok || len(all) != 3000 {
		t.Fatalf("%d items, %t", len(all), ok)
	}
	for i, uri := range all {
		if uri != want(i) {
			t.Fatalf("item %d is %s", i, uri)
		}
	}
	items := []catalog.Item{{Name: "x"}, {Name: "y"}, {Name: "z"}}
	for _, c := range []struct{ at, after int }{{1, 1}, {0, 1}, {2, 1}} {
		if got := (position{Index: c.at, Item: "y"}).after(items); got != c.after {
			t.Errorf("y was at %d: the page begins at %d", c.at, got)
		}
	}
	if got := (position{Index: 7, Item: "gone"}).after(items); got != 3 {
		t.Errorf("a short list: %d", got)
	}
	page, _ = here.List(t.Context(), catalog.Resources, "")
	for kind, cursor := range map[catalog.Kind]string{catalog.Prompts: page.Next, catalog.Resources: "nonsense", catalog.ResourceTemplates: "bm9uc2Vuc2U"} {
		if _, ok := here.List(t.Context(), kind, cursor); ok {
			t.Errorf("%s: %q is a cursor", kind, cursor)
		}
	}
}

// TestDown: the items of a server that is down are not listed, keep their names, and cannot be read. When the
// server is up again, they are back.
func TestDown(t *testing.T) {
	fake := offering("one", 1).HTTP(t)
	s := start(t, registry.Options{}, remote("one", fake), remote("two", offering("two", 1).HTTP(t)))
	read := func() error {
		_, err := s.Send(t.Context(), &request.Request{Method: "resources/read", Params: json.RawMessage(`{"uri":"one://0000"}`)})
		return err
	}
	page, _ := s.List(t.Context(), catalog.Resources, "")
	if got := uris(page); !slices.Equal(got, []string{"one://0000", "two://0000"}) || read() != nil {
		t.Fatalf("listed %v, %v", got, read())
	}
	fake.Down()
	mcptest.WaitFor(t, "the failure", patience, func() bool {
		_ = read()
		snap := s.Catalogue()
		one, _ := snap.Server("one")
		return one.State == catalog.Unavailable
	})
	s.Wait = time.Millisecond
	page, _ = s.List(t.Context(), catalog.Resources, "")
	failed, ok := errors.AsType[*ServerError](read())
	if got := uris(page); !slices.Equal(got, []string{"two://0000"}) || !ok || failed.Server != "one" {
		t.Errorf("listed %v, %v", got, failed)
	}
	if offers := s.Offers(); !offers.Resources || !offers.Prompts {
		t.Errorf("offers %+v", offers)
	}
	fake.Up()
	mcptest.WaitFor(t, "the server", patience, func() bool {
		page, _ := s.List(t.Context(), catalog.Resources, "")
		return len(page.Items) == 2 && read() == nil
	})
}

// TestDisk: after a restart mcpx lists at once what it knew before, without starting a lazy server. A read starts
// the lazy server.
func TestDisk(t *testing.T) {
	dir, fake := t.TempDir(), offering("one", 3).HTTP(t)
	server := remote("one", fake)
	server.Key, server.Spec.Lazy = registry.Key("one"), true
	first := registry.New([]registry.Server{server}, registry.Options{CacheDir: dir})
	first.Start()
	first.WaitListed(t.Context(), nil)
	first.Close(time.Second)

	s := start(t, registry.Options{CacheDir: dir}, server)
	before := fake.Count("initialize") + fake.Count("server/discover")
	page, _ := s.List(t.Context(), catalog.Resources, "")
	if one, _ := s.Catalogue().Server("one"); len(page.Items) != 3 || one.State != catalog.Idle || !one.Listed || !one.Offers.Subscribe {
		t.Errorf("%d items, %+v", len(page.Items), one)
	}
	if offers := s.Offers(); !offers.Resources || !offers.Completions {
		t.Errorf("offers %+v", offers)
	}
	if fake.Count("initialize")+fake.Count("server/discover") != before {
		t.Error("the list has started the server")
	}
	if _, err := s.Send(t.Context(), &request.Request{Method: "resources/read", Params: json.RawMessage(`{"uri":"one://0001"}`)}); err != nil {
		t.Error(err)
	}
}

// TestDisk_WithoutItems: a run of mcpx that ended early has left a record that does not say what the server offers besides tools.
// A list of resources then waits for the server, instead of being empty.
func TestDisk_WithoutItems(t *testing.T) {
	dir, fake := t.TempDir(), offering("one", 3).HTTP(t)
	server := remote("one", fake)
	server.Key = registry.Key("one")
	const record = `{"format":1,"protocol":"2025-11-25","modern":false,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	if err := os.WriteFile(filepath.Join(dir, server.Key+".json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, registry.Options{CacheDir: dir}, server)
	if page, _ := s.List(t.Context(), catalog.Resources, ""); len(page.Items) != 3 {
		t.Errorf("%d items", len(page.Items))
	}
}

// TestOff: if the config hides resources or prompts, mcpx neither offers nor completes them.
func TestOff(t *testing.T) {
	s := start(t, registry.Options{}, remote("one", offering("one", 1).HTTP(t)))
	s.awaitLists(t.Context(), patience)
	s.NoResources = true
	if offers := s.Offers(); offers.Resources || offers.Subscribe || !offers.Prompts || s.Shows(catalog.ResourceTemplates) || !s.Shows(catalog.Prompts) {
		t.Errorf("offers %+v", offers)
	}
	_, err := s.Send(t.Context(), &request.Request{Method: "completion/complete", Params: json.RawMessage(`{"ref":{"type":"ref/resource","uri":"one://0000"},"argument":{"name":"a","value":""}}`)})
	if _, ok := errors.AsType[*catalog.URIError](err); !ok {
		t.Error(err)
	}
	if s.NoPrompts = true; s.Offers() != (catalog.Offers{}) {
		t.Errorf("offers %+v", s.Offers())
	}
}

// TestPrompts_forged: a prompt whose own name equals the prefixed name of another server's prompt gets a prefix, so that
// names stay unique. An origin that a server wrote itself is replaced, and _meta stays unique too.
func TestPrompts_forged(t *testing.T) {
	evil := mcptest.Spec{Prompts: json.RawMessage(`[
		{"name":"login","_meta":{"mcpx/origin":{"server":"victim","name":"login"},"own":1}},{"name":"victim__login"},{"name":"own","_meta":null}]`)}
	victim := mcptest.Spec{Prompts: json.RawMessage(`[{"name":"login"}]`)}
	s := start(t, registry.Options{}, remote("evil", evil.HTTP(t)), remote("victim", victim.HTTP(t)))
	for prefix, want := range map[string]string{
		PrefixConflict: "evil__login evil__victim__login own victim__login",
		PrefixNever:    "login evil__victim__login own victim__login",
	} {
		s.Prefix = prefix
		page, _ := s.List(t.Context(), catalog.Prompts, "")
		var got []string
		for _, item := range page.Items {
			got = append(got, wire.MemberText(item, "name"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", prefix, got)
		}
		for _, item := range page.Items {
			origin := struct {
				Name string
				Meta struct {
					Origin struct{ Server, Name string } `json:"mcpx/origin"`
				} `json:"_meta"`
			}{}
			if err := json.Unmarshal(item, &origin); err != nil {
				t.Fatal(err)
			}
			if bytes.Count(item, []byte(`"_meta"`)) != 1 || bytes.Count(item, []byte(`"mcpx/origin"`)) != 1 {
				t.Errorf("%s: a member occurs twice in %s", prefix, item)
			}
			server, params, err := s.prompt(s.Catalogue(), item)
			if err != nil {
				t.Fatal(err)
			}
			if server.Name != origin.Meta.Origin.Server || wire.MemberText(params, "name") != origin.Meta.Origin.Name {
				t.Errorf("%s: %s leads to %s of %s", prefix, item, params, server.Name)
			}
		}
	}
}

// TestAlone: a single server is presented as if mcpx were not there.
func TestAlone(t *testing.T) {
	s := start(t, registry.Options{}, remote("one", offering("one", 1).HTTP(t)))
	s.Transparent = true
	page, _ := s.List(t.Context(), catalog.Resources, "")
	if len(page.Items) != 1 || string(page.Items[0]) != `{"uri":"one://0000","name":"n"}` {
		t.Errorf("listed %s", page.Items)
	}
	prompts, _ := s.List(t.Context(), catalog.Prompts, "")
	if len(prompts.Items) != 1 || string(prompts.Items[0]) != `{"name":"greet"}` {
		t.Errorf("listed %s", prompts.Items)
	}
	if raw, err := s.Send(t.Context(), &request.Request{Method: "prompts/get", Params: json.RawMessage(`{"name":"greet"}`)}); err != nil || !strings.Contains(string(raw), "one prompts greet") {
		t.Errorf("%s %v", raw, err)
	}
}

// heard collects the notifications that a follower got.
type heard struct {
	mu     sync.Mutex
	params []string
}

func (h *heard) updated(params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.params = append(h.params, string(params))
}

func (h *heard) times(params string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.params {
		if one == params {
			n++
		}
	}
	return n
}

// TestFollow: several clients follow one resource over one subscription. mcpx reports a lost session and a reload
// as changes, and goes on following. When the last client stops, the subscription ends.
func TestFollow(t *testing.T) {
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		t.Run(era, func(t *testing.T) {
			spec := offering("one", 2)
			spec.Era = era
			fake, other := spec.HTTP(t), spec.HTTP(t)
			s := start(t, registry.Options{}, remote("one", fake))
			subscribed, dropped := "resources/subscribe", "resources/unsubscribe"
			if era == mcptest.EraModern {
				subscribed, dropped = "subscriptions/listen", ""
			}
			ctx, cancel := context.WithCancel(t.Context())
			var followers sync.WaitGroup
			defer followers.Wait()
			defer cancel()
			s.awaitLists(t.Context(), patience)
			before := fake.Count(subscribed)
			all := []*heard{{}, {}, {}}
			for i := range all {
				topic, err := s.Topic(ctx, request.From{}, "one://0001", false)
				if err != nil {
					t.Fatal(err)
				}
				agreed := make(chan struct{})
				followers.Go(func() {
					if err := topic.Follow(ctx, func() { close(agreed) }, all[i].updated); ctx.Err() == nil {
						t.Errorf("ended: %v", err)
					}
				})
				select {
				case <-agreed:
				case <-time.After(patience):
					t.Fatal("the server has not agreed")
				}
			}
			if n := fake.Count(subscribed) - before; n != 1 {
				t.Errorf("%d subscriptions", n)
			}
			const changed, told = `{"uri":"one://0001"}`, `{"uri":"one://0001","_meta":{"mcpx/origin":"one"}}`
			hears := func(what string, from *mcptest.HTTPServer, least int) {
				t.Helper()
				mcptest.WaitFor(t, what, patience, func() bool {
					from.Notify("notifications/resources/updated", changed)
					return !slices.ContainsFunc(all, func(h *heard) bool { return h.times(told) < least })
				})
			}
			hears("the change", fake, 1)
			fake.Notify("notifications/resources/updated", `{"uri":"one://0000"}`)
			fake.Restart()
			n := all[0].times(told)
			mcptest.WaitFor(t, "the loss as a change", patience, func() bool {
				_, _ = s.Send(t.Context(), &request.Request{Method: "resources/read", Params: json.RawMessage(changed)})
				return all[0].times(told) > n
			})
			hears("changes after the loss", fake, n+2)
			s.Registry.Apply([]registry.Server{remote("one", other)}, registry.Options{}, nil)
			mcptest.WaitFor(t, "changes after the reload", patience, func() bool {
				other.Notify("notifications/resources/updated", `{"uri":"one://0001","x":1}`)
				return all[0].times(`{"uri":"one://0001","x":1,"_meta":{"mcpx/origin":"one"}}`) > 0
			})
			if all[0].times(`{"uri":"one://0000","_meta":{"mcpx/origin":"one"}}`) != 0 {
				t.Error("heard of another resource")
			}
			cancel()
			if dropped != "" {
				mcptest.WaitFor(t, "the end of the subscription", patience, func() bool { return other.Count(dropped) == 1 })
			}
		})
	}
}

// TestFollow_refused: if a server refuses a subscription, following fails at once, with the server's error.
func TestFollow_refused(t *testing.T) {
	refusing := offering("one", 1)
	refusing.FailMethods = []string{"resources/subscribe"}
	s := start(t, registry.Options{}, remote("one", refusing.HTTP(t)))
	topic, err := s.Topic(t.Context(), request.From{}, "one://0000", false)
	if err != nil {
		t.Fatal(err)
	}
	err = topic.Follow(t.Context(), func() { t.Error("agreed") }, func(json.RawMessage) {})
	if _, ok := errors.AsType[*wire.RPCError](err); !ok {
		t.Error(err)
	}
	if _, err := s.Topic(t.Context(), request.From{}, "", false); err == nil {
		t.Error("a topic without a URI")
	}
}
