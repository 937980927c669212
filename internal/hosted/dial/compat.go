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

// aliveTimeout is how long a silent server without a name of its own has to answer before a new connection takes its name. It
// is short because clients wait 10 s for a WebSocket to open.
const aliveTimeout = 5 * time.Second

// ServeAgent accepts a tool server of an agent that connects as in the older system that mcpx replaces. The name of the server
// is in the query; if there is none, the server gets a name that no other server of the agent has. The caller has authenticated
// the request. ServeAgent returns when the connection has ended, or at once if it refuses the connection.
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

// safeName makes a valid name of an id that is none, since the older system accepts any text as an id. The digest keeps the names of
// two ids apart. It has 6 digits, as [ownName] matches the 8 digits of another digest.
func safeName(id string) string {
	name := strings.TrimLeft(unfit.ReplaceAllString(id, "_"), "_-")
	name = strings.TrimRight(name[:min(len(name), 33)], "_-")
	return fmt.Sprintf("%s-%.3x", cmp.Or(name, "server"), sha256.Sum256([]byte(id)))
}

// anyName, in place of a server's name, asks for a name that no other server of the principal has. It is not a valid name
// itself.
const anyName = "*"

// placeUnnamed finds or makes the [slot] for the connection of a server without a name of its own. isNew reports whether the
// slot is new.
func (h *Hub) placeUnnamed(p *caller.Principal, _ string) (s *slot, isNew bool, err error) {
	h.naming.Lock() // otherwise a second server that comes now would get the same name
	defer h.naming.Unlock()
	if s, isNew, err = h.place(p, h.vacant(p)); err == nil && !isNew {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.stay() // the server had lost its connection: keep the slot until the method use or unused is called
	}
	return s, isNew, err
}

// vacant returns a name for a server that brings none. If exactly one unnamed server of the principal has lost its connection,
// vacant returns the name of this server, which has most likely come back. If several have lost theirs, nobody knows which one
// has come back. Then vacant removes all of them, and returns the first free name.
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

// unnamed returns the name at index i for servers without a name of their own: default, default-2, default-3 and so on.
func unnamed(i int) string {
	if i == 0 {
		return "default"
	}
	return "default-" + strconv.Itoa(i+1)
}

// isUnnamed reports whether unnamed can return this name.
func isUnnamed(name string) bool {
	number, ok := strings.CutPrefix(name, "default-")
	n, err := strconv.Atoi(number)
	return name == "default" || ok && err == nil && n > 1
}

// endSilent closes connections of a principal's servers that have no name of their own, if they do not answer a ping. A device
// that has lost its network does not close its connection, and usually dials in again before regular pings find the old one dead.
func (h *Hub) endSilent(p *caller.Principal) {
	h.mu.Lock()
	open := make(map[*slot]*conn)
	for _, s := range h.slots {
		if s.Owner == p.Key() && isUnnamed(s.Name) && s.live != nil && s.waiting == nil { // the upstream has the connection
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
