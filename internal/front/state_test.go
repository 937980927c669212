package front

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// TestBound: a state that is late does not count, though it is that of the request; one
// of nobody in particular stays as it is.
func TestBound(t *testing.T) {
	f := &Front{tags: caller.NewTags(nil, "a test")}
	ask := func(who *caller.Principal, state json.RawMessage) *incoming {
		m := readMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","requestState":` + string(state) + `}}`))
		return &incoming{message: m, client: &caller.Client{Principal: who}}
	}
	alice := &caller.Principal{ID: "alice"}
	own := json.RawMessage(`"a \"state\" é"`)
	first := ask(alice, own)
	bound := f.bound(first, own)
	again := ask(alice, bound)
	if err := f.unbind(again); err != nil || string(again.input.State) != string(own) {
		t.Errorf("got %s, %v", again.input.State, err)
	}
	for age, good := range map[time.Duration]bool{-time.Hour: true, time.Hour: false} {
		until := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
		text, _ := wire.Text(own)
		late := ask(alice, wire.AppendQuoted(nil, boundState+until+"."+f.tags.Of(alice, stateValues(first.message, until, text)...)+"."+text))
		if err := f.unbind(late); (err == nil) != good || err != nil && !strings.Contains(err.message, "too old") {
			t.Errorf("%s late: %v", age, err)
		}
	}
	nobody := ask(nil, own)
	if err := f.unbind(nobody); err != nil || string(nobody.input.State) != string(own) || string(f.bound(nobody, own)) != string(own) {
		t.Errorf("of nobody: %s, %v", nobody.input.State, err)
	}
}
