package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/httpd"
)

// client is a program that requests tokens. It has chosen its name itself, so the name proves nothing.
type client struct {
	// ID is its client_id: the URL of its metadata document, or a string made by the method register.
	ID        string   `json:"-"`
	Name      string   `json:"name,omitempty"`
	Redirects []string `json:"redirects"`
	// Host is the host of the client's metadata document; empty if the client has registered itself.
	Host string `json:"-"`
}

// client returns the client with this ID. For an ID that is a URL, it may have to fetch the client's metadata document. address is
// the IP address that the request comes from. The error is of type *fault.
func (s *Server) client(ctx context.Context, address netip.Addr, id string) (*client, error) {
	if strings.HasPrefix(id, "https://") && !s.o.NoDocuments {
		return s.documents.client(ctx, address, id)
	}
	c := &client{ID: id}
	switch {
	case id == "":
		return nil, &fault{"invalid_request", "client_id is missing"}
	case strings.HasPrefix(id, "https://"):
		return nil, &fault{"invalid_client", "this mcpx reads no documents of clients: log out in the client (claude mcp logout NAME) and connect " +
			"again, so that it registers"}
	}
	if err := s.seals.client.open(id, c); err != nil {
		return nil, errUnregistered
	}
	return c, nil
}

var errUnregistered = &fault{"invalid_client", "unknown client_id: the client has to register again"}

// maxRegistration is the maximum length, in bytes, of a registration request. maxMetadata is the maximum length, in bytes, of all
// redirect URIs in the request together: they become part of the client ID, which goes into URLs. maxRedirects is the maximum
// number of redirect URIs.
const (
	maxRegistration = 16 << 10
	maxMetadata     = 2 << 10
	maxRedirects    = 10
	maxName         = 80 // characters
)

// register is the registration endpoint (RFC 7591). The client ID is the encrypted metadata, so the server need not
// store registrations.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	if err != nil {
		refuse(w, &fault{"invalid_client_metadata", "the request is too long"})
		return
	}
	c, err := readClient(data)
	if err == nil {
		// The server may drop redirect URIs that it does not allow (RFC 7591, section 2). VS Code, for example,
		// always sends several.
		c.Redirects = slices.DeleteFunc(c.Redirects, func(one string) bool { return !s.redirects(one) })
		if len(c.Redirects) == 0 {
			err = &fault{"invalid_redirect_uri", "none of these redirect_uris is allowed here; auth.front.redirects of mcpx allows more"}
		}
	}
	var f *fault
	if errors.As(err, &f) {
		s.o.Log.Info("a client may not register", "reason", f.Text, "remote", r.RemoteAddr)
		refuse(w, f)
		return
	}
	out := map[string]any{
		"client_id":                  s.seals.client.close(c),
		"client_id_issued_at":        time.Now().Unix(),
		"redirect_uris":              c.Redirects,
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": "none",
	}
	if c.Name != "" {
		out["client_name"] = c.Name
	}
	httpd.WriteJSON(w, http.StatusCreated, out)
}

// readClient reads client metadata (RFC 7591, section 2). Its errors are of type *fault.
func readClient(data []byte) (*client, error) {
	var in struct {
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Responses []string `json:"response_types"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, &fault{"invalid_client_metadata", "malformed client metadata: " + sanitize.Line(err.Error(), 200)}
	}
	c := &client{Name: sanitize.Line(in.Name, maxName), Redirects: in.Redirects}
	length := 0
	for _, one := range c.Redirects {
		length += len(one)
		if _, ok := redirect(one); !ok {
			return nil, &fault{"invalid_redirect_uri", "a redirect_uri must be an absolute URL without fragment, " +
				"over https, on loopback, or of a scheme of the client's own: " + sanitize.Line(one, 200)}
		}
	}
	switch {
	case len(c.Redirects) == 0:
		return nil, &fault{"invalid_redirect_uri", "redirect_uris is missing"}
	case len(c.Redirects) > maxRedirects || length > maxMetadata:
		return nil, &fault{"invalid_client_metadata", "too many redirect_uris"}
	case in.Grants != nil && !slices.Contains(in.Grants, "authorization_code"):
		return nil, &fault{"invalid_client_metadata", "only the grant type authorization_code is supported"}
	case in.Responses != nil && !slices.Contains(in.Responses, "code"):
		return nil, &fault{"invalid_client_metadata", "only the response type code is supported"}
	}
	return c, nil
}

// redirect parses a redirect URI. It accepts https, http on loopback, and schemes of a client's own. The URI must have a host. It
// must not have a user, a fragment, or . or .. in the path, or a character that browsers interpret differently from net/url.
// redirect returns false if it does not accept the URI.
func redirect(address string) (*url.URL, bool) {
	for _, c := range []byte(address) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\\\"<>^`{|}", c) >= 0 {
			return nil, false
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(address, "#") || dotted(u) {
		return nil, false
	}
	switch u.Scheme {
	case "https":
	case "http":
		return u, netguard.Loopback(u.Hostname())
	case "javascript", "data", "vbscript", "file", "blob", "about", "ftp", "ws", "wss":
		return nil, false
	}
	return u, true
}

// defaultRedirects are the redirect URIs allowed by default. Claude, ChatGPT and VS Code use them.
var defaultRedirects = []string{
	"https://claude.ai/api/mcp/auth_callback",
	"https://claude.com/api/mcp/auth_callback",
	"https://chatgpt.com/connector_platform_oauth_redirect",
	"https://chatgpt.com/connector/oauth/*",
	"https://vscode.dev/redirect",
	"https://insiders.vscode.dev/redirect",
	loopback,
}

// loopback, in a list of redirect URIs, allows every http URL on the user's own machine.
const loopback = "loopback"

// redirects reports whether the config allows this redirect URI.
func (s *Server) redirects(address string) bool {
	u, ok := redirect(address)
	return ok && slices.ContainsFunc(s.o.Redirects, func(glob string) bool {
		if glob == loopback {
			return u.Scheme == "http" && netguard.Loopback(u.Hostname())
		}
		return matches(glob, u)
	})
}

// matches reports whether a redirect URI matches a glob. It compares scheme, host and path separately, so that a * in the glob can
// match only a part of the host or a part of the path, never something that spans both.
func matches(glob string, u *url.URL) bool {
	scheme, rest, _ := strings.Cut(glob, "://")
	rest, query, _ := strings.Cut(rest, "?")
	host, file, _ := strings.Cut(rest, "/")
	matchesHost, _ := path.Match(host, u.Host)
	matchesPath, _ := path.Match("/"+file, "/"+strings.TrimPrefix(u.EscapedPath(), "/"))
	return u.Scheme == scheme && matchesHost && matchesPath && u.RawQuery == query
}

// knows reports whether the client has registered this redirect URI. If both are http URLs, their ports may differ: they are on
// loopback, where a program listens on any free port (RFC 8252, section 7.3).
func (c *client) knows(address string) bool {
	u, ok := redirect(address)
	return ok && slices.ContainsFunc(c.Redirects, func(known string) bool {
		k, ok := redirect(known)
		if !ok || k.Scheme != "http" || u.Scheme != "http" {
			return known == address
		}
		return k.Hostname() == u.Hostname() && k.EscapedPath() == u.EscapedPath() &&
			k.RawQuery == u.RawQuery && k.ForceQuery == u.ForceQuery
	})
}
