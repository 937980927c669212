package logins

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"

	"mcpx/internal/base/netguard"
)

// severalServers starts an MCP server, and authorization servers below its origin: each at a path that says what is wrong with
// it. The MCP server names the issuers in names, which are paths or whole URLs.
func severalServers(t *testing.T) (origin string, names *[]string) {
	names = new([]string)
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
			var all []string
			for _, name := range *names {
				if strings.HasPrefix(name, "/") {
					name = web.URL + name
				}
				all = append(all, fmt.Sprintf("%q", name))
			}
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":[%s]}`, web.URL, strings.Join(all, ","))
			return
		}
		path, ok := strings.CutPrefix(r.URL.Path, "/.well-known/oauth-authorization-server")
		if !ok || path == "/absent" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		members := map[string]string{
			"token_endpoint": web.URL + "/token", "authorization_endpoint": web.URL + "/authorize", "registration_endpoint": web.URL + "/register",
		}
		pkce := `["S256"]`
		switch path {
		case "/no-pkce":
			pkce = "[]"
		case "/no-page":
			members["authorization_endpoint"] = ""
		case "/no-registration":
			members["registration_endpoint"] = ""
		case "/no-token":
			members["token_endpoint"] = ""
		}
		fmt.Fprintf(w, `{"issuer":%q,"code_challenge_methods_supported":%s`, web.URL+path, pkce)
		for name, value := range members {
			fmt.Fprintf(w, `,%q:%q`, name, value)
		}
		fmt.Fprint(w, "}")
	}))
	t.Cleanup(web.Close)
	return web.URL, names
}

// TestBegin_Several: of the authorization servers that a server names, a login takes the first that answers and can do what the
// login needs. If there is none, the error is about the first. A configured client goes to one of them alone: to that of the last
// login or, at the first login, to the first.
func TestBegin_Several(t *testing.T) {
	keyring.MockInit()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, test := range []struct {
		names            []string
		client, before   string
		registered       string // the authorization server at which mcpx has registered a client
		want, wantsError string
	}{
		{names: []string{"/a", "/b"}, want: "/a"},
		{names: []string{closed.URL, "/b"}, want: "/b"},
		{names: []string{"http://login.example", "/b"}, want: "/b"},
		{names: []string{"/absent", "/no-token", "/b"}, want: "/b"},
		{names: []string{"/no-pkce", "/no-page", "/b"}, want: "/b"},
		{names: []string{"/no-registration", "/b"}, want: "/b"},
		{names: []string{"/no-registration", "/b"}, client: "ours", want: "/no-registration"},
		{names: []string{"/no-pkce", "/absent"}, wantsError: "does not say that it supports PKCE"},
		{names: []string{"/no-registration"}, wantsError: "does not support dynamic client registration"},
		{names: []string{"/absent", "/no-pkce"}, wantsError: "has no metadata"},
		{names: []string{"http://login.example"}, wantsError: "the authorization server http://login.example is neither https nor on this machine"},
		{names: []string{closed.URL, "/b"}, client: "ours", wantsError: closed.URL},
		{names: []string{"/a", "/b"}, client: "ours", before: "/b", want: "/b"},
		{names: []string{"/a"}, client: "ours", before: "/b", wantsError: "now names the authorization server"},
		{names: []string{"/no-registration", "/b"}, registered: "/no-registration", want: "/no-registration"},
		{names: []string{"/no-page", "/no-pkce", "/absent", "/b"}, wantsError: "has no page to log in on"}, // no more than three are tried
		{wantsError: "names no authorization server"},
	} {
		origin, names := severalServers(t)
		*names = test.names
		s := Server{Name: "tracker", URL: origin + "/mcp"}
		s.ClientID = test.client
		l := New(t.TempDir(), nil)
		if test.before != "" {
			before := login{Endpoint: endpoint{Issuer: origin + test.before, Client: client{ID: test.client}}}
			if err := l.store.write(t.Context(), loginFile(s), before); err != nil {
				t.Fatal(err)
			}
		}
		if test.registered != "" {
			if err := l.store.write(t.Context(), clientFile(origin+test.registered, ""), client{ID: "known"}); err != nil {
				t.Fatal(err)
			}
		}
		b, err := l.begin(t.Context(), s, "")
		switch {
		case test.wantsError != "":
			if err == nil || !strings.Contains(err.Error(), test.wantsError) {
				t.Errorf("%v: %v", test.names, err)
			}
		case err != nil || b.found.server.Issuer != origin+test.want:
			t.Errorf("%v, client %q: %+v %v", test.names, test.client, b, err)
		}
		if err == nil {
			b.web.CloseIdleConnections()
		}
	}
}

// hangs is a transport to a host that never answers.
type hangs struct{ asked int }

func (h *hangs) RoundTrip(req *http.Request) (*http.Response, error) {
	h.asked++
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// TestDiscover_Hangs: an authorization server that does not answer holds a login up for ten seconds, however many places its
// metadata could be at. A server that does not answer holds it up as long for each place.
func TestDiscover_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Server{Name: "tracker", URL: "https://tracker.example/mcp"}
		s.Issuer = "https://login.example/a"
		began, silent := time.Now(), &hangs{}
		_, err := serverMetadata(t.Context(), &http.Client{Transport: silent, Timeout: netguard.RequestTime}, s.Issuer)
		if took := time.Since(began); took > 10*time.Second || err == nil || explain(err).Error() != "no answer in time" {
			t.Errorf("%v after %v, and %d requests", err, took, silent.asked)
		}
		began = time.Now()
		_, err = resourceMetadata(t.Context(), &http.Client{Transport: silent, Timeout: netguard.RequestTime}, s, challenge{})
		if took := time.Since(began); took > 20*time.Second || err != nil {
			t.Errorf("the metadata of the server: %v after %v, and %d requests", err, took, silent.asked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := serverMetadata(ctx, &http.Client{Transport: silent}, s.Issuer); !errors.Is(err, context.Canceled) && err == nil {
			t.Errorf("given up: %v", err)
		}
	})
}

// TestDiscover_Noise: a JSON document that names no resource is no metadata of a server, so the next place counts. An authorization server
// that limits requests has metadata, even if it does not show them now: mcpx guesses no endpoints.
func TestDiscover_Noise(t *testing.T) {
	var web *httptest.Server
	busy := false
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case busy:
			w.WriteHeader(http.StatusTooManyRequests)
		case r.URL.Path == "/.well-known/oauth-protected-resource":
			fmt.Fprintf(w, `{"resource":"%[1]s/mcp","authorization_servers":["%[1]s/a"]}`, web.URL)
		case r.URL.Path == "/.well-known/oauth-authorization-server/a":
			fmt.Fprintf(w, `{"issuer":"%[1]s/a","token_endpoint":"%[1]s/token"}`, web.URL)
		default:
			fmt.Fprint(w, `{"status":"ok"}`)
		}
	}))
	defer web.Close()
	s := Server{Name: "tracker", URL: web.URL + "/mcp"}
	f, err := discover(t.Context(), newHTTPClient(s), s, challenge{metadata: web.URL + "/elsewhere"}, wanted{asked: true})
	if err != nil || f.server.Issuer != web.URL+"/a" {
		t.Errorf("%+v %v", f, err)
	}
	busy = true
	f, err = discover(t.Context(), newHTTPClient(s), s, challenge{}, wanted{asked: true})
	if err == nil || !strings.Contains(err.Error(), "429") {
		t.Errorf("%+v %v", f, err)
	}
}
