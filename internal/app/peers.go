package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/front"
	"mcpx/internal/hosted/cluster"
)

// peers implements [front.Peers]: with it, package front exchanges requests and messages with the other replicas of the cluster.
type peers struct{ *cluster.Cluster }

const (
	// kindSession is the kind of message about a session that a replica sends to all others, such as a notification from the session's
	// client.
	kindSession = "session"
	// kindEnded is the kind of message with which a replica that has ended a session asks another one to end its copy. The
	// answer is empty.
	kindEnded = "ended"
	// endedTime is how long a replica that ends a session waits, at most, for the answers of the other replicas.
	endedTime = 3 * time.Second
	// Some servers have a session for each client program. The replica that holds the sessions of a program is its home. The cluster
	// forgets a home after homeTime, unless it is renewed. A request of the program renews the home if the last renewal was longer than
	// homeRenewed ago.
	homeTime    = 2 * time.Hour
	homeRenewed = 10 * time.Minute
)

// about is the first line of a message about a session. It says which view and which session the message is about.
type about struct {
	View    string `json:"view"`
	Session string `json:"session"`
}

// peers returns the other replicas, or nil without a cluster.
func (a *App) peers() front.Peers {
	if a.state.cluster == nil {
		return nil
	}
	return peers{a.state.cluster}
}

// replica returns the id of this process in the cluster, or "" without a cluster.
func (a *App) replica() string {
	if a.state.cluster == nil {
		return ""
	}
	return a.state.cluster.Self()
}

// answerPeers makes this replica answer the requests and messages of the other replicas, until the cluster is closed.
func (a *App) answerPeers() {
	c := a.state.cluster
	if c == nil {
		return
	}
	c.AnswerHTTP(func(w http.ResponseWriter, r *http.Request) {
		ctx := front.Forwarded(r.Context())
		// The other replica has authenticated the client, and this replica relies on that: while a changed config reaches one
		// replica after the other, the same token may belong to somebody else here. Two things cannot be sent between replicas:
		// when the credential is revoked, and the func IssuerToken of the principal. So this replica looks them up itself. With a
		// client certificate it cannot, because certificates are not sent on. Then it lacks both.
		if proof := a.identity.Forwarded(r, caller.From(ctx), caller.Until(ctx)); proof != nil {
			proved, end := proof.Context(ctx)
			defer end()
			ctx = proved
		}
		for _, e := range a.views.Serve(w, r.WithContext(ctx)) {
			a.journal.End(e)
		}
	})
	c.Answer(kindEnded, func(ctx context.Context, _ string, data []byte, _ func([]byte) error) error {
		var of about
		if err := json.Unmarshal(data, &of); err != nil {
			return err
		}
		// The session has ended at the replica that asks. So this replica marks its copy of the session as ended too.
		if err := a.state.sessions.End(ctx, of.Session); err != nil {
			return err
		}
		if one := a.views.opened(of.View); one != nil {
			one.front.Ended(of.Session)
		}
		return nil
	})
	c.Hear(kindSession, func(_ string, data []byte) {
		first, message, _ := bytes.Cut(data, []byte{'\n'})
		var of about
		if json.Unmarshal(first, &of) != nil {
			return
		}
		if one := a.views.opened(of.View); one != nil {
			one.front.Told(of.Session, message)
		}
	})
}

// Everyone sends a message about a session to all other replicas, and does not wait. It implements [front.Peers].
func (p peers) Everyone(view, session string, message []byte) {
	first, err := json.Marshal(about{view, session})
	// If NATS cannot be reached, the message is lost, as if the client had sent it too late.
	if err == nil {
		_ = p.Tell(kindSession, append(append(first, '\n'), message...))
	}
}

// Ended tells all other replicas that a session has ended, and waits until they have marked the session as ended too, but not longer than
// endedTime. It implements [front.Peers].
func (p peers) Ended(ctx context.Context, view, session string) {
	ctx, cancel := context.WithTimeout(ctx, endedTime)
	defer cancel()
	data, _ := json.Marshal(about{view, session}) // cannot fail
	var asked sync.WaitGroup
	for _, id := range p.Others() {
		asked.Go(func() {
			// After an error, nothing is left to do: that replica has ended, or it will learn of the end from the records in NATS.
			for range p.Ask(ctx, id, kindEnded, data) {
			}
		})
	}
	asked.Wait()
}

// Forward sends a request to another replica and writes the response to w. The error wraps [front.ErrUntaken] if that replica has
// not taken the request. Forward implements [front.Peers].
func (p peers) Forward(w http.ResponseWriter, r *http.Request, body []byte, to string) error {
	err := p.Cluster.Forward(w, r, body, to)
	if errors.Is(err, cluster.ErrUntaken) {
		err = fmt.Errorf("%w (%w)", front.ErrUntaken, err)
	}
	return err
}

// Home returns the replica that is the home of a client program. If the program has no home, this replica becomes the home. It also
// becomes the home if the old home has ended or is shutting down. In that case lost is true, because the program's sessions have
// ended with the old home. If the cluster cannot be reached, Home returns the last home that this replica knows, or an error. Home
// implements [front.Peers].
func (p peers) Home(ctx context.Context, program string) (home string, lost bool, err error) {
	hash := sha256.Sum256([]byte(program))
	key, now := "home."+hex.EncodeToString(hash[:]), time.Now()
	value, err := p.Records().Get(key)
	if home = p.homeIn(value, now); err == nil && home != "" {
		return home, false, nil
	}
	err = p.Records().Change(ctx, key, func(old []byte) ([]byte, time.Time, error) {
		if home, _, _ = strings.Cut(string(old), " "); home == "" || !p.Stays(home) {
			home, lost = p.Self(), home != ""
		}
		return []byte(home + " " + strconv.FormatInt(now.Unix(), 10)), now.Add(homeTime), nil
	})
	if errors.Is(err, state.ErrAway) && len(value) > 0 {
		home, _, _ = strings.Cut(string(value), " ")
		return home, false, nil
	}
	return home, lost, err
}

// homeIn returns the replica that the record of a home names. It returns "" if the replica has ended or is shutting down, or if the
// record must be renewed.
func (p peers) homeIn(value []byte, now time.Time) string {
	home, since, _ := strings.Cut(string(value), " ")
	if at, err := strconv.ParseInt(since, 10, 64); err != nil || now.Sub(time.Unix(at, 0)) > homeRenewed || !p.Stays(home) {
		return ""
	}
	return home
}

// homed returns the names of a view's servers that are enabled and for which match returns true.
func (a *App) homed(view string, match func(*config.Server) bool) (names []string) {
	cfg := a.current.Load().config
	part, _ := scopeOf(cfg, view)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		if s.Enabled && match(s) && (part == nil || slices.Contains(part.Servers, s.Name)) {
			names = append(names, s.Name)
		}
	}
	return names
}
