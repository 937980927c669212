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

// clientState is everything that another process would need to serve the clients of this process: the implementations of the
// interfaces in package state, and the secrets from which keys are derived. An App has one clientState, which reloads do not
// replace. The data is in memory and in the user's config folder, or shared with the other replicas of a cluster.
type clientState struct {
	sessions state.Sessions[front.Session] // of clients of the legacy era over HTTP
	browsers state.Sessions[page.Session]
	results  state.Results[results.Kept]
	once     state.Once // states of calls that wait for an answer of their client; each state works once
	logins   loginState // logins through auth.front
	counters state.Counters
	// catalogues asks the other replicas for a server's catalogue; nil without a cluster.
	catalogues registry.Peers
	approvals  *approvals // nil without a cluster
	// secrets are the keys of the cluster or, without a cluster, those of the authorization server at the start; without both, they
	// are random. mcpx seals with the first, and opens what any of them has sealed. The audit trail has its own keys in the config,
	// because others have to verify the trail with them.
	secrets []*state.Secret

	cluster *cluster.Cluster // nil means that mcpx runs alone

	folder   string // the user's folder for mcpx's files
	noFolder error  // why there is no such folder
}

// Limits of the records that mcpx keeps in memory about changed and ended sessions.
const (
	mostRecords     = 100_000
	mostRecordBytes = 32 << 20
)

// newClientState returns a new state. memory is how many bytes the process may use; 0 means no limit.
func newClientState(log *slog.Logger, memory int64) *clientState {
	s := &clientState{
		sessions: front.NewSessions(), browsers: page.NewSessions(), results: results.InMemory(memory), once: front.NewOnce(),
		counters: limits.NewCounters(), secrets: []*state.Secret{state.NewSecret()},
	}
	if s.folder, s.noFolder = os.UserConfigDir(); s.noFolder == nil {
		s.folder = filepath.Join(s.folder, "mcpx")
	}
	return s
}

// seal makes the ids of sessions contain their records, sealed with a key that is in a file, so that clients can go on after a
// restart. Without the file, the key is random: then sessions end with this process. All mcpx of a user have the same key and
// can serve each other's sessions. A session gives no rights: those depend on the credential of each request. The key does not
// depend on the config or the address, so that another port or a changed config ends no session.
func (s *clientState) seal(log *slog.Logger) {
	err, secret := s.noFolder, (*state.Secret)(nil)
	if err == nil {
		secret, err = state.SecretFile(filepath.Join(s.folder, "sessions.key"), log)
	}
	if err != nil {
		log.Warn("there is no file for the key of sessions: clients cannot go on with their sessions after a restart of mcpx", "error", err)
		secret = state.NewSecret()
	}
	s.sessions = state.NewSealed[front.Session]([]*state.Secret{secret}, "session", state.NewRecords(mostRecords, mostRecordBytes))
}

// secretsOf returns the secrets of the authorization server: the keys from the config or, without any, the key from a file. If
// before already uses the key from the file, secretsOf returns that key, even if the file was deleted. In a
// cluster, the keys of the cluster take the place of the file.
func (s *clientState) secretsOf(keys []string, before *authServer, log *slog.Logger) (secrets []*state.Secret, err error) {
	for _, key := range keys {
		secrets = append(secrets, state.SecretOf([]byte(key)))
	}
	switch {
	case len(secrets) > 0:
		return secrets, nil
	case s.cluster != nil:
		return s.secrets, nil
	case before != nil && before.keyInFile:
		return before.of.Secrets, nil
	case s.noFolder != nil:
		return nil, fmt.Errorf("there is no folder to keep a key in: %w; set auth.front.key", s.noFolder)
	}
	secret, err := state.SecretFile(filepath.Join(s.folder, "front.key"), log)
	if err != nil {
		return nil, fmt.Errorf("keeping the key of auth.front: %w; or set auth.front.key", err)
	}
	return []*state.Secret{secret}, nil
}
