package resources

import (
	"context"
	"encoding/json"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// Block returns a content block of a server's result for clients that see the catalogue snap. If the block contains or links a
// resource, Block replaces the URI by one with which clients can read the resource. It changes nothing else.
func Block(snap *catalog.Snapshot, server *catalog.Server, block json.RawMessage) json.RawMessage {
	rename := renamed(snap, server)
	switch wire.MemberText(block, "type") {
	case "resource_link":
		return rename(block)
	case "resource":
		return wire.Edit(block, "resource", rename)
	}
	return block
}

// Task returns a server's result with the task id that clients get. This id consists of the server's name, a slash (which no name
// contains), the server's own id, and a tag, by which mcpx recognizes the id. If the func tag is nil, there is no tag. If replica
// is not empty, the id also names this replica, a process of mcpx, because its session with the server may be the only one that
// knows the task.
func Task(server *catalog.Server, replica string, tag func(id string) string, result json.RawMessage) json.RawMessage {
	return wire.Edit(result, "taskId", wire.EditText(func(own string) string {
		id := server.Name + "/" + replicaPart(replica) + own
		if tag != nil {
			id += tag(id)
		}
		return id
	}))
}

// replicaPart returns the part of a task's id that names a replica; empty if replica is empty.
func replicaPart(replica string) string {
	if replica == "" {
		return ""
	}
	return "@" + replica + "/"
}

// renameTask changes, with rename, the task id in _meta of a message. This id says to which task the message belongs.
func renameTask(message json.RawMessage, rename func(id string) string) json.RawMessage {
	return wire.Edit(message, "_meta", func(meta json.RawMessage) json.RawMessage {
		return wire.Edit(meta, caller.RelatedTask, func(of json.RawMessage) json.RawMessage { return wire.Edit(of, "taskId", wire.EditText(rename)) })
	})
}

// namingTask returns a copy of c for a request that waits for the result of a task. Meanwhile the server may ask the client
// questions about the task. With the copy, the questions have the id that the client knows (known), and the client's answers have
// the server's own id (own).
func namingTask(c *caller.Client, own, known string) *caller.Client {
	if c == nil || c.Request == nil {
		return c
	}
	swap := func(from, to string) func(string) string {
		return func(id string) string {
			if id == from {
				return to
			}
			return id
		}
	}
	named := *c
	named.Request = func(ctx context.Context, method string, params json.RawMessage, heard func(json.RawMessage)) (json.RawMessage, error) {
		result, err := c.Request(ctx, method, renameTask(params, swap(own, known)), heard)
		return renameTask(result, swap(known, own)), err
	}
	return &named
}

// renamed returns a func that replaces the member uri of an object by the URI under which clients know the resource.
func renamed(snap *catalog.Snapshot, server *catalog.Server) func(json.RawMessage) json.RawMessage {
	uri := wire.EditText(func(own string) string { return snap.Link(server, own) })
	return func(object json.RawMessage) json.RawMessage { return wire.Edit(object, "uri", uri) }
}

// result returns a server's result for the client, with the URIs and the task id that the client knows. q is the client's request.
func (s *Servers) result(snap *catalog.Snapshot, server *catalog.Server, q *request.Request, raw json.RawMessage) json.RawMessage {
	asked := func(string) string { return wire.MemberText(q.Params, "taskId") }
	switch q.Method {
	case "resources/read":
		rename := renamed(snap, server)
		return wire.Edit(raw, "contents", func(all json.RawMessage) json.RawMessage { return wire.EditEach(all, rename) })
	case "tasks/get", "tasks/cancel":
		return wire.Edit(raw, "taskId", wire.EditText(asked))
	case "tasks/result": // a legacy method: it returns the result of the call
		raw = renameTask(raw, asked)
		return wire.Edit(raw, "content", func(all json.RawMessage) json.RawMessage {
			return wire.EditEach(all, func(block json.RawMessage) json.RawMessage { return Block(snap, server, block) })
		})
	case "prompts/get":
		return wire.Edit(raw, "messages", func(all json.RawMessage) json.RawMessage {
			return wire.EditEach(all, func(message json.RawMessage) json.RawMessage {
				return wire.Edit(message, "content", func(block json.RawMessage) json.RawMessage { return Block(snap, server, block) })
			})
		})
	}
	return raw
}
