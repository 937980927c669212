package app

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/catalog"
	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

// TestDial_Cluster: a server dials in to one replica. At another replica, nobody else can use its name, and a newer connection
// of its owner replaces it. An approval counts at all replicas, and all replicas notice when the server's list of tools changes.
func TestDial_Cluster(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	one := hosted(t, nil, `[{"principals":["alice","bob"]},{"principals":["carol"],"admin":true}]`, dialRules+clusterAt(n.URL, clusterKey))
	two := serving(t, one.cfg)
	first := one.device(t, "alice", "shared", "the first")
	two.await(t, "shared", 1)
	says := func(e *endpoint, what string) bool { return strings.Contains(e.whoami(t, "bob", "shared"), what) }
	if says(one, "I am") || says(two, "I am") {
		t.Error("it is not approved yet")
	}
	if status, answer, _ := two.visitor(t, "carol", modernEra, false).http(t, "POST", "/api/dialled/shared/approve", "", nil); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	for _, e := range []*endpoint{one, two} {
		mcptest.WaitFor(t, "the approval", dialPatience, func() bool { return says(e, "I am the first") })
		if _, err := e.dialIn(t, "bob", "shared", nil); err == nil || !strings.HasPrefix(err.Error(), "409 ") {
			t.Errorf("another's name: %v", err)
		}
	}
	second := two.device(t, "alice", "shared", "the second")
	if err := <-first.over; websocket.CloseStatus(err) != 4001 {
		t.Errorf("the older one: %v", err)
	}
	for _, e := range []*endpoint{one, two} {
		mcptest.WaitFor(t, "the second", dialPatience, func() bool { return says(e, "I am the second") })
	}
	second.more.Store(1)
	if err := second.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`); err != nil {
		t.Error(err)
	}
	for _, e := range []*endpoint{one, two} {
		mcptest.WaitFor(t, "the new tool", dialPatience, func() bool {
			s, _ := e.app.Registry.Snapshot().Server("shared")
			return len(s.Tools) == 2
		})
	}
	_ = second.conn.CloseNow()
	for _, e := range []*endpoint{one, two} {
		mcptest.WaitFor(t, "the state away", dialPatience, func() bool { return e.app.dialled.State("shared") == "away" })
	}
	if answer := one.whoami(t, "bob", "shared"); !strings.Contains(answer, "SERVER_UNAVAILABLE") {
		t.Errorf("away: %s", answer)
	}
	if !mcptest.Full {
		return
	}
	n.Kill()
	if _, err := one.dialIn(t, "alice", "shared", nil); err != nil {
		t.Errorf("without NATS: %v", err) // the hub accepts the connection, and then closes it with the reason to try again
	}
	n.Start()
	mcptest.WaitFor(t, "NATS is back", dialPatience, func() bool { return one.app.state.cluster.Connected() && two.app.state.cluster.Connected() })
	one.device(t, "alice", "shared", "the third")
	for _, e := range []*endpoint{one, two} {
		mcptest.WaitFor(t, "the third", dialPatience, func() bool { return says(e, "I am the third") })
	}
}

// TestDial_NewReplica: a replica that begins serves the servers that have dialled in to others from its first request on.
func TestDial_NewReplica(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	one := hosted(t, nil, `[{"principals":["alice"]}]`, dialRules+clusterAt(n.URL, clusterKey))
	one.device(t, "alice", "shared", "here")
	one.await(t, "shared", 1)
	two, err := New(Options{Config: one.cfg, Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if _, ok := two.Registry.Snapshot().Server("shared"); !ok {
		t.Error("a new replica does not know the server")
	}
}

// TestDial_Silent: a replica that was not heard of for a while keeps the connections of its servers. When it is heard of again, the other
// replicas use these servers again.
func TestDial_Silent(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	way := mcptest.NewProxy(t, n.URL)
	one := hosted(t, nil, `[{"principals":["alice"]}]`, dialRules+clusterAt(way.URL(n.URL), clusterKey))
	two := hosted(t, nil, `[{"principals":["alice"]}]`, dialRules+clusterAt(n.URL, clusterKey))
	one.device(t, "alice", "shared", "here")
	two.await(t, "shared", 1)
	way.Set(mcptest.ProxyRefuse)
	way.Cut()
	mcptest.WaitFor(t, "the state away", dialPatience, func() bool { return two.app.dialled.State("shared") == "away" })
	tries := way.Accepted()
	mcptest.WaitFor(t, "further tries to connect", dialPatience, func() bool {
		if state := two.app.dialled.State("shared"); state != "away" {
			t.Fatalf("the replica is still silent, and the server is %s", state)
		}
		return way.Accepted() >= tries+3
	})
	way.Set(mcptest.ProxyPass)
	mcptest.WaitFor(t, "the server", dialPatience, func() bool {
		s, _ := two.app.Registry.Snapshot().Server("shared")
		return two.app.dialled.State("shared") == "dialled in at another replica" && s.State == catalog.Ready
	})
}

// TestDial_RuleGone: if a rule for a name is removed, the name is free at once, at all replicas, or as soon as the replica can tell the
// others: another principal, whom the config allows, dials in under the name at another replica.
func TestDial_RuleGone(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	const people = `[{"principals":["alice","bob"]}]`
	const rule = `,"exec_wait":"1s","dial":{"allow":[{"principals":["%s"],"names":["shared"],"for":"all"}]}`
	way := mcptest.NewProxy(t, n.URL)
	one := hosted(t, nil, people, fmt.Sprintf(rule, "alice")+clusterAt(way.URL(n.URL), clusterKey))
	two := hosted(t, nil, people, fmt.Sprintf(rule, "alice")+clusterAt(n.URL, clusterKey))
	one.device(t, "alice", "shared", "alice's")
	two.await(t, "shared", 1)
	way.Set(mcptest.ProxyRefuse)
	way.Cut()
	mcptest.WaitFor(t, "a replica without NATS", dialPatience, func() bool { return !one.app.state.cluster.Connected() })
	for e, at := range map[*endpoint]string{one: way.URL(n.URL), two: n.URL} {
		if err := e.app.reload(configOf(t, nil, people, fmt.Sprintf(rule, "bob")+clusterAt(at, clusterKey))); err != nil {
			t.Fatal(err)
		}
	}
	way.Set(mcptest.ProxyPass)
	mcptest.WaitFor(t, "the end of the record", dialPatience, func() bool {
		_, err := two.app.state.cluster.Records().Get("dial.shared")
		return err != nil
	})
	two.device(t, "bob", "shared", "bob's")
	one.await(t, "shared", 1)
}

// TestDial_Expired: records expire while NATS cannot be reached. If a server still has its connection then, its replica writes the record
// again. If it has none any more, the other replicas notice that, even if nobody could tell them.
func TestDial_Expired(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	const rules = `,"exec_wait":"1s","dial":{"allow":[{"names":["shared*"],"for":"all"}]}`
	one := hosted(t, nil, `[{"principals":["alice","bob"]}]`, rules+clusterAt(n.URL, clusterKey))
	two := serving(t, one.cfg)
	one.device(t, "alice", "shared", "the first")
	two.await(t, "shared", 1)
	records, states := two.app.state.cluster.Records(), two.app.dialled.State
	var live []byte
	ends := time.Now().Add(3 * time.Second)
	shorten := func(key string, value func(old []byte) []byte) {
		if err := records.Change(t.Context(), key, func(old []byte) ([]byte, time.Time, error) { return value(old), ends, nil }); err != nil {
			t.Fatal(err)
		}
	}
	shorten("dial.shared", func(old []byte) []byte {
		live = old
		return old
	})
	shorten("dial.shared-gone", func([]byte) []byte {
		return []byte(strings.ReplaceAll(string(live), `"shared"`, `"shared-gone"`))
	})
	mcptest.WaitFor(t, "the record of the server that is gone", dialPatience, func() bool {
		return states("shared-gone") == "dialled in at another replica"
	})
	mcptest.WaitFor(t, "its end", dialPatience, func() bool { return states("shared-gone") == "away" })
	mcptest.WaitFor(t, "another record of the server that is there", dialPatience, func() bool {
		_, err := records.Get("dial.shared")
		return err == nil && time.Now().After(ends) && states("shared") == "dialled in at another replica"
	})
}

// TestDial_RuleBack: the config of a replica has no rule for a server at another replica, or has a server of the same name. For so
// long the replica does not have the server, even if it dials in again. As soon as the config allows it again, the replica has it.
func TestDial_RuleBack(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	const people = `[{"principals":["alice"]}]`
	at := clusterAt(n.URL, clusterKey)
	one := hosted(t, nil, people, dialRules+at)
	two := serving(t, one.cfg)
	one.device(t, "alice", "shared", "the first")
	two.await(t, "shared", 1)
	for name, without := range map[string]*config.Config{
		"no-rule":        configOf(t, nil, people, `,"dial":{"allow":[{"names":["mine*"]}]}`+at),
		"no-rule-then":   configOf(t, nil, people, `,"dial":{"allow":[{"names":["mine*"]}]}`+at),
		"name-of-config": configOf(t, map[string]string{"shared": mcptest.Spec{}.HTTP(t).URL}, people, dialRules+at),
	} {
		if err := two.app.reload(without); err != nil {
			t.Fatal(err)
		}
		if name != "no-rule" {
			one.device(t, "alice", "shared", "the next")
		}
		one.device(t, "alice", "mine-"+name, "a later one")
		two.await(t, "mine-"+name, 1)
		if state := two.app.dialled.State("shared"); state != "" {
			t.Errorf("%s: the server is %s", name, state)
		}
		if err := two.app.reload(one.cfg); err != nil {
			t.Fatal(err)
		}
		mcptest.WaitFor(t, name+": the server", dialPatience, func() bool { return two.app.dialled.State("shared") != "" })
		two.await(t, "shared", 1)
	}
}

// TestDial_ApprovalKeys: the key of the cluster is replaced in two steps, with a start after each. The approvals remain after the old key has
// left the config.
func TestDial_ApprovalKeys(t *testing.T) {
	mcptest.NoLeaks(t)
	ownFolders(t)
	n := mcptest.StartNATS(t)
	tools := map[string]string{"whoami": "the digest"}
	for _, keys := range []string{`"` + clusterKey + `"`, `["` + newKey + `","` + clusterKey + `"]`, `"` + newKey + `"`} {
		a, err := New(Options{
			Config:  configOf(t, nil, everybody, `,"cluster":{"nats":"`+n.URL+`","key":`+keys+`}`),
			Profile: Hosted, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if keys == `"`+clusterKey+`"` {
			err = a.storeApproval(t.Context(), "shared of alice", tools)
		}
		if got := a.state.approvals.merge(nil)["shared of alice"]; err != nil || !maps.Equal(got, tools) {
			t.Errorf("with %s: %v %v", keys, got, err)
		}
		a.Close()
	}
}
