package request

import (
	"errors"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

const (
	writes = `{"name":"t","description":"Writes."}`
	reads  = `{"name":"t","description":"Reads.","annotations":{"readOnlyHint":true}}`
)

// TestRights: depending on the catalogue at this moment, a message is sent, is refused, or fails so that its
// caller reads the catalogue again.
func TestRights(t *testing.T) {
	write, read := tool(t, writes), tool(t, reads)
	limited := snapshot("s", write)
	limited.Servers[0].Limited = true
	ann := &caller.Client{Principal: &caller.Principal{ID: "ann"}}
	call := func(tool *catalog.Tool, readOnly bool) Request {
		return Request{Method: "tools/call", Tool: tool, ReadOnly: readOnly}
	}
	replaced, refused, unknown := new(*ReplacedError), new(*RefusedError), new(*wire.RPCError)
	for _, tt := range []struct {
		name string
		seen *catalog.Snapshot
		q    Request
		want any // the type of the error; nil if the message is sent
	}{
		{"a call", snapshot("s", write), call(write, false), nil},
		{"the same definition", snapshot("s", tool(t, writes)), call(write, false), nil},
		{"another definition", snapshot("s", read), call(write, false), replaced},
		{"no tool", snapshot("s"), call(write, false), replaced},
		{"no server", snapshot("other", write), call(write, false), replaced},
		{"the read door", snapshot("s", write), call(write, true), refused},
		{"the read door of a tool that reads", snapshot("s", read), call(read, true), nil},
		{"a method that mcpx knows", limited, Request{Method: "resources/read"}, nil},
		{"a method of a server that is gone", snapshot("other"), Request{Method: "resources/read"}, replaced},
		{"a method that mcpx does not know", snapshot("s"), Request{Method: "own/method"}, nil},
		{"the same of a limited server", limited, Request{Method: "own/method"}, unknown},
		{"a notification to a limited server", limited, Request{Method: "notifications/own", Notification: true}, unknown},
		{"all tasks", snapshot("s"), Request{Method: "tasks/list"}, nil},
		{"all tasks, of several principals", snapshot("s"), Request{From: From{Client: ann}, Method: "tasks/list"}, unknown},
		{"one task", snapshot("s"), Request{From: From{Client: ann}, Method: "tasks/get"}, nil},
		{"the server inside of mcpx", snapshot("s"), Request{Method: "tools/call", Tool: read, Serve: (&end{}).handle}, nil},
	} {
		last := &end{result: "{}"}
		q := tt.q
		q.To = &catalog.Server{Name: "s"}
		_, err := Chain(last.handle, Rights(func(*Request) *catalog.Snapshot { return tt.seen }))(t.Context(), &q)
		switch {
		case tt.want == nil && (err != nil || len(last.got) != 1):
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != nil && (err == nil || !errors.As(err, tt.want) || len(last.got) != 0):
			t.Errorf("%s: %T %v", tt.name, err, err)
		}
		if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code != wire.MethodNotFound {
			t.Errorf("%s: code %d", tt.name, rpc.Code)
		}
	}
}

// TestPinned: when a request is sent, and after the user took time to confirm it, its tool is compared again with what the caller may
// see. The catalogue is read again before that if a session was opened, or if the server had none.
func TestPinned(t *testing.T) {
	write := tool(t, writes)
	for _, tt := range []struct {
		name    string
		state   catalog.State
		opened  bool
		refresh bool
	}{
		{"the session of the catalogue", catalog.Ready, false, false},
		{"the same, of a server in doubt", catalog.Degraded, false, false},
		{"a new session", catalog.Ready, true, true},
		{"a server that was not there", catalog.Connecting, false, true},
	} {
		for definition, same := range map[string]bool{writes: true, reads: false} {
			refreshed := 0
			last := &end{result: "{}"}
			now := snapshot("s", tool(t, definition))
			handler := Chain(last.handle, Pinned(func(*Request) *catalog.Snapshot { return now }, func() { refreshed++ }))
			q := &Request{To: &catalog.Server{Name: "s", State: tt.state}, Method: "tools/call", Tool: write}
			if _, err := handler(t.Context(), q); err != nil || refreshed != 0 || q.Check == nil {
				t.Fatalf("%s: %v, refreshed %d times", tt.name, err, refreshed)
			}
			_, replaced := errors.AsType[*ReplacedError](q.Check(tt.opened))
			if replaced == same || refreshed == 1 != tt.refresh {
				t.Errorf("%s, the same tool %t: replaced %t, refreshed %d times", tt.name, same, replaced, refreshed)
			}
		}
	}
	last := &end{result: "{}"}
	handler := Chain(last.handle, Pinned(func(*Request) *catalog.Snapshot { return snapshot("s", tool(t, reads)) }, func() {}))
	asked := &Request{To: &catalog.Server{Name: "s", State: catalog.Ready}, Method: "tools/call", Tool: write, Consent: Consent{asked: true}}
	if _, err := handler(t.Context(), asked); len(last.got) != 0 || !errors.As(err, new(*ReplacedError)) {
		t.Errorf("after a question: %v", err)
	}
	gone := &Request{To: &catalog.Server{Name: "gone"}, Method: "vendor/delete", Consent: Consent{asked: true}}
	if _, err := handler(t.Context(), gone); len(last.got) != 0 || !errors.As(err, new(*ReplacedError)) {
		t.Errorf("an unknown method, after a question: %v", err)
	}
	for name, there := range map[string]bool{"s": true, "gone": false} {
		other := &Request{To: &catalog.Server{Name: name}, Method: "resources/read"}
		_, err := handler(t.Context(), other)
		if refused := other.Check(true); err != nil || there != (refused == nil) {
			t.Errorf("no call, %s: %v, %v", name, err, refused)
		}
	}
}
