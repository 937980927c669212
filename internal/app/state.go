package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"mcpx/internal/base/state"
	"mcpx/internal/front"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/hosted/page"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// clientState is what mcpx remembers about its clients, such as their sessions and logins. Another process that has this state could serve
// the same clients. The state is in memory and in the user's config folder or, in a cluster, shared with the other replicas. An App has one
// clientState, which reloads do not replace.
type clientState struct {
	sessions    state.Sessions[front.Session] // of clients over HTTP in the legacy era, in which a session begins with initialize
	browsers    state.Sessions[page.Session]
	results     state.Results[results.Kept]
	once        state.Once  // remembers which paused calls were resumed, because each can be resumed only once
	frontLogins frontLogins // logins through auth.front
	counters    state.Counters
	// catalogues asks the other replicas for a server's catalogue; nil without a cluster.
	catalogues registry.Peers
	approvals  *approvals // nil without a cluster
	// secrets are the keys for sealing (encrypting) data that clients keep for mcpx, such as the ids of tasks: the keys of the
	// cluster or, without a cluster, the keys that the authorization server had at the start. If there is no authorization server
	// either, the key is random. mcpx seals with the first key, and opens data that was sealed with any of the keys.
	secrets []*state.Secret

	cluster *cluster.Cluster // nil means that mcpx runs alone

	folder   string // the user's folder for mcpx's files
	noFolder error  // why there is no such folder
}

// newClientState returns a new state. memory is how many bytes the process may use; 0 means no limit.
func newClientState(memory int64) *clientState {
	s := &clientState{
		sessions: front.NewSessions(state.NewSecret()), browsers: page.NewSessions(), results: results.InMemory(memory),
		once:     front.NewOnce(),
		counters: limits.NewCounters(), secrets: []*state.Secret{state.NewSecret()},
	}
	if s.folder, s.noFolder = os.UserConfigDir(); s.noFolder == nil {
		s.folder = filepath.Join(s.folder, "mcpx")
	}
	return s
}

// seal makes clients able to go on with their sessions after a restart of mcpx. For this, the id of a session contains what mcpx must
// know about the session, encrypted with a key that is in a file. If the file cannot be used, the key is random, and sessions end with
// this process. All mcpx processes of a user have the same key, so they can serve each other's sessions. That gives a client no further
// rights, because rights depend on the credential of each request. The key does not depend on the config or the address, so a changed
// config or another port ends no session.
func (s *clientState) seal(log *slog.Logger) {
	err, secret := s.noFolder, (*state.Secret)(nil)
	if err == nil {
		secret, err = state.SecretFile(filepath.Join(s.folder, "sessions.key"), log)
	}
	if err != nil {
		log.Warn("there is no file for the key of sessions: clients cannot go on with their sessions after a restart of mcpx", "error", err)
		secret = state.NewSecret()
	}
	s.sessions = front.NewSessions(secret)
}

// secretsOf returns the secrets of the authorization server. They are the keys in the config. If there are none, they are the
// keys of the cluster or, without a cluster, the key in a file. If the previous authorization server uses the key from the file,
// the key stays in use even if the file was deleted meanwhile.
func (s *clientState) secretsOf(keys []string, previous *authServer, log *slog.Logger) (secrets []*state.Secret, err error) {
	for _, key := range keys {
		secrets = append(secrets, state.SecretOf([]byte(key)))
	}
	switch {
	case len(secrets) > 0:
		return secrets, nil
	case s.cluster != nil:
		return s.secrets, nil
	case previous != nil && previous.keyInFile:
		return previous.of.Secrets, nil
	case s.noFolder != nil:
		return nil, fmt.Errorf("there is no folder to keep a key in: %w; set auth.front.key", s.noFolder)
	}
	secret, err := state.SecretFile(filepath.Join(s.folder, "front.key"), log)
	if err != nil {
		return nil, fmt.Errorf("keeping the key of auth.front: %w; or set auth.front.key", err)
	}
	return []*state.Secret{secret}, nil
}
