// Package dial accepts MCP servers that dial in: they connect to mcpx over WebSocket, and not mcpx to them. It gives their
// connections to the upstreams, which use them.
package dial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/policy"
	"mcpx/internal/transport"
)

const (
	// maxServers is how many servers a principal may have, including servers that have lost their connection.
	maxServers = 10
	// awayTime is how long a server without a connection keeps its name and its place in the texts of inspect. It loses them
	// earlier if another server of its principal needs the room.
	awayTime = 10 * time.Minute
)

// Options are the settings of a [Hub].
type Options struct {
	// Current returns the section dial of the current config. If it returns nil, no server may dial in.
	Current func() *conf.Dial
	// Barred reports whether a principal may not dial in at all, whatever the rules of dial say; nil means that no principal is
	// barred.
	Barred func(*caller.Principal) bool
	// Taken reports whether the config has a server of this name.
	Taken func(name string) bool
	// Changed is called, without a lock, after a server was added or removed (but not by Recheck), and after Refresh.
	Changed func()
	// MaxMessage is the maximum length, in bytes, of one message of a server.
	MaxMessage int64
	Logger     *slog.Logger
	// Bounds limit a principal's servers; zero values mean the defaults.
	Bounds Bounds
	// Cluster connects this replica to the others; nil if there are no others. Relay lets another replica use a server that has
	// dialled in here, and that clients see under the name served. It passes messages between stream and the server until ctx ends.
	Cluster *cluster.Cluster
	Relay   func(ctx context.Context, served string, stream io.ReadWriteCloser) error
	// Ping is the time between two pings to a server, and Pong is the time in which the server must answer each ping. 0 means the
	// default of [transport.PeerOptions].
	Ping, Pong time.Duration
	// Alive is how long a server without a name of its own has to answer a ping before another server takes its name; 0 means
	// aliveTimeout.
	Alive time.Duration
}

// Hub knows the servers that have dialled in. It may be used by several goroutines at the same time.
type Hub struct {
	options Options
	mu      sync.Mutex
	slots   map[string]*slot  // keys are the served names ([policy.Dialled.Server])
	meters  map[string]*meter // by the ID of the principal; see dropMeters
	ended   bool
	naming  sync.Mutex // held while a server without a name gets a name; locked before mu
	shared
}

// New returns a hub. The caller must close it.
func New(o Options) *Hub {
	h := &Hub{options: o, slots: make(map[string]*slot), meters: make(map[string]*meter)}
	h.life, h.end = context.WithCancel(context.Background())
	h.wake = make(chan struct{}, 1)
	return h
}

// Server is a server that has dialled in.
type Server struct {
	policy.Dialled
	// Name is the name that the server brought, or that it got when it dialled in. By is the principal that has dialled in; nil
	// without authentication.
	Name string
	By   *caller.Principal
	// Place is set only if mcpx has chosen the name, because the server brought none. It identifies the [slot]. A later slot of the
	// same name may be for a different server, so it has another Place. The rest of mcpx then no longer uses what it knows of the
	// old server.
	Place string
	// Serial is different for each slot. A later slot may have the same name: then Arrived and Connect of the earlier slot get no
	// new connection any more.
	Serial string
	// Arrived waits until the server has a connection, and Connect returns this connection (see [transport.Options]). Admit refuses
	// lists that are too large (see [upstream.Catalogue]).
	Arrived func(ctx context.Context) error
	Connect func(ctx context.Context) (transport.Conn, error)
	Admit   func(kind catalog.Kind, items, bytes int) error
}

// slot is what the hub knows about one server, whether or not the server has a connection now. The mutex of the hub guards the
// fields below hub.
type slot struct {
	Server
	hub *Hub

	live    *conn         // the open connection; nil if there is none at this replica
	waiting *conn         // equal to live until the upstream takes the connection, then nil
	arrived chan struct{} // closed while a connection waits for the upstream, or while the upstream can open a [tunnel]
	since   time.Time     // when the server lost its connection
	forget  *time.Timer   // removes the slot; nil while the server has a connection, here or at another replica
	listed  map[catalog.Kind]listed
	elsewhere
}

// listed is the size of one list of a server, such as its tools.
type listed struct{ items, bytes int }

// Servers returns all servers that the hub knows, sorted by the names that clients see. It includes servers that lost their
// connection less than awayTime ago, and servers whose connection is at another replica.
func (h *Hub) Servers() []Server {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Server, 0, len(h.slots))
	for _, s := range h.slots {
		all = append(all, s.Server)
	}
	slices.SortFunc(all, func(a, b Server) int { return strings.Compare(a.Dialled.Server, b.Dialled.Server) })
	return all
}

// refusal says why a connection is refused, with the HTTP status of the answer.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// ownName matches the names that servedName makes for [conf.DialSelf]. Servers with another audience may not have such names.
// Otherwise a principal could take the name of another principal's server before that server dials in.
var ownName = pattern.New(`-[0-9a-f]{8}$`)

