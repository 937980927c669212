// Package catalog has the data types for servers, tools, resources and prompts, as immutable snapshots. It imports
// only base packages.
package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"sync"
)

// State is the state of an upstream server.
type State string

// The states of a server.
const (
	// Connecting: a first attempt or a reconnect is under way.
	Connecting State = "connecting"
	// Ready: a session is open and responds.
	Ready State = "ready"
	// Degraded: it responds, but fails health checks or crashes repeatedly.
	Degraded State = "degraded"
	// Unavailable: the last attempt failed; another follows after a backoff.
	Unavailable State = "unavailable"
	// Idle: no session is open as none is needed; the next call opens it.
	Idle State = "idle"
	// Disabled: switched off in the config.
	Disabled State = "disabled"
)

// Tool is a tool as its server declared it. The schemas are the upstream's bytes, at most compacted.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema is the JSON Schema of the arguments; nil if absent.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  json.RawMessage
	// Hints are the decoded annotations that affect decisions.
	Hints Hints
	// AppOnly means that the tool is for the server's own user interface, not for a model: _meta.ui.visibility
	// without "model" (MCP Apps).
	AppOnly bool
	// App is the URI of the user interface for the tool's results (MCP Apps); empty = none.
	App string
	// TaskOnly means that the tool must run as a task: execution.taskSupport "required" (MCP 2025-11-25). RunsAsTask means
	// that it may: "required" or "optional".
	TaskOnly, RunsAsTask bool
	Raw                  json.RawMessage
	// Own is the server's name for the tool if an override has renamed it or fixed some arguments; empty = Name.
	// Fixed are these arguments, a JSON object or nil.
	Own   string
	Fixed json.RawMessage
}

// OwnName returns the server's name for the tool.
func (t *Tool) OwnName() string { return cmp.Or(t.Own, t.Name) }

// Hints are the behaviour annotations of a tool (MCP ToolAnnotations). nil means not declared; the methods then
// return the default of the specification.
type Hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// IsReadOnly reports whether the tool is declared read-only.
func (h Hints) IsReadOnly() bool { return h.ReadOnly != nil && *h.ReadOnly }

// IsDestructive reports whether the tool may destroy something: it is declared so, or not declared and not read-only.
func (h Hints) IsDestructive() bool {
	if h.Destructive != nil {
		return *h.Destructive
	}
	return !h.IsReadOnly()
}

// IsIdempotent reports whether a repeated call has no further effect.
func (h Hints) IsIdempotent() bool { return h.Idempotent != nil && *h.Idempotent }

// IsOpenWorld reports whether the tool may interact with the outside.
func (h Hints) IsOpenWorld() bool { return h.OpenWorld == nil || *h.OpenWorld }

// Item is a resource, a resource template, a prompt or a skill as its server declared it.
type Item struct {
	// Name identifies it in requests: its uri, uriTemplate or name.
	Name string
	// Raw is the whole definition, at most compacted.
	Raw json.RawMessage
}

// Items are the lists of a server other than tools, in its order. They are immutable.
type Items struct {
	Resources, Templates, Prompts, Skills []Item
}

// Of returns the items of a kind; nil for tools.
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

// ItemKinds are the kinds of items that clients list. Clients see skills as tools.
var ItemKinds = [...]Kind{Resources, ResourceTemplates, Prompts}

