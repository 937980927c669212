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

// person is a client over HTTP who answers every question with its name.
func person(name, version string) *caller.Client {
	client := caller.New(caller.Place{ID: name, Notify: func(string, json.RawMessage) {}}, caller.Said{
		Name: name, Version: version, Capabilities: json.RawMessage(`{"elicitation":{}}`),
	})
	return client.Asked(func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"word":"` + name + `"}}`), nil
	})
}

// eraServers are one fake over HTTP and one as a process.
func eraServers(t *testing.T, fake mcptest.Spec, perClient bool) []Server {
	web := Server{Spec: over(transport.HTTP, "web", fake.HTTP(t).URL), Definition: "web", PerClient: perClient}
	process := child(t, "process", fake)
	process.Key, process.PerClient = "", perClient
	return []Server{web, process}
}

// A tool that asks works for clients of both eras where they share a server that speaks both, whichever way the tool
// asks: three clients at once, and again after the server was started anew.
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
				all := []*caller.Client{person("ada", mcptest.LegacyVersion), person("bob", mcptest.LegacyVersion)}
				if way != mcptest.EraLegacy { // else a modern client cannot be asked directly either
					all = append(all, person("eve", mcptest.ModernVersion))
				}
				var asking sync.WaitGroup
				for _, who := range all {
					ask(who)
					if server.Spec.Type == transport.HTTP { // a process that asks on its only stream is for one client at a time
						asking.Go(func() { ask(who) })
					}
				}
				asking.Wait()
				if got, err := call(r, server.Spec.Name, nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
					t.Errorf("nobody in particular: %q, %v", got, err)
				}
				// The sessions of the legacy era are closed with the server, and opened by the next call.
				again := server
				again.Definition += "2"
				r.Apply([]Server{again}, Options{ManyClients: true}, nil)
				ask(all[0])
			})
		}
	}
}

// A server that speaks the modern era alone is asked for the other once, and works for legacy clients as before.
func TestEras_ModernAlone(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, server := range eraServers(t, mcptest.Spec{Era: mcptest.EraModern}, false) {
		r := start(t, Options{ManyClients: true}, server)
		for range 3 {
			for _, who := range []*caller.Client{person("ada", mcptest.LegacyVersion), person("bob", mcptest.LegacyVersion)} {
				if got, err := call(r, server.Spec.Name, who, "ask", `{}`); err != nil || !strings.Contains(got, `"word":"`+who.Name+`"`) {
					t.Errorf("%s: %q, %v", who.Name, got, err)
				}
			}
		}
	}
}

// What a server offers in one era alone is offered to the clients that it works for, and to no others: on a shared session
// to all, as mcpx passes it on; with a session for each client to those of the era.
func TestEras_Offers(t *testing.T) {
	mcptest.NoLeaks(t)
	resources := json.RawMessage(`[{"uri":"one://1","name":"one"}]`)
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		for _, perClient := range []bool{false, true} {
			for _, server := range eraServers(t, mcptest.Spec{Era: mcptest.EraBoth, SubscribeEra: era, Resources: resources}, perClient) {
				t.Run(fmt.Sprintf("%s %s per client %t", era, server.Spec.Name, perClient), func(t *testing.T) {
					r := start(t, Options{ManyClients: true}, server)
					clients := map[string]*caller.Client{
						mcptest.EraLegacy: person("ada", mcptest.LegacyVersion), mcptest.EraModern: person("bob", mcptest.ModernVersion),
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

// subscribes tries a subscription and ends it.
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

// What a server offers in one era is not what the next mcpx tells a client of the other one, before the server answers.
func TestEras_OffersOnDisk(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraBoth, SubscribeEra: mcptest.EraLegacy, Resources: json.RawMessage(`[{"uri":"one://1","name":"one"}]`)}
	server := Server{Spec: over(transport.HTTP, "web", fake.HTTP(t).URL), Key: Key("web")}
	options := Options{CacheDir: t.TempDir()}
	ada, bob := person("ada", mcptest.LegacyVersion), person("bob", mcptest.ModernVersion)
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

// A legacy client that can be asked hears of the changes that its own calls make, also where they reach another process than
// those of other clients.
func TestEras_Updates(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraBoth, Resources: json.RawMessage(`[{"uri":"one://1","name":"one"}]`)}
	for _, server := range eraServers(t, fake, false) {
		r := start(t, Options{ManyClients: true}, server)
		tried(t, r)
		for _, who := range []*caller.Client{person("ada", mcptest.LegacyVersion), person("bob", mcptest.LegacyVersion), person("eve", mcptest.ModernVersion)} {
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
			mcptest.WaitFor(t, who.Name+" hears of the change at "+server.Spec.Name, patience, func() bool { // its stream may open later
				if _, err := call(r, server.Spec.Name, who, "notify", `{"method":"notifications/resources/updated","params":{"uri":"one://1"}}`); err != nil {
					t.Error(err)
				}
				return len(heard) > 0
			})
		}
	}
}

// A notification that mcpx does not know goes over the session that the requests of its client use: with a server that
// speaks both eras, not over the shared one. Another client's session does not get it.
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
		all := []*caller.Client{person("ada", mcptest.LegacyVersion), person("bob", mcptest.LegacyVersion), person("eve", mcptest.ModernVersion)}
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
