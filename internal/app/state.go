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

// clientState is all that another process would need to serve the clients of this one: the implementations of the
// interfaces in package state, and the secret that keys are derived from. It is made once for an App, and reloads leave it as it is. It
// is in memory and in the user's folder for configuration; several processes together would need other implementations.
type clientState struct {
	sessions state.Sessions[front.Session] // of legacy clients over HTTP
	browsers state.Sessions[page.Session]
	results  state.Results[results.Kept]
	once     state.Once        // states of calls that wait for their clients
	grants   authserver.Grants // codes, refresh tokens and logins
	counters state.Counters
	// secret is the one of the authorization server, if there is one at the start, else random. The audit trail has its own key in
	// the config, as others have to verify the trail with it.
	secret *state.Secret

	folder   string // for files
	noFolder error  // why there is no folder
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

// secretOf returns the secret of the authorization server: the key of the config, or else the one in a file. before keeps the
// secret from its file even if that was deleted.
func (s *clientState) secretOf(key string, before *authServer) (*state.Secret, error) {
	switch {
	case key != "":
		return state.SecretOf([]byte(key)), nil
	case before != nil && before.keyInFile:
		return before.of.Secret, nil
	case s.noFolder != nil:
		return nil, fmt.Errorf("there is no folder to keep a key in: %w; set auth.front.key", s.noFolder)
	}
	secret, err := state.SecretFile(filepath.Join(s.folder, "front.key"))
	if err != nil {
		return nil, fmt.Errorf("keeping the key of auth.front: %w; or set auth.front.key", err)
	}
	return secret, nil
}
