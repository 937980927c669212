package registry

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

// sessionKey is which session of a client it is. A client whose credentials change gets
// another one.
type sessionKey struct {
	server      string
	credentials [sha256.Size]byte // a digest; zero for a server that takes none
}

// credentials are the headers for a server that come from one request of a client.
type credentials map[string]string

// credentialsOf takes them from the request. Its error says which header is missing: a
// request without one never gets a session, least of all another client's.
func (s *Server) credentialsOf(client *upstream.Client) (credentials, error) {
	if len(s.Credentials) == 0 {
		return nil, nil
	}
	out := make(credentials, len(s.Credentials))
	for _, header := range slices.Sorted(maps.Keys(s.Credentials)) {
		from := s.Credentials[header]
		var values []string
		if client != nil && client.ID != "" {
			values = client.Headers.Values(from)
		}
		if len(values) != 1 || strings.TrimSpace(values[0]) == "" {
			return nil, &upstream.UnavailableError{
				State:  catalog.Unavailable,
				Reason: "each request to mcpx that reaches it must have the caller's header " + from + ", once and not empty",
			}
		}
		out[header] = values[0]
	}
	return out, nil
}

func (c credentials) key(server string) sessionKey {
	if len(c) == 0 {
		return sessionKey{server: server}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&text, "%q %q ", name, c[name])
	}
	return sessionKey{server, sha256.Sum256([]byte(text.String()))}
}

// put makes a spec that of a session with these credentials: they replace headers of the
// same name, and a login, which belongs to somebody else.
func (c credentials) put(spec *upstream.Spec) {
	headers := make(map[string]string, len(spec.Headers)+len(c))
	for name, value := range spec.Headers {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(c)), func(own string) bool { return strings.EqualFold(own, name) }) {
			headers[name] = value
		}
	}
	maps.Copy(headers, c)
	spec.Headers, spec.Authorize = headers, nil
	spec.Secrets = slices.Concat(spec.Secrets, slices.Collect(maps.Values(c)))
}
