package resources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// ParamsError means that the params of a request are invalid.
type ParamsError struct{ Message string }

func (e *ParamsError) Error() string { return e.Message }

// PromptError means that a prompt does not exist. Near is the name that is probably meant, or empty.
type PromptError struct{ Name, Near string }

func (e *PromptError) Error() string {
	text := fmt.Sprintf("there is no prompt %q", e.Name)
	if e.Near != "" {
		text += "; did you mean " + sanitize.Line(e.Near, 0) + "?"
	}
	return text
}

// ServerError is the error of a request that the server has not answered. Err says why: it is one of the errors of
// [upstream.Upstream.Call].
type ServerError struct {
	Server string
	Err    error
}

func (e *ServerError) Error() string { return e.Server + ": " + e.Err.Error() }
func (e *ServerError) Unwrap() error { return e.Err }

// failed returns the error that the client gets for a request to a server that failed with err. If the server answered with a
// JSON-RPC error, this is err itself. Otherwise it is what Explain makes of a [ServerError] with err, or this ServerError itself if
// Explain is nil.
func (s *Servers) failed(method string, server *catalog.Server, err error) error {
	if _, answered := errors.AsType[*wire.RPCError](err); answered {
		return err
	}
	failed := &ServerError{server.Name, err}
	if s.Explain != nil {
		return s.Explain(method, failed)
	}
	return failed
}

