package dial

import (
	"log/slog"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
)

// TestLookAfter: a server without a connection is taken back if the record says that it is at another live replica. It is not if the
// record is about this replica, whose connection has ended, or about the server of another owner. The upstream may open a tunnel if
// there is none that works.
func TestLookAfter(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	join := func() *cluster.Cluster {
		c, err := cluster.Join(t.Context(), cluster.Options{
			URLs: []string{n.URL}, Keys: []*state.Secret{state.SecretOf([]byte("0123456789abcdef0123456789abcdef"))}, Bucket: "test", Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	here, there := join(), join()
	mcptest.WaitFor(t, "the other replica", patience, func() bool { return here.IsLive(there.Self()) })
	h := New(Options{Cluster: here})
	mine := policy.Dialled{Server: "shared", Owner: "ann", For: conf.DialAll}
	s := h.newSlot("shared", nil, mine)
	others := mine
	others.Owner = "bob"
	for _, test := range []struct {
		name, at string
		dialled  policy.Dialled
		taken    bool
	}{
		{"the record of this replica", here.Self(), mine, false},
		{"the record of another owner", there.Self(), others, false},
		{"the record of a replica that has ended", "gone", mine, false},
		{"the record of another replica", there.Self(), mine, true},
	} {
		value := wire.Encode(holding{Dialled: test.dialled, Name: "shared", At: test.at, Conn: "one"})
		err := here.Records().Change(t.Context(), recordPrefix+"shared", func([]byte) ([]byte, time.Time, error) {
			return value, time.Now().Add(time.Hour), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		mcptest.WaitFor(t, "the record", patience, func() bool {
			now, _ := here.Records().Get(recordPrefix + "shared")
			return string(now) == string(value)
		})
		if h.lookAfter(); (s.at != "") != test.taken {
			t.Errorf("%s: the server is at %q", test.name, s.at)
		}
	}
	armed := func() bool {
		h.lookAfter()
		defer s.disarm()
		return s.armed
	}
	if !armed() {
		t.Error("without a tunnel, the upstream may open none")
	}
	s.tunnel = &tunnel{}
	if armed() {
		t.Error("beside a tunnel that works, the upstream may open another one")
	}
	if s.tunnel.ended.Store(true); !armed() {
		t.Error("after the end of the tunnel, the upstream may open none")
	}
}
