package dial

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/base/pattern"
	"mcpx/internal/caller"
	"mcpx/internal/transport"
)

// Away is the state of a server that has dialled in before and has no connection now.
const Away = "away"

// Path is the beginning of the path at which servers dial in. The server's name follows.
const Path = "/dial/"

// Subprotocol is the WebSocket subprotocol of servers that dial in.
const Subprotocol = "mcp"

var validName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// ServeHTTP accepts the connection of a server. The caller has authenticated the request. ServeHTTP returns when the connection
// has ended, or at once if it refuses the connection.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.serve(w, r, caller.From(r.Context()), strings.TrimPrefix(r.URL.Path, Path), Subprotocol)
}

func (h *Hub) serve(w http.ResponseWriter, r *http.Request, p *caller.Principal, name, subprotocol string) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "servers dial in here over WebSocket: mcpx dial wss://HOST/dial/NAME", http.StatusUpgradeRequired)
		return
	}
	place := h.place
	if name == anyName {
		place = h.placeUnnamed
	}
	s, fresh, err := place(p, name)
	if refused, ok := errors.AsType[*refusal](err); ok {
		h.options.Logger.Info("dialling in refused", "name", name, "principal", p.String(), "reason", refused.text)
		http.Error(w, refused.text, refused.status)
		return
	}
	c := &conn{meter: h.meter(s.Owner), log: h.log(s)}
	c.Peer, err = transport.AcceptPeer(w, r, transport.PeerOptions{
		MaxMessage: h.options.MaxMessage, Name: "the server", Subprotocol: subprotocol, Received: c.received,
		Ping: h.options.Ping, Pong: h.options.Pong,
	})
	if err != nil {
		h.unused(s, fresh)
		h.options.Logger.Info("dialling in failed", "name", name, "err", err)
		return
	}
	h.hold(r.Context(), s, c, fresh)
}

// unused is called if a connection cannot be used after all, although the method place has returned a [slot] for it. If no other
// connection uses the slot, unused removes the slot if it is new, and else lets it expire. For a new slot, the method place may
// have removed an older one, so unused then calls [Options.Changed].
func (h *Hub) unused(s *slot, isNew bool) {
	if isNew {
		defer h.options.Changed()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case s.live != nil || s.at != "" || s.forget != nil || h.slots[s.Dialled.Server] != s:
	case isNew:
		h.remove(s)
	default:
		h.leave(s)
	}
}

// hold gives the connection c to the slot, and returns when c has ended. It closes c when the credential of the principal expires,
// or when ctx ends because the credential was revoked. It closes c at once if the name cannot be claimed in the cluster, or if the
// slot was removed.
func (h *Hub) hold(ctx context.Context, s *slot, c *conn, isNew bool) {
	if err := h.claim(ctx, s); err != nil {
		h.unused(s, isNew)
		h.options.Logger.Info("dialling in refused", "name", s.Name, "principal", s.By.String(), "reason", err)
		_ = c.CloseWith(transport.CloseGoingAway, "try again: "+err.Error())
		return
	}
	older, ok := s.use(c)
	if !ok {
		_ = c.CloseWith(transport.CloseGoingAway, "try again")
		return
	}
	log := h.log(s)
	if older != nil {
		log.Info("a newer connection replaces the server")
		_ = older.CloseWith(transport.CloseReplaced, "replaced: the same principal has dialled in again as "+s.Name)
	}
	log.Info("a server has dialled in", "for", s.For)
	if isNew {
		h.options.Changed()
	}
	var expired <-chan time.Time
	if until := caller.Until(ctx); !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-c.Over():
	case <-expired:
		_ = c.CloseWith(transport.ClosePolicy, "the token has expired")
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), caller.ErrRevoked) {
			_ = c.CloseWith(transport.ClosePolicy, "the token is not valid any more")
		}
		// A shutdown also ends ctx. Then Close closes the connection, but only when no call needs it any more.
		<-c.Over()
	}
	s.gone(c)
	_ = c.Close() // needed if the upstream has not taken the connection
	log.Info("the server is away")
}
