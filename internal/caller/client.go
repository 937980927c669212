// Package caller describes who sends a message: the client, the principal on whose behalf it acts, and what the server may
// ask the client in return.
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

// Client is the sender of a request. It represents one connection of one client program or, if the protocol has no sessions, one
// request. Package front makes it; other packages pass it on and never change it. Data of a single request, such as its progress
// token and its log level, is not here. A nil *Client means that mcpx itself is the sender, for example for a command.
type Client struct {
	// ID is different for each client. A client without an ID can only use sessions with servers that several clients share.
	ID string
	// Name is the clientInfo.name that the client gave.
	Name string
	// Peer identifies the connection. Modern requests over HTTP have no session: each is a Client with an ID of its own, but all
	// requests of one connection have the same Peer. If Peer is empty, ID identifies the connection.
	Peer string
	// Home identifies the client program that sends modern requests over HTTP. Each such request is a Client of its own. But the
	// sessions that the program has with PerClient servers (one session for each client) must outlast the request. So they belong
	// to the Home. If Home is nil, they belong to this Client and end with it.
	Home *Home
	// Version is the protocol revision that the client speaks.
	Version string
	// Capabilities is the raw object that the client declared; nil if it declared none.
	Capabilities json.RawMessage
	// Transparent means that the client's view passes one server through as if mcpx were not there. Then mcpx also relays messages
	// with methods that it does not know, in both directions.
	Transparent bool
	// Apps means that the client's view lists tools that have a user interface of their own (MCP Apps).
	Apps bool
	// View is the name of the client's view in the config.
	View string
	// Principal is the authenticated user on whose behalf the client acts; nil without authentication.
	Principal *Principal
	// Headers are the client's HTTP headers, nil on other transports; read-only. They contain the credentials for servers that get
	// credentials from their callers.
	Headers http.Header
	// Notify sends a notification that belongs to no request. It does not block: if the client does not read, the notification
	// is dropped. Notify is nil if mcpx can send messages to the client only in answers.
	Notify func(method string, params json.RawMessage)
	// Request sends a request to the client, and waits for the result until ctx ends. The result is valid JSON. If the client
	// answers with an error, Request returns it as a *wire.RPCError. progress gets the params of the client's progress
	// notifications and must not block; it may be nil. Request is nil if the transport cannot send requests to the client. Callers
	// should use [Client.Ask], which also checks whether the client supports the request.
	Request Ask
}

// On returns the principal on whose behalf the client acts. For a nil client, and without authentication, it returns nil.
func (c *Client) On() *Principal {
	if c == nil {
		return nil
	}
	return c.Principal
}

// Program returns a key for the client program that sends the request: its connection and principal. Requests with the same key come
// from the same program, unless a proxy that does not name itself in the headers sends requests of several programs over one
// connection. One program may have several keys. The key is empty for a nil client.
func (c *Client) Program() string {
	if c == nil {
		return ""
	}
	if c.Principal != nil { // behind a proxy several principals may share a connection
		return cmp.Or(c.Peer, c.ID) + "\x00" + c.Principal.Key()
	}
	return cmp.Or(c.Peer, c.ID)
}

// Ident returns the ID; empty for a nil client.
func (c *Client) Ident() string {
	if c == nil {
		return ""
	}
	return c.ID
}

// Ask sends the client a request: elicitation/create, sampling/createMessage or roots/list or, if the client's view is transparent,
// a request with any method. It waits for as long as the user takes, and returns the raw result, or the error of ctx. If the client
// refuses or cannot be asked, the error is a *wire.RPCError whose text is suitable for a model.
func (c *Client) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if why := c.Cannot(method, params); why != "" {
		return nil, &wire.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: why}
	}
	return c.Request(ctx, method, params, nil)
}

// Cannot returns why this request cannot be sent to the client, or an empty string if it can.
func (c *Client) Cannot(method string, params json.RawMessage) string {
	why := c.Undeclared(method, params)
	if why == "" && c.Request == nil {
		why = method + " cannot be answered: the client" + named(c.Name) + " reads no requests on this connection"
	}
	return why
}

// Undeclared returns why a server may not ask the client for this, neither with a request nor with an input_required result:
// mostly, the client has not declared the capability. It returns an empty string if the server may ask.
func (c *Client) Undeclared(method string, params json.RawMessage) string {
	switch {
	case c == nil:
		return method + " needs an MCP client that can answer it; here is none, as on a command line"
	case wanted[method] == "" && !c.Transparent:
		return "method not found"
	case wanted[method] == "":
		return ""
	}
	if missing := Lacks(c.Capabilities, method, params); missing != "" {
		return method + " cannot be answered: the client" + named(c.Name) + " has not declared the capability " + missing
	}
	return ""
}