// place finds the [slot] for a server that dials in, or makes it. isNew reports whether the slot is new. The error is of type
// *refusal.
func (h *Hub) place(p *caller.Principal, name string) (s *slot, isNew bool, err error) {
	dial := h.options.Current()
	if dial == nil {
		return nil, false, &refusal{404, "no server may dial in here: the config has no key dial"}
	}
	if !validName.MatchString(name) {
		return nil, false, &refusal{400, "the name must have 1 to 40 letters, digits, '_' and '-', and begin with a letter or digit"}
	}
	rule := h.rule(dial, p, name)
	if rule == nil {
		return nil, false, &refusal{403, "no rule of dial.allow lets you dial in as " + name}
	}
	if rule.For != conf.DialSelf && ownName.MatchString(name) {
		return nil, false, &refusal{403, "a name that ends so belongs to a server for one principal: leave out the end"}
	}
	as := dialledAs(rule, p, name)
	served := as.Server
	if h.options.Taken(name) || h.options.Taken(served) {
		return nil, false, &refusal{403, name + " is the name of a server in the config of the hosted mcpx"}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return nil, false, &refusal{503, "mcpx is shutting down"}
	}
	switch s = h.slots[served]; {
	case s == nil:
	case s.Owner != p.Key():
		return nil, false, &refusal{409, name + " is held by another principal"}
	case reflect.DeepEqual(s.Dialled, as):
		return s, false, nil
	default: // what the rule or the principal's groups say has changed
		h.remove(s)
		h.replaced(s)
	}
	if err := h.room(p.Key()); err != nil {
		return nil, false, err
	}
	return h.newSlot(name, p, as), true, nil
}

// replaced ends a slot's connection to this replica, because the server has a newer connection: in another slot, or to another
// replica. The caller holds the lock.
func (h *Hub) replaced(s *slot) {
	if older := s.live; older != nil {
		h.loop.Go(func() { // ends within a second
			_ = older.CloseWith(transport.CloseReplaced, "replaced: the same principal has dialled in again as "+s.Name)
		})
	}
}

// newSlot makes a slot and puts it into h.slots. The caller holds the lock.
func (h *Hub) newSlot(name string, by *caller.Principal, as policy.Dialled) *slot {
	s := &slot{hub: h, arrived: make(chan struct{}), listed: make(map[catalog.Kind]listed)}
	s.Name, s.By, s.Dialled, s.Serial = name, by, as, rand.Text()
	s.Arrived, s.Connect, s.Admit = s.await, s.take, s.admit
	if isUnnamed(name) {
		s.Place = rand.Text()
	}
	h.slots[as.Server] = s
	return s
}

// room makes room for one more server of a principal. If the principal has maxServers servers, room removes the one that has been
// without a connection for the longest time. If all are connected, it returns a *refusal. The caller holds the lock.
func (h *Hub) room(owner string) error {
	count, oldest := 0, (*slot)(nil)
	for _, s := range h.slots {
		if s.Owner != owner {
			continue
		}
		if count++; s.live == nil && s.at == "" && s.forget != nil && (oldest == nil || s.since.Before(oldest.since)) {
			oldest = s
		}
	}
	if count < maxServers {
		return nil
	}
	if oldest == nil {
		return &refusal{429, fmt.Sprintf("you have %d connections already, which is the limit", maxServers)}
	}
	h.remove(oldest)
	return nil
}

// remove removes a slot. It ends the slot's [tunnel], and has the method tell end the server's record in the cluster. It does not
// close the server's connection. The caller holds the lock.
func (h *Hub) remove(s *slot) {
	s.stay()
	if s.tunnel != nil {
		s.tunnel.cut()
	}
	delete(h.slots, s.Dialled.Server)
	h.free(s)
	h.dropMeters()
}

// dropMeters removes the meters of principals that have no server, if their minute has ended. The caller holds the lock.
func (h *Hub) dropMeters() {
	here := make(map[string]bool)
	for _, s := range h.slots {
		here[s.Owner] = true
	}
	maps.DeleteFunc(h.meters, func(owner string, m *meter) bool { return !here[owner] && m.over() })
}

// use makes c the connection of the slot, and returns the connection that c replaces; nil if there is none. ok is false if c cannot
// be used, because the slot was removed or the hub is closed.
func (s *slot) use(c *conn) (older *conn, ok bool) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || h.slots[s.Dialled.Server] != s {
		h.free(s) // hold has claimed the record, but the slot was removed meanwhile
		return nil, false
	}
	s.stay()
	if s.at = ""; s.tunnel != nil {
		s.tunnel.cut()
	}
	older, s.live = s.live, c
	if s.waiting == nil && !s.armed {
		close(s.arrived)
	}
	s.waiting, s.armed = c, false
	return older, true
}

