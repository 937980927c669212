package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// agent returns a client over HTTP that answers every question with its name.
func agent(name, version string) *caller.Client {
	client := caller.New(caller.Place{ID: name, Notify: func(string, json.RawMessage) {}}, caller.Said{
		Name: name, Version: version, Capabilities: json.RawMessage(`{"elicitation":{}}`),
	})
	return client.Asked(func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"word":"` + name + `"}}`), nil
	})
}

// eraServers returns the fake twice: as a server over HTTP and as a process, both without a cache.
func eraServers(t *testing.T, fake mcptest.Spec, perClient bool) []Server {
	web := Server{Spec: over(transport.HTTP, "web", fake.HTTP(t).URL), Definition: "web", PerClient: perClient}
	process := child(t, "process", fake)
	process.Key, process.PerClient = "", perClient
	return []Server{web, process}
}

// TestEras_Questions: a server speaks both eras and is shared by clients of both eras. A tool that asks the user works for all
// of them, whichever way it asks, also with three clients at the same time and after a restart of the server.
func TestEras_Questions(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, way := range []string{mcptest.EraLegacy, mcptest.EraModern, ""} {
		for _, server := range eraServers(t, mcptest.Spec{Era: mcptest.EraBoth, AskEra: way}, false) {
			t.Run(strings.TrimSpace(way+" "+server.Spec.Name), func(t *testing.T) {
				r := start(t, Options{ManyClients: true}, server)
				ask := func(who *caller.Client) {
					got, err := call(r, server.Spec.Name, who, "ask", `{}`)
					if err != nil || !strings.Contains(got, `"word":"`+who.Name+`"`) {
						t.Errorf("%s, %s: %q, %v", who.Name, who.Version, got, err)
					}
				}
				all := []*caller.Client{agent("ada", mcptest.LegacyVersion), agent("bob", mcptest.LegacyVersion)}
				if way != mcptest.EraLegacy { // with the legacy way, a modern client could not be asked without mcpx either
					all = append(all, agent("eve", mcptest.ModernVersion))
				}
				var asking sync.WaitGroup
				for _, who := range all {
					ask(who)
					if server.Spec.Type == transport.HTTP { // a process that asks over its only stream can serve one client at a time
						asking.Go(func() { ask(who) })
					}
				}
				asking.Wait()
				if got, err := call(r, server.Spec.Name, nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
					t.Errorf("nobody in particular: %q, %v", got, err)
				}
				// The sessions of the legacy era end with the server; the next call opens them again.
				again := server
				again.Definition += "2"
				r.Apply([]Server{again}, Options{ManyClients: true}, nil)
				ask(all[0])
			})
		}
	}
}

// TestEras_ModernAlone: if a server speaks only the modern era, legacy clients can use it, also its questions.
func TestEras_ModernAlone(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, server := range eraServers(t, mcptest.Spec{Era: mcptest.EraModern}, false) {
		r := start(t, Options{ManyClients: true}, server)
		for range 3 {
			for _, who := range []*caller.Client{agent("ada", mcptest.LegacyVersion), agent("bob", mcptest.LegacyVersion)} {
				if got, err := call(r, server.Spec.Name, who, "ask", `{}`); err != nil || !strings.Contains(got, `"word":"`+who.Name+`"`) {
					t.Errorf("%s: %q, %v", who.Name, got, err)
				}
			}
		}
	}
}

// TestEras_Offers: if a server offers something only in one era, mcpx offers it to the clients for which it works: over a
// shared session to all clients, because mcpx translates; with a session per client only to the clients of that era.
func TestEras_Offers(t *testing.T) {
	mcptest.NoLeaks(t)
	resources := json.RawMessage(`[{"uri":"one://1","name":"one"}]`)
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		for _, perClient := range []bool{false, true} {
			for _, server := range eraServers(t, mcptest.Spec{Era: mcptest.EraBoth, SubscribeEra: era, Resources: resources}, perClient) {
				t.Run(fmt.Sprintf("%s %s per client %t", era, server.Spec.Name, perClient), func(t *testing.T) {
					r := start(t, Options{ManyClients: true}, server)
					clients := map[string]*caller.Client{
						mcptest.EraLegacy: agent("ada", mcptest.LegacyVersion), mcptest.EraModern: agent("bob", mcptest.ModernVersion),
					}
					for of, who := range clients {
						want := !perClient || of == era
						offered := func() bool {
							server, _ := r.SnapshotOf(who).Server(server.Spec.Name)
							return server.Listed && server.Offers.Subscribe
						}
						if want {
							mcptest.WaitFor(t, "the offer", patience, offered)
						} else {
							mcptest.WaitFor(t, "the offer to end", patience, func() bool {
								server, _ := r.SnapshotOf(who).Server(server.Spec.Name)
								return server.Listed && !offered()
							})
						}
						if !want {
							continue
						}
						if err := subscribes(t, r, server.Spec.Name, who); err != nil || !offered() {
							t.Errorf("a client of the %s era: %v, then offered %t", of, err, offered())
						}
					}
				})
			}
		}
	}
}

// subscribes begins a subscription, ends it, and returns the error.
func subscribes(t *testing.T, r *Registry, name string, who *caller.Client) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, _ := r.SnapshotOf(who).Server(name)
	subscription := &request.Subscription{Updated: func(json.RawMessage) {}}
	_, err := r.Send(ctx, &request.Request{
		From: request.From{Client: who}, To: server, Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"one://1"}`),
		Subscription: subscription, Times: request.Times{Wait: 10 * time.Second},
	})
	return err
}

