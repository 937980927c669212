package logins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// callbackPath is the path of the redirect URI, whose host is 127.0.0.1.
const callbackPath = "/callback"

// client returns the OAuth client that mcpx uses with an authorization server, and the listener for the browser that comes back.
// The order is that of MCP's specification: the configured client, else a client with a client ID metadata document, else a client
// that mcpx registers dynamically. A registration contains the port to which the browser comes back. Therefore the function client
// opens the listener on this port. A registered client is stored and used again. But mcpx registers a new one if the ID of the
// stored client is b.forgotten, if its secret has expired or expires within an hour, if its port is in use, or if the config has a
// different port.
func (l *Logins) client(ctx context.Context, b *beginning) (client, net.Listener, error) {
	s, meta := b.server, b.found.server
	if own, ok := s.unregistered(meta); ok {
		listener, err := listen(ctx, s.RedirectPort)
		return own, listener, err
	}
	var known client
	file := clientFile(meta.Issuer, "")
	err := l.store.read(ctx, file, &known)
	if err == nil && known.ID != b.forgotten && !known.ends() && (s.RedirectPort == 0 || s.RedirectPort == port(known.Redirect)) {
		// The listener uses the registered port again: RFC 8252 requires authorization servers to accept any port on loopback, but
		// some do not.
		if listener, err := listen(ctx, port(known.Redirect)); err == nil {
			return known, listener, nil
		}
	}
	if meta.RegistrationEndpoint == "" {
		return client{}, nil, noRegistration(meta, "")
	}
	listener, err := listen(ctx, s.RedirectPort)
	if err != nil {
		return client{}, nil, err
	}
	c, err := register(ctx, b.web, meta, redirectOf(listener), "native")
	if err == nil {
		err = l.store.write(ctx, file, c)
	}
	if err != nil {
		_ = listener.Close()
		return client{}, nil, err
	}
	return c, listener, nil
}

// unregistered returns the client that mcpx can use without registering it. This is the client with the configured ID. If there is
// no such ID, it is the client of the configured metadata document, provided that the authorization server reads such documents. ok
// is false if there is no such client.
func (s Server) unregistered(meta *oauthex.AuthServerMeta) (own client, ok bool) {
	switch {
	case s.ClientID != "":
		return client{ID: s.ClientID, Secret: s.ClientSecret}, true
	case s.ClientMetadataURL != "" && meta.ClientIDMetadataDocumentSupported:
		return client{ID: s.ClientMetadataURL, Method: "none"}, true
	}
	return client{}, false
}

// register registers mcpx with an authorization server. kind is the type of OAuth client: native if the browser comes back to this
// machine, otherwise web.
func register(ctx context.Context, web *http.Client, meta *oauthex.AuthServerMeta, redirect, kind string) (client, error) {
	who := sanitize.Line(meta.Issuer, 200)
	asked := &oauthex.ClientRegistrationMetadata{
		ClientName: "mcpx", RedirectURIs: []string{redirect}, ApplicationType: kind,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}
	for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} { // the last supported method is used
		if slices.Contains(meta.TokenEndpointAuthMethodsSupported, method) {
			asked.TokenEndpointAuthMethod = method
		}
	}
	got, err := askToRegister(ctx, web, meta.RegistrationEndpoint, asked)
	if refusal, ok := errors.AsType[*refusedError](err); ok {
		return client{}, fmt.Errorf("the authorization server %s refuses to register mcpx: %w", who, refusal)
	}
	if err != nil {
		return client{}, fmt.Errorf("registering mcpx with %s: %w", who, err)
	}
	made := client{ID: got.ID, Secret: got.Secret, Method: got.Method, Redirect: redirect}
	if got.Method == "none" { // such a client has no secret (RFC 7591, section 2), and requests with one may be refused
		made.Secret = ""
	}
	if ends := netguard.Seconds(got.Expires); ends > 0 && ends < neverExpires {
		made.Expires = time.Unix(int64(ends), 0)
	}
	return made, nil
}

// neverExpires is a Unix time in the year 6325. If the secret of a client expires at this time or later, mcpx assumes that it never
// expires, because some authorization servers send the time in milliseconds.
const neverExpires = 1 << 37

// registration is the response of a registration endpoint (RFC 7591, sections 3.2.1 and 3.2.2).
type registration struct {
	ID          string          `json:"client_id"`
	Secret      string          `json:"client_secret"`
	Expires     json.RawMessage `json:"client_secret_expires_at"` // in Unix seconds; 0 means never
	Method      string          `json:"token_endpoint_auth_method"`
	Error       string          `json:"error"`
	Description string          `json:"error_description"`
}

// askToRegister sends the request for a registration. If the response is an OAuth error, askToRegister returns it as a
// refusedError. Any other error does not quote the response, which may contain a secret. askToRegister does not use the SDK's
// function, which panics if the response is null.
func askToRegister(ctx context.Context, web *http.Client, address string, asked any) (*registration, error) {
	data, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, explain(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := web.Do(req)
	if err != nil {
		return nil, explain(err)
	}
	defer resp.Body.Close()
	var got registration
	bad := json.NewDecoder(resp.Body).Decode(&got)
	switch {
	case resp.StatusCode >= 400 && got.Error != "":
		text := strings.TrimSpace(sanitize.Line(got.Error, 60) + " " + sanitize.Line(got.Description, 200))
		return nil, &refusedError{got.Error, text}
	case resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK:
		return nil, &netguard.StatusError{Code: resp.StatusCode, Status: resp.Status}
	case bad != nil || got.ID == "":
		return nil, errors.New("the answer has no client_id")
	}
	return &got, nil
}

// noRegistration returns the error of a login for which mcpx has no client: none is configured, and the authorization server does
// not let mcpx register one. redirect is the URL to which the browser comes back; empty means a port of this machine.
func noRegistration(meta *oauthex.AuthServerMeta, redirect string) error {
	redirect = cmp.Or(redirect, "http://127.0.0.1:PORT"+callbackPath)
	return &hintError{
		"the authorization server " + sanitize.Line(meta.Issuer, 200) + " does not support dynamic client registration",
		"register an application there with the redirect URI " + redirect + ", and set oauth.client_id (and redirect_port) of the server",
	}
}

// listen listens on a port of 127.0.0.1. With port 0 the system chooses a free port.
func listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w", err)
	}
	return listener, nil
}

func redirectOf(listener net.Listener) string {
	return "http://" + listener.Addr().String() + callbackPath
}

func port(redirect string) int {
	u, err := url.Parse(redirect)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(u.Port())
	return n
}

// hintError is an error with advice for the user.
type hintError struct{ text, hint string }

func (e *hintError) Error() string { return e.text }

// Hint says what the user can do.
func (e *hintError) Hint() string { return e.hint }
