// Package catalog has the data types for servers, tools, resources and prompts, and for immutable snapshots of them.
// It imports only packages under internal/base.
package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"sync"
)

// State is the state of an MCP server that mcpx connects to.
type State string

// These are the states of a server.
const (
	// Connecting: mcpx is connecting to the server, for the first time or again.
	Connecting State = "connecting"
	// Ready: there is a session with the server, and the server responds.
	Ready State = "ready"
	// Degraded: mcpx still uses the server, but health checks fail, the server crashes repeatedly, or some of its instances are
	// down.
	Degraded State = "degraded"
	// Unavailable: the last attempt to connect failed, and mcpx tries again after a pause; or the server's entry in the config
	// has a fault.
	Unavailable State = "unavailable"
	// Idle: there is no session, because none is needed at present. The next call opens one.
	Idle State = "idle"
	// NeedsLogin: each principal logs in to the server for itself, and mcpx learns what the server lists only once a principal has
	// logged in.
	NeedsLogin State = "needs login"
	// Disabled: the user has switched the server off in the config.
	Disabled State = "disabled"
)

// Tool is a tool as its server declared it. The schemas are the server's JSON; mcpx may remove white space from them.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema is the JSON Schema of the arguments. It is nil if the server sent none.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  json.RawMessage
	// Hints are the decoded Annotations that mcpx uses in its decisions.
	Hints Hints
	// AppOnly means that the tool is for the server's own user interface, not for a model: its _meta.ui.visibility does not
	// contain "model" (MCP Apps).
	AppOnly bool
	// App is the URI of the user interface that shows the tool's results (MCP Apps). It is empty if there is none.
	App string
	// TaskOnly means that the tool must be called as a task: execution.taskSupport is "required" (MCP 2025-11-25).
	// RunsAsTask means that it may be called as a task: taskSupport is "required" or "optional".
	TaskOnly, RunsAsTask bool
	Raw                  json.RawMessage
	// Own is the server's name for the tool if the config has renamed the tool or fixed some of its arguments. If Own
	// is empty, the server's name is Name. Fixed are the fixed arguments, a JSON object or nil.
	Own   string
	Fixed json.RawMessage
}

// OwnName returns the server's own name for the tool.
func (t *Tool) OwnName() string { return cmp.Or(t.Own, t.Name) }

// Hints are the behaviour annotations of a tool (MCP ToolAnnotations). A field is nil if the server did not declare the hint; the
// methods of Hints then return the specification's default.
type Hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// IsReadOnly reports whether the tool is declared read-only.
func (h Hints) IsReadOnly() bool { return h.ReadOnly != nil && *h.ReadOnly }

// IsDestructive reports whether the tool may destroy something. If the server did not declare the hint, it returns true for every tool
// that is not read-only.
func (h Hints) IsDestructive() bool {
	if h.Destructive != nil {
		return *h.Destructive
	}
	return !h.IsReadOnly()
}

// IsIdempotent reports whether the server declares that repeating a call has no further effect.
func (h Hints) IsIdempotent() bool { return h.Idempotent != nil && *h.Idempotent }

// IsOpenWorld reports whether the tool may interact with the world outside of its server. It is true unless the server declares
// that the tool does not.
func (h Hints) IsOpenWorld() bool { return h.OpenWorld == nil || *h.OpenWorld }

// Item is a resource, a resource template, a prompt or a skill as its server declared it.
type Item struct {
	// Name identifies the item in requests: it is its uri, uriTemplate or name.
	Name string
	// Raw is the whole definition as the server wrote it; mcpx may remove white space from it.
	Raw json.RawMessage
}

// Items are all lists of a server except the list of its tools. Each is in the server's order. They are immutable.
type Items struct {
	Resources, Templates, Prompts, Skills []Item
}

// Of returns the items of a kind. For Tools, or if i is nil, it returns nil.
func (i *Items) Of(kind Kind) []Item {
	switch {
	case i == nil:
	case kind == Resources:
		return i.Resources
	case kind == ResourceTemplates:
		return i.Templates
	case kind == Prompts:
		return i.Prompts
	case kind == Skills:
		return i.Skills
	}
	return nil
}