// named returns a client's name with a space before it, for use inside a sentence. It returns "" if there is no name.
func named(name string) string {
	if name = sanitize.Line(name, 60); name != "" {
		name = " " + name
	}
	return name
}

// wanted has the methods of the requests that a server may send to a client. The value is the capability that the client needs for
// the request.
var wanted = map[string]string{
	string(mcp.MethodElicitationCreate): "elicitation",
	"sampling/createMessage":            "sampling",
	string(mcp.MethodListRoots):         "roots",
}

// Lacks returns the capability that a request needs and that the capabilities of the client do not have, as a path such as
// elicitation.url. It returns an empty string if none is missing.
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
	_ = json.Unmarshal(params, &p) // if params cannot be read, the client itself decides about them
	part := ""
	switch {
	case p.Mode == "url" && name == "elicitation":
		part = "url"
	case name == "elicitation" && own["url"] != nil:
		// A client that declares neither url nor form supports form. But if it declares url, it supports form only if it declares
		// form, too.
		part = "form"
	case p.Tools != nil && name == "sampling":
		part = "tools"
	}
	if _, ok := wire.ReadObject(own[part]); part != "" && !ok {
		return name + "." + part
	}
	return ""
}

const (
	// AllCapabilities are the client capabilities that mcpx can relay, except extensions. If a server has a session for each
	// client, mcpx declares AllCapabilities in a further session, in which it only lists the tools.
	AllCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}},"roots":{}}`
	// SharedCapabilities are the client capabilities that mcpx declares for a session that several clients share. Roots are not
	// among them. Servers remember the roots for the whole session, and would use the folders of one client in the calls of
	// another.
	SharedCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}}}`
)

// Answers reports whether the client has declared any capability with which a server may ask it something.
func (c *Client) Answers() (answers bool) {
	if c != nil {
		_ = wire.Members(c.Capabilities, func(name string, _, value []byte) bool {
			answers = c.asked(name, value)
			return !answers
		})
	}
	return answers
}

// OpensURLsOf reports whether the client itself handles the error e. By this error a server asks the user to open URLs
// (URLElicitationRequiredError of 2025-11-25). The client then opens the URLs and repeats its request.
func (c *Client) OpensURLsOf(e *wire.RPCError) bool {
	return e.Code == mcp.URL_ELICITATION_REQUIRED && c != nil && !c.Modern() &&
		Lacks(c.Capabilities, string(mcp.MethodElicitationCreate), json.RawMessage(`{"mode":"url"}`)) == ""
}

// Modern reports whether the client speaks revision 2026-07-28 of MCP or a later one.
func (c *Client) Modern() bool { return c != nil && mcp.IsModernProtocol(c.Version) }

// TasksExtension is the capability of clients that accept a task instead of a result, and then poll the task (SEP-2663).
const TasksExtension = "io.modelcontextprotocol/tasks"

// RelatedTask is the member of _meta that names the task of a message (MCP 2025-11-25).
const RelatedTask = "io.modelcontextprotocol/related-task"

// RunsTasks reports whether the client has declared [TasksExtension].
func (c *Client) RunsTasks() bool { return c.extension(TasksExtension) != nil }

// appsExtension is the capability of clients that show the user interfaces of tools (MCP Apps).
const appsExtension = "io.modelcontextprotocol/ui"

// ShowsApps reports whether the client has declared appsExtension and its view lists tools with apps.
func (c *Client) ShowsApps() bool { return c != nil && c.Apps && c.extension(appsExtension) != nil }

// extension returns the object that the client declared for an extension; nil if it declared none.
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

// Relayed returns the capabilities that the client has declared and that mcpx relays to servers. If the client's view is
// transparent, these are all capabilities except tasks. Otherwise they are elicitation, sampling, roots, [TasksExtension] and,
// if the view lists tools with apps, appsExtension.
func (c *Client) Relayed() json.RawMessage {
	out := c.askable()
	if c == nil || c.Transparent {
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

// askable returns those of the client's capabilities with which a server may send it requests.
func (c *Client) askable() json.RawMessage {
	if c == nil {
		return json.RawMessage("{}")
	}
	return wire.Filter(c.Capabilities, c.asked)
}

// asked reports whether a server may send requests to the client because of this capability. value is the JSON of the capability.
func (c *Client) asked(name string, value []byte) bool {
	return value[0] == '{' && (c.Transparent && name != "tasks" || name == "elicitation" || name == "sampling" || name == "roots")
}
