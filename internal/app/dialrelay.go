package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/registry"
	"mcpx/internal/request"
)

// relay lets another replica of the cluster use a server that has dialled in at this replica. Over a stream, relay looks to the
// other replica like an MCP server of the legacy era, in which a session begins with initialize. It answers initialize and ping
// itself, refuses server/discover and subscriptions, and sends other requests directly to the session with the server. It
// checks no rights or limits and writes no audit trail, because the other replica does that. It passes on no questions from the
// server to clients.
type relay struct {
	registry *registry.Registry
	name     string
	out      *wire.Writer
	end      func() error   // closes the stream
	seen     catalog.Server // the lists of tools, resources and prompts that the other replica has seen

	mu    sync.Mutex
	open  map[string]context.CancelFunc // cancel the requests that are being answered, by raw id
	calls sync.WaitGroup
}

// relayWait is how long a request waits for a server whose connection has just ended.
const relayWait = 10 * time.Second

// serveRelay serves one stream until the stream ends. ctx ends with the stream.
func serveRelay(ctx context.Context, r *registry.Registry, name string, limit int64, stream io.ReadWriteCloser) error {
	one := &relay{
		registry: r, name: name, out: wire.NewWriter(stream, wire.Newline), end: stream.Close, open: make(map[string]context.CancelFunc),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer one.calls.Wait()
	defer cancel()
	if s, ok := r.Snapshot().Server(name); ok {
		one.seen = *s
	}
	changed := make(chan struct{}, 1)
	defer r.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	one.calls.Go(func() { // ends with ctx
		for {
			select {
			case <-changed:
				one.announce()
			case <-ctx.Done():
				return
			}
		}
	})
	in := wire.NewReader(stream, limit, nil)
	for {
		data, err := in.Read()
		if err != nil {
			// The stream has ended, or a message is too large. The other replica should have the same limit.
			return err
		}
		one.take(ctx, data)
	}
}

// take handles one message from the other replica.
func (r *relay) take(ctx context.Context, data []byte) {
	m, err := wire.Parse(data)
	switch {
	case err != nil || m.Method == "":
	case m.Method == "notifications/cancelled":
		r.mu.Lock()
		defer r.mu.Unlock()
		if cancel := r.open[string(wire.Member(m.Params, "requestId"))]; cancel != nil {
			cancel()
		}
	case m.ID == nil: // other notifications are dropped: this replica sends notifications of its own to the server
	default:
		ctx, cancel := context.WithCancel(ctx)
		r.mu.Lock()
		r.open[string(m.ID)] = cancel
		r.mu.Unlock()
		r.calls.Go(func() { // ends when the server has answered, or with ctx
			defer func() {
				r.mu.Lock()
				delete(r.open, string(m.ID))
				r.mu.Unlock()
				cancel()
			}()
			result, err := r.answer(ctx, m)
			if ctx.Err() != nil {
				return
			}
			if _, lost := errors.AsType[*request.LostError](err); lost {
				_ = r.end() // the end of the stream tells the other replica that its open calls are lost
				return
			}
			if err != nil {
				r.write(`{"jsonrpc":"2.0","id":`, m.ID, `,"error":`, errorOf(err), `}`)
			} else {
				r.write(`{"jsonrpc":"2.0","id":`, m.ID, `,"result":`, result, `}`)
			}
		})
	}
}

func (r *relay) answer(ctx context.Context, m wire.Message) (json.RawMessage, error) {
	switch m.Method {
	case "initialize":
		return r.greeting(wire.Member(m.Params, "protocolVersion")), nil
	case "ping":
		return json.RawMessage("{}"), nil
	case "server/discover", "resources/subscribe", "resources/unsubscribe":
		return nil, &wire.RPCError{Code: wire.MethodNotFound, Message: "not relayed between replicas"}
	}
	q := &request.Request{Method: m.Method, Params: wire.Without(m.Params, "_meta")}
	q.Wait = relayWait
	_ = wire.Fields(wire.Member(m.Params, "_meta"), func(name string, value []byte) bool {
		if name == "progressToken" {
			token := bytes.Clone(value)
			q.Sink.Progress = func(params json.RawMessage) {
				r.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":`, wire.Set(params, "progressToken", token), `}`)
			}
			return true
		}
		q.Meta = append(q.Meta, request.Meta{Name: name, Value: json.RawMessage(bytes.Clone(value))})
		return true
	})
	return r.registry.Relay(ctx, r.name, q)
}

// greeting returns the result of initialize for the other replica. It repeats the name, capabilities and other members that the server
// has sent in its session with this replica.
func (r *relay) greeting(version json.RawMessage) json.RawMessage {
	status, _ := r.registry.Status(r.name)
	changes := map[string]bool{"listChanged": true}
	capabilities := map[string]any{"tools": changes}
	_ = json.Unmarshal([]byte(status.Offers.Others), &capabilities) // if Others is empty or not valid, this adds nothing
	if status.Offers.Resources {
		capabilities["resources"] = changes
	}
	if status.Offers.Prompts {
		capabilities["prompts"] = changes
	}
	if status.Offers.Completions {
		capabilities["completions"] = struct{}{}
	}
	return wire.Encode(map[string]any{
		"protocolVersion": version, "capabilities": capabilities, "instructions": status.Instructions,
		"serverInfo": map[string]string{"name": status.Title, "version": status.Version},
	})
}

// announce tells the other replica that the server's tools, or its resources or prompts, have changed.
func (r *relay) announce() {
	s, ok := r.registry.Snapshot().Server(r.name)
	if !ok {
		return
	}
	if s.Known && !catalog.SameTools(s.Tools, r.seen.Tools) {
		r.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	if s.Items != r.seen.Items {
		r.write(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
		r.write(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	}
	r.seen = *s
}

func errorOf(err error) json.RawMessage {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	if !ok {
		rpc = &wire.RPCError{Code: -32603, Message: err.Error()}
	}
	e := map[string]any{"code": rpc.Code, "message": rpc.Message}
	if rpc.Data != nil {
		e["data"] = rpc.Data
	}
	return wire.Encode(e)
}

// write writes one message on one line. An error needs no handling: it also ends the stream's reader.
func (r *relay) write(parts ...any) {
	var line []byte
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			line = append(line, part...)
		case json.RawMessage:
			line = append(line, wire.OneLine(part)...)
		}
	}
	_ = r.out.Write(line)
}