// TestEras_OffersOnDisk: the cache on disk has what a server offers in one era. After a restart, mcpx does not offer that to a
// client of the other era.
func TestEras_OffersOnDisk(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraBoth, SubscribeEra: mcptest.EraLegacy, Resources: json.RawMessage(`[{"uri":"one://1","name":"one"}]`)}
	server := Server{Spec: over(transport.HTTP, "web", fake.HTTP(t).URL), Key: Key("web")}
	options := Options{CacheDir: t.TempDir()}
	ada, bob := agent("ada", mcptest.LegacyVersion), agent("bob", mcptest.ModernVersion)
	for i, who := range []*caller.Client{bob, ada, bob, ada} {
		r := New([]Server{server}, options)
		for client, want := range map[*caller.Client]bool{ada: true, bob: false} {
			if one, _ := r.SnapshotOf(client).Server("web"); i > 1 && (!one.Listed || one.Offers.Subscribe != want) {
				t.Errorf("start %d: %s is offered %+v", i, client.Name, one.Offers)
			}
		}
		r.Own(who)
		r.Start()
		tried(t, r)
		mcptest.WaitFor(t, "the offer", patience, func() bool {
			one, _ := r.SnapshotOf(who).Server("web")
			status, _ := r.Status("web")
			return status.Listed && one.Offers.Subscribe == (who == ada)
		})
		r.Close(0)
	}
}

// TestEras_Updates: a client gets the updates of resources that its own calls change, even if it is a legacy client whose calls
// go to another process than the calls of other clients.
func TestEras_Updates(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraBoth, Resources: json.RawMessage(`[{"uri":"one://1","name":"one"}]`)}
	for _, server := range eraServers(t, fake, false) {
		r := start(t, Options{ManyClients: true}, server)
		tried(t, r)
		for _, who := range []*caller.Client{agent("ada", mcptest.LegacyVersion), agent("bob", mcptest.LegacyVersion), agent("eve", mcptest.ModernVersion)} {
			heard := make(chan struct{}, 1)
			to, _ := r.SnapshotOf(who).Server(server.Spec.Name)
			_, err := r.Send(t.Context(), &request.Request{
				From: request.From{Client: who}, To: to, Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"one://1"}`),
				Subscription: &request.Subscription{Updated: func(json.RawMessage) {
					select {
					case heard <- struct{}{}:
					default:
					}
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			// the client's stream may open later
			mcptest.WaitFor(t, who.Name+" hears of the change at "+server.Spec.Name, patience, func() bool {
				if _, err := call(r, server.Spec.Name, who, "notify", `{"method":"notifications/resources/updated","params":{"uri":"one://1"}}`); err != nil {
					t.Error(err)
				}
				return len(heard) > 0
			})
		}
	}
}

// TestEras_Notifications: a notification that mcpx does not know is sent over the session that the client's requests use. If
// the server speaks both eras, that is not the shared session. Other clients' sessions do not get the notification.
func TestEras_Notifications(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, kind := range []string{transport.HTTP, transport.Stdio} {
		fake := mcptest.Spec{Era: mcptest.EraBoth}.WithFiles(t)
		var server Server
		if kind == transport.HTTP {
			server = Server{Spec: over(transport.HTTP, "one", fake.HTTP(t).URL), Definition: "one"}
		} else {
			server = child(t, "one", fake)
		}
		r := start(t, Options{ManyClients: true}, server)
		tried(t, r)
		all := []*caller.Client{agent("ada", mcptest.LegacyVersion), agent("bob", mcptest.LegacyVersion), agent("eve", mcptest.ModernVersion)}
		for _, who := range all {
			if _, err := call(r, "one", who, "ask", `{}`); err != nil {
				t.Error(err)
			}
		}
		to, _ := r.Snapshot().Server("one")
		method := "notifications/x-of-" + all[0].Name
		if _, err := r.Send(t.Context(), &request.Request{From: request.From{Client: all[0]}, To: to, Method: method, Notification: true}); err != nil {
			t.Error(err)
		}
		sent := func() mcptest.Log { return fake.Log(t).Method(method) }
		mcptest.WaitFor(t, "the notification over "+kind, patience, func() bool { return len(sent()) > 0 })
		if n := len(sent()); n != 1 {
			t.Errorf("%s: %d notifications", kind, n)
		}
		own := fake.Log(t).Calls("ask")[0]
		if got := sent()[0]; got.Session != own.Session || got.PID != own.PID {
			t.Errorf("%s: the notification came over %q in %d, the call over %q in %d", kind, got.Session, got.PID, own.Session, own.PID)
		}
	}
}
