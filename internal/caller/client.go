// Package caller says who asks: the client of a message, the principal that it acts for, and what the client can
// be asked in return.
package caller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// Client is who sends a request: one connection of one program or, where the
// protocol has no sessions, one request. front makes it; view, executor and
// upstream hand it on and change nothing in it. What belongs to a single request
// (its progress token, the level of its log messages) is not here. A nil *Client
// is nobody in particular.
type Client struct {
	// ID is unique to one client. A client without one uses shared sessions only.
	ID string
	// Name is the clientInfo.name that the client gave.
	Name string
	// Peer identifies the connection. Modern requests over HTTP have no session;
	// those of one connection share a Peer. Empty = ID.
	Peer string
	// Version is the protocol revision that the client speaks.
	Version string
	// Capabilities is the raw object that the client declared; nil where it
	// declared none.
	Capabilities json.RawMessage
	// Alone means that the client sees one server as if nothing stood before it: what mcpx
	// does not know goes through both ways.
	Alone bool
	// Apps means that the view of the client lists the tools that have apps.
	Apps bool
	// View is the view that the client is connected to, as the config names it.
	View string
	// Principal is on whose behalf the client acts; nil where nobody asked.
	Principal *Principal
	// Headers are those of the client's request over HTTP, nil elsewhere. Nobody writes to
	// them. A server that takes credentials of its callers finds them there.
	Headers http.Header
	// Notify sends a notification that belongs to no request. It does not block:
	// a client that does not read loses it. Nil where there is no way to the client
	// but the answer.
	Notify func(method string, params json.RawMessage)
	// Request sends a request to the client and waits for its result, which is valid
	// JSON, until ctx ends. An error of the client is a *RPCError. progress, where not nil,
	// gets the params of the client's progress notifications; it must not block. Nil where
	// the transport cannot. [Client.Ask] calls it.
	Request Ask
}

// On is on whose behalf the client acts; nil where nobody asked.
func (c *Client) On() *Principal {
	if c == nil {
		return nil
	}
	return c.Principal
}

// Program is the same for requests that surely come from one program.
func (c *Client) Program() string {
	if c == nil {
		return ""
	}
	if c.Principal != nil { // a proxy may send the requests of several over one connection
		return cmp.Or(c.Peer, c.ID) + "\x00" + c.Principal.Key()
	}
	return cmp.Or(c.Peer, c.ID)
}

// Ident is the ID; empty for a nil client.
func (c *Client) Ident() string {
	if c == nil {
		return ""
	}
	return c.ID
}

// Ask asks the client something: elicitation/create, sampling/createMessage or
// roots/list, with the params of that method; a client that sees one server alone,
// anything. It returns the raw result, after as long as a person takes, or the error of
// ctx. A client that refuses, or that cannot be asked this, is a *RPCError, whose text is
// fit for a model.
func (c *Client) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if why := c.Cannot(method, params); why != "" {
		return nil, &wire.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: why}
	}
	return c.Request(ctx, method, params, nil)
}

// Cannot says why the client cannot be asked this; empty if it can.
func (c *Client) Cannot(method string, params json.RawMessage) string {
	switch {
	case c == nil:
		return method + " needs an MCP client that can answer it; here is none, as on a command line"
	case wanted[method] == "" && !c.Alone:
		return "method not found"
	case wanted[method] == "" && c.Request != nil:
		return ""
	}
	missing := Lacks(c.Capabilities, method, params)
	switch {
	case missing != "":
		return method + " cannot be answered: the client" + named(c.Name) + " has not declared the capability " + missing
	case c.Request == nil:
		return method + " cannot be answered: the client" + named(c.Name) + " reads no requests on this connection"
	}
	return ""
}

// named is a name of a client as a part of a text, behind a space.
func named(name string) string {
	if name = sanitize.Line(name, 60); name != "" {
		name = " " + name
	}
	return name
}

// wanted are the requests that a server may send to a client, with the capability that
// each needs.
var wanted = map[string]string{
	string(mcp.MethodElicitationCreate): "elicitation",
	"sampling/createMessage":            "sampling",
	string(mcp.MethodListRoots):         "roots",
}

