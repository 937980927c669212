// Package catalog has the types of what is known about servers, tools, resources and
// prompts, as immutable snapshots. It imports nothing of mcpx.
package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"sync"
)

// State is where the session of one upstream server stands (design 7, issue 4).
type State string

// The states of a server.
const (
	// Connecting: a first attempt, or a fresh session after a loss, is under way.
	Connecting State = "connecting"
	// Ready: a session is open and answers.
	Ready State = "ready"
	// Degraded: answers, but fails health checks or is in a crash loop.
	Degraded State = "degraded"
	// Unavailable: the last attempt failed; another follows after a backoff.
	Unavailable State = "unavailable"
	// Idle: no session is open, as nobody needs one; the next call opens it.
	Idle State = "idle"
	// Disabled: the config says so; never connected.
	Disabled State = "disabled"
)

// Tool is one tool as its server declared it. The schemas are the upstream's
// bytes (compacted at most); nothing in mcpx re-encodes them.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema is the JSON Schema of the arguments; nil where the server sent none.
	InputSchema json.RawMessage
	// OutputSchema is nil where the tool declares none.
	OutputSchema json.RawMessage
	// Annotations is the raw annotations object, nil where absent.
	Annotations json.RawMessage
	// Hints are the annotations that decide something, decoded.
	Hints Hints
	// AppOnly says that the tool is for the server's own user interface, and not for a
	// model: _meta.ui.visibility without "model" (MCP Apps).
	AppOnly bool
	// App is the URI of the user interface that a host shows with the results of the tool
	// (MCP Apps); empty = none.
	App string
	// TaskOnly says that the tool runs as a task only: execution.taskSupport "required"
	// (MCP 2025-11-25).
	TaskOnly bool
	// Raw is the whole definition as it was sent.
	Raw json.RawMessage
	// Own is the name by which the server knows the tool, where an override gave it
	// another or fixed arguments; empty = Name. Fixed are those arguments, a JSON object,
	// nil where there are none.
	Own   string
	Fixed json.RawMessage
}

// OwnName is the name by which the server knows the tool.
func (t *Tool) OwnName() string { return cmp.Or(t.Own, t.Name) }

// Hints are the behaviour annotations of a tool (MCP ToolAnnotations). A nil
// pointer means that the tool does not say.
type Hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// IsReadOnly reports whether the tool is declared read-only. Absent means no
// (the default of the specification).
func (h Hints) IsReadOnly() bool { return h.ReadOnly != nil && *h.ReadOnly }

// IsDestructive reports whether the tool may destroy something: declared so, or
// not declared and not read-only (the default of the specification).
func (h Hints) IsDestructive() bool {
	if h.Destructive != nil {
		return *h.Destructive
	}
	return !h.IsReadOnly()
}

// IsIdempotent reports whether a repeated call does no more than the first.
func (h Hints) IsIdempotent() bool { return h.Idempotent != nil && *h.Idempotent }

// IsOpenWorld reports whether the tool reaches outside. Absent means yes (the
// default of the specification).
func (h Hints) IsOpenWorld() bool { return h.OpenWorld == nil || *h.OpenWorld }

// Item is a resource, a resource template or a prompt as its server declared it.
type Item struct {
	// Name is the member that requests name it by: its uri, uriTemplate or name.
	Name string
	// Raw is the whole definition as it was sent (compacted at most).
	Raw json.RawMessage
}

// Items are what a server lists beside its tools, in its order. Nobody changes them:
// another list is another *Items.
type Items struct {
	Resources, Templates, Prompts, Skills []Item
}

// Of are the items of a kind. Tools are no items.
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

// ItemKinds are the kinds of items that clients list. Skills they see as tools.
var ItemKinds = [...]Kind{Resources, ResourceTemplates, Prompts}

