package front

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// TestBound: an expired state is refused even if it belongs to the request. If a client has neither a principal nor a Home, the
// upstream's state is not changed, unless it begins like a state that mcpx itself makes.
func TestBound(t *testing.T) {
	f := &Front{tags: tagsOf(nil, "a view")}
	unbind := func(f *Front, r *incoming) *rpcError {
		written, _ := wire.Text(r.input.State)
		return f.unbind(r, written)
	}
	ask := func(who *caller.Principal, written json.RawMessage) *incoming {
		m := readMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","requestState":` + string(written) + `}}`))
		return &incoming{message: m, client: &caller.Client{Principal: who}}
	}
	alice := &caller.Principal{ID: "alice"}
	own := json.RawMessage(`"a \"state\" é"`)
	first := ask(alice, own)
	bound := f.bound(first, own)
	again := ask(alice, bound)
	if err := unbind(f, again); err != nil || string(again.input.State) != string(own) {
		t.Errorf("got %s, %v", again.input.State, err)
	}
	for age, good := range map[time.Duration]bool{-time.Hour: true, time.Hour: false} {
		until := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
		text, _ := wire.Text(own)
		late := ask(alice, wire.AppendQuoted(nil, boundState+until+"."+f.tags.Of(alice, stateValues(first.message, until, text)...)+"."+text))
		if err := unbind(f, late); (err == nil) != good || err != nil && !strings.Contains(err.message, "too old") {
			t.Errorf("%s late: %v", age, err)
		}
	}
	// Another process accepts the state, also if it makes its own with another secret; another view does not.
	old, secret := state.NewSecret(), []*state.Secret{state.NewSecret()}
	here, there := &Front{tags: tagsOf(secret, "a view")}, &Front{tags: tagsOf([]*state.Secret{old, secret[0]}, "a view")}
	if err := unbind(there, ask(alice, here.bound(first, own))); err != nil {
		t.Errorf("another process: %v", err)
	}
	if err := unbind(&Front{tags: tagsOf(secret, "another view")}, ask(alice, here.bound(first, own))); err == nil {
		t.Error("another view takes the state")
	}
	nobody := ask(nil, own)
	if err := unbind(f, nobody); err != nil || string(nobody.input.State) != string(own) || string(f.bound(nobody, own)) != string(own) {
		t.Errorf("of nobody: %s, %v", nobody.input.State, err)
	}
	for _, who := range []*caller.Principal{nil, alice} { // the upstream is another mcpx: its states look like our own
		for _, own := range []string{`"mcpx.suspended.A.B"`, `"mcpx.home.1.x.y"`, `"mcpx.bound.1.x.y"`, `"mcpx.home..."`} {
			bound := f.bound(ask(who, json.RawMessage(own)), json.RawMessage(own))
			again := ask(who, bound)
			if err := unbind(f, again); err != nil || string(again.input.State) != own || strings.HasPrefix(string(bound), `"`+suspendedState) {
				t.Errorf("of %v: %s is bound as %s, and comes back as %s, %v", who, own, bound, again.input.State, err)
			}
		}
	}
}