// Lacks is the capability that a client does not have of those that a request needs, as
// a path such as elicitation.url; empty if it has all.
func Lacks(capabilities json.RawMessage, method string, params json.RawMessage) string {
	has, _ := wire.ReadObject(capabilities)
	name := wanted[method]
	own, ok := wire.ReadObject(has[name])
	if !ok {
		return name
	}
	var p struct {
		Mode  string
		Tools json.RawMessage
	}
	_ = json.Unmarshal(params, &p) // the client judges what it cannot read
	part := ""
	switch {
	case p.Mode == "url" && name == "elicitation":
		part = "url"
	case name == "elicitation" && own["url"] != nil:
		part = "form" // a client without any part has this one
	case p.Tools != nil && name == "sampling":
		part = "tools"
	}
	if _, ok := wire.ReadObject(own[part]); part != "" && !ok {
		return name + "." + part
	}
	return ""
}

const (
	// AllCapabilities are those of which mcpx can pass on what they allow.
	AllCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}},"roots":{}}`
	// SharedCapabilities are those that a session of several clients declares. Not roots:
	// servers remember them for the whole session, and would work for one client in the
	// folders of another.
	SharedCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}}}`
)

// Answers reports whether there is anything that the client can be asked.
func (c *Client) Answers() bool { return len(c.askable()) > len("{}") }

// OpensURLsOf reports whether the client acts on an error itself: it opens the URLs that
// the error has, and sends its request again (URLElicitationRequiredError of 2025-11-25).
func (c *Client) OpensURLsOf(e *wire.RPCError) bool {
	return e.Code == urlRequired && c != nil && !c.Modern() &&
		Lacks(c.Capabilities, string(mcp.MethodElicitationCreate), json.RawMessage(`{"mode":"url"}`)) == ""
}

const urlRequired = mcp.URL_ELICITATION_REQUIRED

// Modern reports whether the client speaks a revision of the modern era.
func (c *Client) Modern() bool { return c != nil && mcp.IsModernProtocol(c.Version) }

// TasksExtension is the capability of a client that takes a task in place of a result, and
// polls it (SEP-2663).
const TasksExtension = "io.modelcontextprotocol/tasks"

// RunsTasks reports whether the client has declared [TasksExtension].
func (c *Client) RunsTasks() bool { return c.extension(TasksExtension) != nil }

// appsExtension is the capability of a client that shows the apps of tools (MCP Apps).
const appsExtension = "io.modelcontextprotocol/ui"

// ShowsApps reports whether the client has declared appsExtension, and sees tools that
// have apps.
func (c *Client) ShowsApps() bool { return c != nil && c.Apps && c.extension(appsExtension) != nil }

// extension is what the client has declared of an extension, an object; nil = nothing.
func (c *Client) extension(name string) json.RawMessage {
	if c == nil || !bytes.Contains(c.Capabilities, []byte(name)) {
		return nil
	}
	declared := wire.Member(wire.Member(c.Capabilities, "extensions"), name)
	if len(declared) == 0 || declared[0] != '{' {
		return nil
	}
	return declared
}

// Relayed are the capabilities of a client of which mcpx can pass on what they allow,
// as the client wrote them: all of a client that sees one server alone.
func (c *Client) Relayed() json.RawMessage {
	out := c.askable()
	if c == nil || c.Alone {
		return out
	}
	var extensions json.RawMessage
	if c.RunsTasks() {
		extensions = wire.WithMember(nil, TasksExtension, []byte("{}"))
	}
	if c.ShowsApps() {
		extensions = wire.WithMember(extensions, appsExtension, c.extension(appsExtension))
	}
	if extensions != nil {
		out = wire.WithMember(out, "extensions", extensions)
	}
	return out
}

// askable are the relayed capabilities of answering questions.
func (c *Client) askable() json.RawMessage {
	if c == nil {
		return json.RawMessage("{}")
	}
	return wire.Filter(c.Capabilities, func(name string, value []byte) bool {
		return value[0] == '{' && (c.Alone && name != "tasks" || name == "elicitation" || name == "sampling" || name == "roots")
	})
}
