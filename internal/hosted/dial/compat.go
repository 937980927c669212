package dial

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/pattern"
	"mcpx/internal/caller"
)

// aliveTimeout is how long a silent server without a name of its own has to answer a ping before a new connection takes its name.
// It is short because clients wait 10 s for a WebSocket to open.
const aliveTimeout = 5 * time.Second

// ServeAgent accepts a tool server of an agent. The agent connects as in the older system that mcpx replaces: the name of the
// server is in the query (server_id). A server without a name gets one that no other server of the agent has. The caller has
// authenticated the request. ServeAgent returns when the connection has ended, or at once if it refuses the connection.
func (h *Hub) ServeAgent(w http.ResponseWriter, r *http.Request) {
	p, name := caller.From(r.Context()), r.URL.Query().Get("server_id")
	switch {
	case name == "" || name == anyName:
		name = anyName
		h.endSilent(p)
	case !validName.MatchString(name):
		name = safeName(name)
	}
	h.serve(w, r, p, name, "")
}

var unfit = pattern.New(`[^A-Za-z0-9_-]`)

// safeName turns an id into a valid name, because the older system accepts any text as an id. A digest of the id at the end keeps
// the names of different ids apart. It has 6 hex digits, because a name that ends with 8 of them would look like a name of
// servedName ([ownName]).
func safeName(id string) string {
	name := strings.TrimLeft(unfit.ReplaceAllString(id, "_"), "_-")
	name = strings.TrimRight(name[:min(len(name), 33)], "_-")
	return fmt.Sprintf("%s-%.3x", cmp.Or(name, "server"), sha256.Sum256([]byte(id)))
}

// anyName takes the place of a server's name, if the server wants mcpx to choose one that no other server of the principal has. It
// is not itself a valid name.
const anyName = "*"

// placeUnnamed does what the method place does, but for a server without a name of its own: it first chooses a name for the server.
func (h *Hub) placeUnnamed(p *caller.Principal, _ string) (s *slot, isNew bool, err error) {
	h.naming.Lock() // so that two servers that come at the same time get different names
	defer h.naming.Unlock()
	if s, isNew, err = h.place(p, h.vacant(p)); err == nil && !isNew {
		h.mu.Lock()
		defer h.mu.Unlock()
		// The slot belongs to a server that had lost its connection, and its timer would remove it. Without the timer the slot
		// stays until the method use or unused is called.
		s.stay()
	}
	return s, isNew, err
}

// vacant chooses a name for a server that brings none. If exactly one unnamed server of the principal has lost its connection, that
// server has most likely come back, and vacant returns its name. If several have lost their connections, nobody knows which one has
// come back. In this case vacant removes all of them, and returns the first free name.
func (h *Hub) vacant(p *caller.Principal) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := make(map[string]bool)
	var left []*slot
	for _, s := range h.slots {
		if s.Owner != p.Key() || !isUnnamed(s.Name) {
			continue
		}
		if held[s.Name] = true; s.live == nil && s.at == "" && s.forget != nil {
			left = append(left, s)
		}
	}
	if len(left) == 1 {
		return left[0].Name
	}
	for _, s := range left {
		h.remove(s)
		delete(held, s.Name)
	}
	i := 0
	for held[unnamed(i)] {
		i++
	}
	return unnamed(i)
}

// unnamed returns one of the names for servers without a name of their own: default for i = 0, then default-2, default-3 and so on.
func unnamed(i int) string {
	if i == 0 {
		return "default"
	}
	return "default-" + strconv.Itoa(i+1)
}

// isUnnamed reports whether a name is one of those that unnamed returns.
func isUnnamed(name string) bool {
	number, ok := strings.CutPrefix(name, "default-")
	n, err := strconv.Atoi(number)
	return name == "default" || ok && err == nil && n > 1
}

// endSilent pings the connections of the principal's servers that have no name of their own, and closes those that do not answer. A
// device that has lost its network does not close its connection. It usually dials in again before the regular pings find the old
// connection dead.
func (h *Hub) endSilent(p *caller.Principal) {
	h.mu.Lock()
	open := make(map[*slot]*conn)
	for _, s := range h.slots {
		if s.Owner == p.Key() && isUnnamed(s.Name) && s.live != nil && s.waiting == nil { // in use by the upstream
			open[s] = s.live
		}
	}
	h.mu.Unlock()
	var asked sync.WaitGroup
	for s, c := range open {
		asked.Go(func() {
			if !c.Answers(cmp.Or(h.options.Alive, aliveTimeout)) {
				s.gone(c)
			}
		})
	}
	asked.Wait()
}
