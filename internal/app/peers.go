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
	"mcpx/internal/desk/config"
	"mcpx/internal/front"
	"mcpx/internal/hosted/cluster"
)

// peers implements [front.Peers] with a cluster.
type peers struct{ *cluster.Cluster }

const (
	// kindSession is the kind of messages about sessions that all replicas get ([front.Peers.Everyone]).
	kindSession = "session"
	// kindEnded is the kind of questions with which [front.Peers.Ended] ends a session elsewhere. The answer is empty.
	kindEnded = "ended"
	// endedTime is how long the end of a session waits, at most, for replicas that do not answer.
	endedTime = 3 * time.Second
	// homeTime is how long a program keeps its home, the replica with its sessions, without a request. The record of the home is
	// renewed once it is older than homeRenewed.
	homeTime    = 2 * time.Hour
	homeRenewed = 10 * time.Minute
)

// about is the first line of a message about a session.
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

// answerPeers serves what the other replicas forward, until the cluster is closed.
func (a *App) answerPeers() {
	c := a.state.cluster
	if c == nil {
		return
	}
	c.AnswerHTTP(func(w http.ResponseWriter, r *http.Request) {
		for _, e := range a.views.Serve(w, r.WithContext(front.Forwarded(r.Context()))) {
			a.journal.End(e)
		}
	})
	c.Answer(kindEnded, func(ctx context.Context, _ string, data []byte, _ func([]byte) error) error {
		var of about
		if err := json.Unmarshal(data, &of); err != nil {
			return err
		}
		// The session has ended at the replica that asks; this marks this replica's copy of it as ended too.
		if err := a.state.sessions.End(ctx, of.Session, state.Closed); err != nil {
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

// Everyone implements [front.Peers].
func (p peers) Everyone(view, session string, message []byte) {
	first, err := json.Marshal(about{view, session})
	if err == nil { // the call is best effort: if NATS is away, the other replicas miss the message, as if the client had sent it too late
		_ = p.Tell(kindSession, append(append(first, '\n'), message...))
	}
}

// Ended implements [front.Peers].
func (p peers) Ended(ctx context.Context, view, session string) {
	ctx, cancel := context.WithTimeout(ctx, endedTime)
	defer cancel()
	data, _ := json.Marshal(about{view, session}) // cannot fail
	var asked sync.WaitGroup
	for _, one := range p.Live() {
		if one.ID != p.Self() {
			asked.Go(func() {
				for range p.Ask(ctx, one.ID, kindEnded, data) { // after an error, the replica is gone or learns of the end from the records
				}
			})
		}
	}
	asked.Wait()
}

// Forward implements [front.Peers].
func (p peers) Forward(w http.ResponseWriter, r *http.Request, body []byte, to string) error {
	err := p.Cluster.Forward(w, r, body, to)
	if errors.Is(err, cluster.ErrUntaken) {
		err = fmt.Errorf("%w (%w)", front.ErrUntaken, err)
	}
	return err
}

// Home implements [front.Peers].
func (p peers) Home(ctx context.Context, program string) (home string, anew bool, err error) {
	hash := sha256.Sum256([]byte(program))
	key, now := "home."+hex.EncodeToString(hash[:]), time.Now()
	value, err := p.Records().Get(key)
	if home = p.homeIn(value, now); err == nil && home != "" {
		return home, false, nil
	}
	err = p.Records().Change(ctx, key, func(old []byte) ([]byte, time.Time, error) {
		if home, _, _ = strings.Cut(string(old), " "); home == "" || !p.Stays(home) {
			home, anew = p.Self(), home != ""
		}
		return []byte(home + " " + strconv.FormatInt(now.Unix(), 10)), now.Add(homeTime), nil
	})
	if errors.Is(err, state.ErrAway) && len(value) > 0 {
		home, _, _ = strings.Cut(string(value), " ")
		return home, false, nil
	}
	return home, anew, err
}

// homeIn returns the replica that a record names. It returns "" if the replica has ended or is shutting down, or if the record is
// due for renewal.
func (p peers) homeIn(value []byte, now time.Time) string {
	home, since, _ := strings.Cut(string(value), " ")
	if at, err := strconv.ParseInt(since, 10, 64); err != nil || now.Sub(time.Unix(at, 0)) > homeRenewed || !p.Stays(home) {
		return ""
	}
	return home
}

// homed returns the names of the enabled servers of a view for which the function which returns true.
func (a *App) homed(view string, which func(*config.Server) bool) (names []string) {
	cfg := a.current.Load().config
	part, _ := scopeOf(cfg, view)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		if s.Enabled && which(s) && (part == nil || slices.Contains(part.Servers, s.Name)) {
			names = append(names, s.Name)
		}
	}
	return names
}