func EqualItems(a, b []Item) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) ||
		slices.EqualFunc(a, b, func(a, b Item) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// Offers are the capabilities of a server besides tools, from the handshake.
type Offers struct {
	Resources   bool `json:"resources,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
	Prompts     bool `json:"prompts,omitempty"`
	Completions bool `json:"completions,omitempty"`
	Tasks       bool `json:"tasks,omitempty"`
	Skills      bool `json:"skills,omitempty"`
	// Others are the capabilities unknown to mcpx, a JSON object; empty = none.
	Others string `json:"others,omitempty"`
}

// Kinds returns the kinds of items that the server lists.
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

// MaxReason bounds the reason of a state, in runes. It is always shown uncut.
const MaxReason = 500

// Server is what is known about an upstream server at one moment.
type Server struct {
	Name string
	// Title and Version come from serverInfo: untrusted text.
	Title   string
	Version string
	// Description comes from the config and replaces Instructions in texts for the model.
	Description string
	// Instructions come from the server: untrusted text.
	Instructions string
	// State and Reason are current. Reason is empty for Ready.
	State  State
	Reason string
	// RetryAfter is the time until the next attempt in seconds; 0 = unknown.
	RetryAfter float64
	// Transport is stdio, http, sse or websocket.
	Transport string
	// Protocol is the negotiated revision, such as 2026-07-28; empty before.
	Protocol string
	// Known is false until a tools/list of this server was received or loaded from disk.
	Known bool
	// Tried means that an earlier run of mcpx got no list from the server: the startup does not wait for it.
	Tried bool
	// Generation distinguishes servers that had the same name one after another: a reload that changes a server's
	// identity increments it.
	Generation uint64
	// Key names the server's files in the cache; empty = nothing of the server is kept on disk.
	Key string
	// Tools are in the server's order.
	Tools []Tool
	// Listed is false until Offers and Items are known, live or from disk, which is later than Tools.
	Listed bool
	Offers Offers
	Items  *Items
	Restrictions

	index map[string]int
}

// Restrictions are what a caller may not use of a server. They are zero in the registry's snapshot.
type Restrictions struct {
	// Hidden explains, for users and models, why a server with tools shows none; empty if it shows some.
	Hidden string
	// Limited means that the caller may use only a part of the server, so mcpx does not forward requests that it does
	// not know.
	Limited bool
	// ToolsOnly means that the caller may use some of its tools but no resources and prompts, so names of these never
	// refer to this server.
	ToolsOnly bool
}

// Purpose says what the server is for: the config's description, else the server's instructions. Untrusted text.
func (s *Server) Purpose() string {
	return cmp.Or(s.Description, s.Instructions)
}

// Tool finds a tool by its exact name.
func (s *Server) Tool(name string) (*Tool, bool) {
	i, ok := s.index[name]
	if s.index == nil { // not from a snapshot
		i = slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == name })
		ok = i >= 0
	}
	if !ok {
		return nil, false
	}
	return &s.Tools[i], true
}

// Find finds a tool by its exact name, else by its name after the name of s; see [Unqualified].
func (s *Server) Find(name string) (*Tool, bool) {
	if t, ok := s.Tool(name); ok {
		return t, true
	}
	if rest, ok := Unqualified(name, s.Name); ok {
		return s.Tool(rest)
	}
	return nil, false
}

// ToolNames returns the names in the server's order.
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
	// Rules are the rules of the same configuration, not yet applied to Servers; nil = none. They are here so that a
	// caller never gets the rules of one configuration with the servers of another.
	Rules Rules
	// Empty explains, for users and models, why there is no server; empty = none is configured.
	Empty string

	index map[string]int
	names func() *names // computed at the first use

	mu      sync.Mutex
	derived map[any]*Snapshot // under mu
}

// Derived returns the snapshot derived for key. derive makes it at the first call; it lives as long as s.
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

// Rules say which tools exist for a caller, and how it sees them.
type Rules interface {
	// See returns a tool as callers see it, or the setting that hides it.
	See(server *Server, tool *Tool) (seen *Tool, hiddenBy string)
}

// NewSnapshot sorts the servers by name and indexes them. It takes over the slice.
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

// SameTools reports whether two lists are the same slice, which is enough for immutable lists.
func SameTools(a, b []Tool) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// EqualTools reports whether two lists have the same definitions.
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

// WithTools returns a copy of s with these tools only.
func (s Server) WithTools(tools []Tool) Server {
	s.Tools = tools
	s.index = indexTools(tools)
	return s
}

// WithToolsOf returns a copy of s with the tools of another server, without indexing them again.
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

// Tools counts the tools of all servers.
func (s *Snapshot) Tools() int {
	n := 0
	for i := range s.Servers {
		n += len(s.Servers[i].Tools)
	}
	return n
}
