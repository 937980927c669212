package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/delay"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/base/wire"
	"mcpx/internal/desk/config"
	"mcpx/internal/front"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/transport"
)

const (
	firstRedial = time.Second
	longRedial  = time.Minute
	// dialWithin is how long one attempt to open the WebSocket may take.
	dialWithin = 30 * time.Second
	// The pause between two attempts to connect grows with each attempt, from about firstRedial to about longRedial. After a
	// connection that has lasted for stableTime or longer, the pause is short again.
	stableTime = time.Minute
	// serversWithin is how long mcpx waits for each server before it connects to the hosted mcpx for the first time. After that time
	// mcpx waits longer only for a server whose command is still installing or starting.
	serversWithin = 30 * time.Second
)

// dialout offers servers of this machine to a hosted mcpx.
type dialout struct {
	app            *App
	address, token string
	view           string
	say            func(line string)
	connect        func(ctx context.Context) error // opens and serves one connection; the method serveOne, except in tests
	count          int                             // how many connections there were
}

// Offered returns the config and the view with which mcpx dial offers servers. A single server is offered alone; mcpx does not
// compress its definitions and results. Several servers, or all servers if servers is empty, are offered together through the
// view named tools, which lists the tools of all of them.
func Offered(cfg *config.Config, servers []string) (*config.Config, string) {
	if len(servers) != 1 {
		return cfg, config.ViewTools
	}
	offered := *cfg // results stay as they are: the hosted mcpx shapes them for its clients
	offered.ToonCompression, offered.ResultTokenLimit, offered.Compress = false, 0, false
	return &offered, config.ViewServer + servers[0]
}

// offered is the name and version with which a server introduces itself. If the server gives no name, Name is the server's name in
// the config.
type offered struct{ Name, Version string }

// awaitServers waits until each server has answered or failed, but not longer than serversWithin allows, and tells the user the
// outcome. It waits because the hosted mcpx should get all tools at once.
func (d *dialout) awaitServers(ctx context.Context) {
	only, one := strings.CutPrefix(d.view, config.ViewServer)
	for _, s := range d.app.Registry.Snapshot().Servers {
		if s.State == catalog.Disabled {
			continue
		}
		d.app.Registry.WaitStart(ctx, s.Name, serversWithin, func(does string) { d.say(s.Name + ": " + does) })
		now, _ := d.app.Registry.Snapshot().Server(s.Name)
		switch {
		case now == nil || ctx.Err() != nil:
			return
		case !now.Known:
			d.say(fmt.Sprintf("%s: %s: %s", s.Name, now.State, sanitize.Line(now.Reason, 300)))
		default:
			d.say(fmt.Sprintf("offers %s: %s", s.Name, terminal.Count(len(now.Tools), "tool")))
		}
		if one && s.Name == only {
			d.app.offered = offered{Name: cmp.Or(now.Title, s.Name), Version: now.Version}
		}
	}
}

func (d *dialout) run(ctx context.Context) error {
	pause := firstRedial
	for {
		began := time.Now()
		err := d.connect(ctx)
		if ctx.Err() != nil {
			d.say("ended")
			return nil
		}
		if d.final(err) {
			return err
		}
		if time.Since(began) >= stableTime {
			pause = firstRedial
		}
		wait := pause/2 + rand.N(pause) // random, so that many devices do not reconnect at the same time
		d.say(fmt.Sprintf("%v; again in %s", err, wait.Round(100*time.Millisecond)))
		pause = min(2*pause, longRedial)
		if !delay.Sleep(ctx, wait) {
			d.say("ended")
			return nil
		}
	}
}

// final reports whether further attempts are useless after the error err. Two errors are always final: the hosted mcpx refuses
// the token, or another connection has replaced this one. Before any connection has worked, the HTTP statuses 400, 403 and 404
// are final too. Later they may be temporary, such as the answer of a proxy while the hosted mcpx restarts.
func (d *dialout) final(err error) bool {
	if refused, ok := errors.AsType[*transport.RefusedError](err); ok {
		switch refused.Status {
		case http.StatusUnauthorized:
			return true
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
			return d.count == 0
		}
	}
	closed, ok := errors.AsType[*transport.ClosedError](err)
	return ok && closed.Code == transport.CloseReplaced
}

// serveOne opens and serves one connection, and returns why it could not be opened or why it ended.
func (d *dialout) serveOne(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, dialWithin)
	headers := http.Header{}
	if d.token != "" {
		headers.Set("Authorization", "Bearer "+d.token)
	}
	peer, err := transport.DialPeer(bounded, d.address, headers, transport.PeerOptions{
		MaxMessage: d.app.Config.MaxMessageBytes, Name: "the hosted mcpx", Subprotocol: dial.Subprotocol,
	})
	cancel()
	if err != nil {
		return err
	}
	d.count++
	d.say("connected to " + transport.HostOf(d.address))
	return d.serve(ctx, peer)
}

// serve serves the hosted mcpx over one connection until the connection ends, and returns why it ended.
func (d *dialout) serve(ctx context.Context, peer *transport.Peer) error {
	other := &hostedEnd{Peer: peer, say: d.say}
	_ = d.app.views.get(d.view).front.ServePeer(ctx, other, front.StdioOptions{ // the error is not lost: Read returns it below
		Grace: d.app.grace(), Session: fmt.Sprint("dial-", d.count), Peer: "dial",
	})
	if ctx.Err() != nil {
		_ = peer.CloseWith(transport.CloseGoingAway, "mcpx dial was ended")
	} else {
		_ = peer.Close()
	}
	for {
		_, err := other.Read()
		if _, large := errors.AsType[*wire.TooLargeError](err); err != nil && !large {
			return err
		}
	}
}

// hostedEnd is the hosted mcpx at the other end of a connection.
type hostedEnd struct {
	*transport.Peer
	say func(line string)

	mu   sync.Mutex // held while Read reads
	lost error      // why the connection has ended; nil before that
}

// Read returns the next message. It tells the user of a message that is too large, which the front refuses. After the end of the
// connection, Read returns the error that ended it.
func (h *hostedEnd) Read() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return nil, h.lost
	}
	message, err := h.Peer.Read()
	if large, ok := errors.AsType[*wire.TooLargeError](err); ok {
		h.say(fmt.Sprintf("a message of the hosted mcpx was refused: it is over the limit of %d bytes (max_message_bytes)", large.Limit))
	} else {
		h.lost = err
	}
	return message, err
}

// CheckDialAddress returns what is wrong with the address of a hosted mcpx, or "" if it is usable. Without TLS the address must be
// on this machine, because the token would be sent in plain text.
func CheckDialAddress(address string) string {
	rest, secure := strings.CutPrefix(address, "wss://")
	if !secure {
		var plain bool
		if rest, plain = strings.CutPrefix(address, "ws://"); !plain {
			return "the address must begin with wss://"
		}
	}
	host, name, _ := strings.Cut(rest, dial.Path)
	switch {
	case host == "" || name == "":
		return "the address must be wss://HOST/dial/NAME"
	case !secure && !netguard.Loopback(hostOnly(host)):
		return "without TLS (ws:) only this machine can be dialled; use wss:"
	}
	return ""
}

func hostOnly(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