// ItemKinds are the kinds of items that clients can list. Skills are not among them: clients see them as tools.
var ItemKinds = [...]Kind{Resources, ResourceTemplates, Prompts}

func EqualItems(a, b []Item) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) ||
		slices.EqualFunc(a, b, func(a, b Item) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// Offers are the capabilities that a server declared in the handshake, besides tools.
type Offers struct {
	Resources   bool `json:"resources,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
	Prompts     bool `json:"prompts,omitempty"`
	Completions bool `json:"completions,omitempty"`
	Tasks       bool `json:"tasks,omitempty"`
	Skills      bool `json:"skills,omitempty"`
	// Others is a JSON object with the capabilities that mcpx does not know. It is empty if there are none.
	Others string `json:"others,omitempty"`
}

// Kinds returns the kinds of items that the server can list.
func (o Offers) Kinds() []Kind {
	var kinds []Kind
	if o.Resources {
		kinds = append(kinds, Resources, ResourceTemplates)
	}
	if o.Prompts {
		kinds = append(kinds, Prompts)
	}
	if o.Skills {
		kinds = append(kinds, Skills)
	}
	return kinds
}

// MaxReason is the length to which the reason of a state is cut, in runes. Texts for users and models cut it no further.
const MaxReason = 500

// Server is what mcpx knows about an MCP server at one moment.
type Server struct {
	Name string
	// Title and Version come from the server's serverInfo: untrusted text.
	Title   string
	Version string
	// Description comes from the config. In texts for the model it replaces Instructions.
	Description string
	// Instructions come from the server: untrusted text.
	Instructions string
	// State is the current state, and Reason explains it. Reason is empty if State is Ready.
	State  State
	Reason string
	// RetryAfter is the time until mcpx connects again, in seconds; 0 if unknown.
	RetryAfter float64
	// Transport is how mcpx reaches the server, such as "stdio", "http", "sse" or "websocket".
	Transport string
	// Protocol is the negotiated revision of MCP, such as 2026-07-28. It is empty before the handshake.
	Protocol string
	// Known is false until mcpx has received the tools of this server (tools/list), or loaded them from disk.
	Known bool
	// Tried means that an earlier run of mcpx got no tools/list from the server. So the startup does not wait for this server.
	Tried bool
	// Generation distinguishes servers that had the same name one after the other. A reload of the config increments it if the
	// name then means another server.
	Generation uint64
	// Key names the server's files in the cache. If Key is empty, nothing about the server is stored on disk: neither its catalogue
	// nor what its results have looked like.
	Key string
	// Tools are in the server's order.
	Tools []Tool
	// Listed is false until Offers and Items were received or loaded from disk. Tools are received or loaded
	// before Offers and Items.
	Listed bool
	Offers Offers
	Items  *Items
	Restrictions

	index map[string]int
}

// Restrictions say what a caller may not use of a server. In the registry's snapshot, which belongs to no caller, all Restrictions
// are zero.
type Restrictions struct {
	// Hidden explains, for users and models, why the caller sees none of the server's tools. It is empty if the caller
	// sees some.
	Hidden string
	// Limited means that the caller may use only a part of the server. Then mcpx does not forward requests whose
	// method it does not know.
	Limited bool
	// ToolsOnly means that the caller may use tools of the server, but no resources and prompts. Then no name of a
	// resource or prompt is resolved to this server.
	ToolsOnly bool
}

// Purpose returns what the server is for: the description in the config, or else the server's instructions. It is
// untrusted text.
func (s *Server) Purpose() string {
	return cmp.Or(s.Description, s.Instructions)
}

// Tool finds a tool by its exact name.
func (s *Server) Tool(name string) (*Tool, bool) {
	i, ok := s.index[name]
	if s.index == nil { // the server is not from a Snapshot
		i = slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == name })
		ok = i >= 0
	}
	if !ok {
		return nil, false
	}
	return &s.Tools[i], true
}

// Find finds a tool by its exact name, or else by a name that consists of the server's name, a separator and the
// tool's name; see [Unqualified].
func (s *Server) Find(name string) (*Tool, bool) {
	if t, ok := s.Tool(name); ok {
		return t, true
	}
	if rest, ok := Unqualified(name, s.Name); ok {
		return s.Tool(rest)
	}
	return nil, false
}

// ToolNames returns the names of the tools in the server's order.
func (s *Server) ToolNames() []string {
	names := make([]string, len(s.Tools))
	for i := range s.Tools {
		names[i] = s.Tools[i].Name
	}
	return names
}

// Snapshot is the state of all servers at one moment. Nothing in it changes after [NewSnapshot].
type Snapshot struct {
	Servers []Server
	// Rules are the rules of the config that Servers belong to. They are not yet applied to Servers. They are part of
	// the snapshot so that a caller never gets the rules of one config with the servers of another. nil means that
	// there are no rules.
	Rules Rules
	// Empty explains, for users and models, why there are no servers. If there are no servers and Empty is empty, the config has no
	// server.
	Empty string

	index map[string]int
	names func() *names // computed when first called

	mu      sync.Mutex
	derived map[any]*Snapshot // guarded by mu
}

// Derived returns a snapshot that derive makes from s. It calls derive only once for each key, and keeps the result as
// long as s lives.
func (s *Snapshot) Derived(key any, derive func() *Snapshot) *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.derived[key]
	if !ok {
		made = derive()
		if s.derived == nil {
			s.derived = map[any]*Snapshot{}
		}
		s.derived[key] = made
	}
	return made
}

// Rules say which tools a caller can see, and how it sees them.
type Rules interface {
	// See returns the tool as the caller sees it. If the caller must not see it, See returns nil and the name of the
	// setting that hides it.
	See(server *Server, tool *Tool) (seen *Tool, hiddenBy string)
}

// NewSnapshot returns a snapshot with these servers, sorted by name and indexed. The caller must not use the slice
// afterwards.
func NewSnapshot(servers []Server) *Snapshot {
	sort.Slice(servers, func(i, j int) bool { return servers[i].Name < servers[j].Name })
	snap := &Snapshot{Servers: servers, index: make(map[string]int, len(servers))}
	snap.names = sync.OnceValue(func() *names { return newNames(servers) })
	for i := range servers {
		snap.index[servers[i].Name] = i
		if servers[i].index == nil {
			servers[i].index = indexTools(servers[i].Tools)
		}
	}
	return snap
}

// SameTools reports whether two lists are the same slice, or both empty. Lists are immutable, so they then have the same tools.
func SameTools(a, b []Tool) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// EqualTools reports whether two lists have the same definitions in the same order.
func EqualTools(a, b []Tool) bool {
	return SameTools(a, b) || slices.EqualFunc(a, b, func(a, b Tool) bool { return bytes.Equal(a.Raw, b.Raw) })
}

func indexTools(tools []Tool) map[string]int {
	index := make(map[string]int, len(tools))
	for i := range tools {
		if _, twice := index[tools[i].Name]; !twice {
			index[tools[i].Name] = i
		}
	}
	return index
}

// WithTools returns a copy of s that has only these tools.
func (s Server) WithTools(tools []Tool) Server {
	s.Tools = tools
	s.index = indexTools(tools)
	return s
}

// WithToolsOf returns a copy of s with the tools of another server. It copies the index of the tools too, which saves
// time.
func (s Server) WithToolsOf(other *Server) Server {
	s.Tools, s.index = other.Tools, other.index
	return s
}

// Server finds a server by its exact name.
func (s *Snapshot) Server(name string) (*Server, bool) {
	i, ok := s.index[name]
	if !ok {
		return nil, false
	}
	return &s.Servers[i], true
}

// ServerNames returns the names of all servers, sorted.
func (s *Snapshot) ServerNames() []string {
	names := make([]string, len(s.Servers))
	for i := range s.Servers {
		names[i] = s.Servers[i].Name
	}
	return names
}

// Tools returns how many tools all servers have together.
func (s *Snapshot) Tools() int {
	n := 0
	for i := range s.Servers {
		n += len(s.Servers[i].Tools)
	}
	return n
}