// EqualItems reports whether two lists have the same definitions.
func EqualItems(a, b []Item) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) ||
		slices.EqualFunc(a, b, func(a, b Item) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// Offers are the capabilities of a server beside tools, as it said in the handshake.
type Offers struct {
	Resources   bool `json:"resources,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
	Prompts     bool `json:"prompts,omitempty"`
	Completions bool `json:"completions,omitempty"`
	// Tasks and Skills are extensions.
	Tasks  bool `json:"tasks,omitempty"`
	Skills bool `json:"skills,omitempty"`
	// Others are the capabilities that mcpx does not know, a JSON object; empty = none.
	Others string `json:"others,omitempty"`
}

// Kinds are the kinds of items that the server lists.
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

// MaxReason bounds the reason for a server's state, in runes. Whoever tells it tells
// all of it.
const MaxReason = 500

// Server is what is known about one upstream server at one moment.
type Server struct {
	Name string
	// Title is the server's own display name (serverInfo), foreign text.
	Title string
	// Version is the server's own version (serverInfo), foreign text.
	Version string
	// Description comes from the config and replaces Instructions where texts
	// are made for the model.
	Description string
	// Instructions is what the server says of itself, foreign text.
	Instructions string
	// State and Reason are live. Reason is empty for Ready.
	State  State
	Reason string
	// RetryAfter is the number of seconds until the next attempt, 0 if unknown.
	RetryAfter float64
	// Transport is stdio, http, sse or websocket.
	Transport string
	// Protocol is the negotiated revision such as 2026-07-28, empty before that.
	Protocol string
	// Known is false until a tools/list of this server was seen, live or on disk.
	Known bool
	// Tried says that an earlier start of mcpx tried the server and got no list: this
	// start waits for none.
	Tried bool
	// Generation tells servers apart that had one name one after the other: a
	// reload that changes what a server is gives it another one.
	Generation uint64
	// Tools are in the upstream's order.
	Tools []Tool
	// Listed is false until Offers and Items are known, live or from disk. Servers say
	// later than their tools what else they list.
	Listed bool
	Offers Offers
	Items  *Items
	Restrictions

	index map[string]int
}

// Restrictions are what a caller does not get of a server. They are zero in the
// registry's snapshot, which shows servers as they are.
type Restrictions struct {
	// Hidden says, for people and models, why a server that has tools shows none;
	// empty where it shows some.
	Hidden string
	// Limited: the caller may not do all that the server can, so mcpx does not send it
	// requests that it does not know.
	Limited bool
	// ToolsOnly: the caller gets some of its tools and nothing else, so no name of a
	// resource or a prompt is one of this server.
	ToolsOnly bool
}

// Purpose is the text that says what the server is for: the config's
// description, else the server's instructions. Foreign text, uncleaned.
func (s *Server) Purpose() string {
	return cmp.Or(s.Description, s.Instructions)
}

// Tool finds a tool by its exact name.
func (s *Server) Tool(name string) (*Tool, bool) {
	i, ok := s.index[name]
	if s.index == nil { // not of a snapshot
		i = slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == name })
		ok = i >= 0
	}
	if !ok {
		return nil, false
	}
	return &s.Tools[i], true
}

// ToolNames are the names in the upstream's order.
func (s *Server) ToolNames() []string {
	names := make([]string, len(s.Tools))
	for i := range s.Tools {
		names[i] = s.Tools[i].Name
	}
	return names
}

// Snapshot is everything known at one moment. It is immutable: nobody writes to
// it, or to what it points to, after [NewSnapshot] returned it.
type Snapshot struct {
	// Servers are sorted by name.
	Servers []Server
	// Rules came with these servers, and are not applied to them yet; nil = none.
	// One snapshot has both, so that no caller has the rules of one configuration
	// and the servers of another.
	Rules Rules
	// Empty says, for people and models, why there is no server and what to do; empty: none is
	// configured.
	Empty string

	index map[string]int
	names func() *names // made once, when somebody asks

	mu      sync.Mutex
	derived map[any]*Snapshot // under mu
}

// Derived is a snapshot that derive makes of this one. It is made once for each key, and
// kept with this one.
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
	// See is a tool of a server as callers see it, or the setting that hides it.
	See(server *Server, tool *Tool) (seen *Tool, hiddenBy string)
}

// NewSnapshot takes over servers, sorts them by name and indexes them.
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

// SameTools reports whether two catalogues are one slice. They are never changed, so
// that is enough, and cheap.
func SameTools(a, b []Tool) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// EqualTools reports whether two catalogues have the same definitions.
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

// WithTools returns a copy of s that has these tools, and only these.
func (s Server) WithTools(tools []Tool) Server {
	s.Tools = tools
	s.index = indexTools(tools)
	return s
}

// WithToolsOf returns a copy of s that has the tools of another, which need not be
// indexed again.
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

// ServerNames are the names of all servers, sorted.
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