// stay stops the timer that would remove the slot. The caller holds the lock.
func (s *slot) stay() {
	if s.forget != nil {
		s.forget.Stop()
		s.forget = nil
	}
}

// meter returns the meter of a principal.
func (h *Hub) meter(owner string) *meter {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.meters[owner] == nil {
		h.dropMeters()
		h.meters[owner] = newMeter(h.options.Bounds)
	}
	return h.meters[owner]
}

func (h *Hub) log(s *slot) *slog.Logger {
	return h.options.Logger.With("server", s.Dialled.Server, "principal", s.By.String())
}

// gone notes that the connection c of the slot has ended. It does nothing if a newer connection has replaced c.
func (s *slot) gone(c *conn) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.live != c {
		return
	}
	if s.live = nil; s.waiting != nil {
		s.waiting, s.arrived = nil, make(chan struct{})
	}
	h.leave(s)
	h.look()
}

// leave starts the timer that removes a slot without a connection after awayTime. The caller holds the lock.
func (h *Hub) leave(s *slot) {
	if h.ended || h.slots[s.Dialled.Server] != s || s.forget != nil {
		return
	}
	s.since = time.Now()
	s.disarm()
	s.forget = time.AfterFunc(awayTime, func() { // stopped by use, remove and Close
		h.mu.Lock()
		lost := h.slots[s.Dialled.Server] == s && s.live == nil && s.at == ""
		if lost {
			h.remove(s)
		}
		h.mu.Unlock()
		if lost {
			h.options.Changed()
		}
	})
}

// await waits until the upstream can use the server, through a connection or a tunnel, at most until ctx ends. It implements
// [transport.Options.Arrived].
func (s *slot) await(ctx context.Context) error {
	s.hub.mu.Lock()
	arrived := s.arrived
	s.hub.mu.Unlock()
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errAway = errors.New("the server is away: its connection ended before it was used")

// take returns the connection that waits for the upstream, or opens a tunnel if the server is at another replica. It implements
// [transport.Options.Connect].
func (s *slot) take(context.Context) (transport.Conn, error) {
	s.hub.mu.Lock()
	if s.waiting == nil && s.armed {
		return s.open()
	}
	defer s.hub.mu.Unlock()
	c := s.waiting
	if c == nil {
		return nil, errAway
	}
	s.waiting, s.arrived = nil, make(chan struct{})
	return c, nil
}

// admit is called while the server lists its tools, resources or prompts ([upstream.Catalogue.Admit]). If all servers of its
// principal together list too much, admit returns an error, and closes the connection if it is at this replica. The reason for this
// bound: a catalogue needs many times the memory of its texts, and mcpx keeps it even while the server has no connection.
func (s *slot) admit(kind catalog.Kind, items, bytes int) error {
	h, most := s.hub, s.hub.options.Bounds.withDefaults()
	h.mu.Lock()
	before, tools, all := s.listed[kind], 0, 0
	s.listed[kind] = listed{items, bytes}
	for _, other := range h.slots {
		if other.Owner == s.Owner {
			tools += other.listed[catalog.Tools].items
			for _, one := range other.listed {
				all += one.bytes
			}
		}
	}
	why := ""
	switch {
	case tools > most.Tools:
		why = fmt.Sprintf("your servers have %d tools together, and may have %d", tools, most.Tools)
	case all > most.Listed:
		why = fmt.Sprintf("your servers list %d bytes of tools, resources and prompts together, and may list %d", all, most.Listed)
	}
	c := s.live
	if why != "" {
		s.listed[kind] = before
	}
	h.mu.Unlock()
	if why == "" {
		return nil
	}
	if c != nil {
		_ = c.CloseWith(transport.ClosePolicy, why)
	}
	return errors.New(why)
}

// closeAll closes all these connections at the same time. It takes at most a second.
func closeAll(open []*conn, code int, reason string) {
	var closing sync.WaitGroup
	for _, c := range open {
		closing.Go(func() { _ = c.CloseWith(code, reason) })
	}
	closing.Wait()
}

// Close closes all connections to this replica, and ends what Share has started. From then on no server may dial in.
func (h *Hub) Close() {
	h.mu.Lock()
	h.ended = true
	var open []*conn
	for _, s := range h.slots {
		if s.forget != nil {
			s.forget.Stop()
		}
		if s.live != nil {
			open = append(open, s.live)
		}
	}
	h.mu.Unlock()
	h.end()
	h.loop.Wait()
	closeAll(open, transport.CloseGoingAway, "mcpx is shutting down")
}

// State says in words how a server is connected. It returns "" if no server with this served name has dialled in.
func (h *Hub) State(served string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch s := h.slots[served]; {
	case s == nil:
		return ""
	case s.live == nil && s.at == "":
		return Away
	case s.live == nil:
		return "dialled in at another replica"
	}
	return "dialled in"
}