// Send passes a client's message on to the server that has the item which the message names. It returns the raw result, with the
// URIs that clients know. q has the client's method and params. If the message names no known item, the error is a
// [catalog.URIError], [PromptError] or [ParamsError]. If the server answered with an error, it is a [wire.RPCError]. Otherwise it
// is the error of ctx, or what Servers.Explain makes of a [ServerError].
func (s *Servers) Send(ctx context.Context, q *request.Request) (json.RawMessage, error) {
	for waited := false; ; {
		snap := s.Catalogue()
		server, params, err := s.target(snap, q)
		if err != nil {
			// The item may belong to a server that has not listed its items yet.
			if waited || !anyUnlisted(snap) {
				return nil, err
			}
			s.awaitLists(ctx, s.Wait)
			waited = true
			continue
		}
		one := *q
		one.To, one.Params, one.Scope, one.Repeatable = server, params, s.Scope(), relayed[q.Method]
		one.Relay, one.Wait = q.Client.Modern(), s.Wait
		if q.Method == "tasks/result" {
			one.Client = namingTask(q.Client, wire.MemberText(params, "taskId"), wire.MemberText(q.Params, "taskId"))
		}
		raw, err := s.Registry.Send(ctx, &one)
		q.Consent = one.Consent // if the request is sent again, the user is not asked again
		if err == nil {
			return s.result(snap, server, q, raw), nil
		}
		if _, replaced := errors.AsType[*request.ReplacedError](err); !replaced {
			return s.absent(q.Method, server, params, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// absent handles the error of a request. If the server does not know prompts/get or resources/read at all, it cannot have the item,
// and absent returns the error for an unknown item. If it does not know completion/complete, absent returns an empty list of
// completions. For any other error, absent returns what the method failed returns.
func (s *Servers) absent(method string, server *catalog.Server, params json.RawMessage, err error) (json.RawMessage, error) {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	if !ok || rpc.NoCode || rpc.Code != wire.MethodNotFound {
		return nil, s.failed(method, server, err)
	}
	switch method {
	default:
		return nil, err
	case "prompts/get":
		return nil, &PromptError{Name: wire.MemberText(params, "name")}
	case "completion/complete":
		return json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`), nil
	case "resources/read":
		return nil, &catalog.URIError{URI: wire.MemberText(params, "uri")}
	}
}

// relayed has the methods whose params name an item of a server. The value says whether the method may be executed twice. Any other
// method is sent only in a transparent view, which shows a single server.
var relayed = map[string]bool{
	"resources/read": true, "resources/unsubscribe": true, "prompts/get": true, "completion/complete": true,
	"tasks/get": true, "tasks/update": false, "tasks/cancel": false, "tasks/result": true,
}

// target returns the server for a request, and the params as this server knows them. The params have no _meta, inputResponses and
// requestState, because mcpx adds these again when it sends the request.
func (s *Servers) target(snap *catalog.Snapshot, r *request.Request) (server *catalog.Server, params json.RawMessage, err error) {
	params = wire.Without(r.Params, "_meta", "inputResponses", "requestState")
	if _, named := relayed[r.Method]; !named {
		if !s.Transparent || len(snap.Servers) != 1 {
			return nil, nil, &ParamsError{"no server is meant"}
		}
		return &snap.Servers[0], params, nil
	}
	switch r.Method {
	case "resources/read", "resources/unsubscribe":
		return resource(params, snap.Resource)
	case "prompts/get":
		return s.prompt(snap, params)
	case "tasks/get", "tasks/update", "tasks/cancel", "tasks/result":
		return s.task(snap, params)
	}
	ref := wire.Member(params, "ref")
	switch wire.MemberText(ref, "type") {
	case "ref/prompt":
		if s.NoPrompts {
			return nil, nil, &PromptError{Name: wire.MemberText(ref, "name")}
		}
		server, ref, err = s.prompt(snap, ref)
	case "ref/resource":
		if s.NoResources {
			return nil, nil, &catalog.URIError{URI: wire.MemberText(ref, "uri")}
		}
		server, ref, err = resource(ref, snap.Template)
	default:
		err = &ParamsError{"params.ref must be a reference to a prompt or a resource"}
	}
	return server, wire.Set(params, "ref", ref), err
}

// resource finds the server that has the URI in an object, and replaces the URI by the one that the server uses.
func resource(object json.RawMessage, find func(uri string) (*catalog.Server, string, error)) (*catalog.Server, json.RawMessage, error) {
	uri := wire.MemberText(object, "uri")
	if uri == "" {
		return nil, nil, &ParamsError{"the URI of the resource is missing"}
	}
	server, own, err := find(uri)
	if err != nil {
		return nil, nil, err
	}
	return server, wire.Edit(object, "uri", wire.EditText(func(string) string { return own })), nil
}

// task finds the server of the task id in params, and replaces the id by the one that the server uses.
func (s *Servers) task(snap *catalog.Snapshot, params json.RawMessage) (*catalog.Server, json.RawMessage, error) {
	id := wire.MemberText(params, "taskId")
	untagged, valid := id, true
	if s.Untag != nil {
		untagged, valid = s.Untag(id)
	}
	name, own, _ := strings.Cut(untagged, "/")
	server, ok := snap.Server(name)
	if !valid || !ok || own == "" {
		return nil, nil, &ParamsError{fmt.Sprintf("there is no task %q", id)}
	}
	if s.Replicas { // own may begin with the name of the replica that made the id
		if rest, ok := strings.CutPrefix(own, "@"); ok {
			_, own, _ = strings.Cut(rest, "/")
		}
	}
	return server, wire.Edit(params, "taskId", wire.EditText(func(string) string { return own })), nil
}

// prompt finds the server of the prompt whose name is in an object, and replaces the name by the one that the server uses.
func (s *Servers) prompt(snap *catalog.Snapshot, object json.RawMessage) (*catalog.Server, json.RawMessage, error) {
	name := wire.MemberText(object, "name")
	if name == "" {
		return nil, nil, &ParamsError{"the name of the prompt is missing"}
	}
	if server := s.bare(snap, name); server != nil {
		return server, object, nil
	}
	server, own, ok := snap.Prompt(name, s.separator())
	if !ok {
		return nil, nil, &PromptError{Name: name, Near: s.qualified(snap, name)}
	}
	return server, wire.Edit(object, "name", wire.EditText(func(string) string { return own })), nil
}

// qualified returns the name with which clients know a prompt that a server calls name, or "". Models often leave out the server.
func (s *Servers) qualified(snap *catalog.Snapshot, name string) string {
	for i := range snap.Servers {
		one := &snap.Servers[i]
		if slices.ContainsFunc(one.Items.Of(catalog.Prompts), func(item catalog.Item) bool { return item.Name == name }) {
			return s.named(snap, one, catalog.Prompts, name)
		}
	}
	return ""
}
