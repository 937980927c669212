package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"mcpx/internal/base/state"
	"mcpx/internal/front"
	"mcpx/internal/hosted/authserver"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/hosted/page"
	"mcpx/internal/results"
)

// clientState is all that mcpx knows of its clients and that another process would need to serve them: the doors of package state and
// the secret behind the keys, made once for an App. A reload changes nothing of it. Here it lies in memory, and in the user's folder
// for configuration; for several processes other implementations take its place.
type clientState struct {
	sessions state.Sessions[front.Session] // of legacy clients over HTTP
	browsers state.Sessions[page.Session]
	results  state.Results[results.Kept]
	once     state.Once        // states of calls that wait for their clients
	grants   authserver.Grants // codes, refresh tokens and logins
	counters state.Counters
	// secret is what keys are derived from: that of the authorization server where there is one at the start, else a random one. The
	// audit trail has a key of its own in the config, as others verify the trail with it.
	secret *state.Secret

	folder   string // of the files; empty with noFolder
	noFolder error
}

func newClientState(log *slog.Logger) *clientState {
	s := &clientState{
		sessions: front.NewSessions(), browsers: page.NewSessions(), results: results.InMemory(), once: front.NewOnce(),
		counters: limits.NewCounters(), secret: state.NewSecret(),
	}
	if s.folder, s.noFolder = os.UserConfigDir(); s.noFolder == nil {
		s.folder = filepath.Join(s.folder, "mcpx")
	}
	s.grants = authserver.GrantsIn(s.folder, log)
	return s
}

// secretOf is the secret of the authorization server: the key of the config or, without one, that of the server before, which stays
// what it was if its file is lost, or else the one in the file.
func (s *clientState) secretOf(key string, before *authServer) (*state.Secret, error) {
	switch {
	case key != "":
		return state.SecretOf([]byte(key)), nil
	case before != nil && before.keyInFile:
		return before.of.Secret, nil
	case s.noFolder != nil:
		return nil, fmt.Errorf("there is no folder to keep a key in: %w; auth.front.key needs none", s.noFolder)
	}
	secret, err := state.SecretFile(filepath.Join(s.folder, "front.key"))
	if err != nil {
		return nil, fmt.Errorf("keeping the key of auth.front: %w; auth.front.key needs no file", err)
	}
	return secret, nil
}
