package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
)

// TestRegister: bad registrations are refused with the error code that RFC 7591 defines for them.
func TestRegister(t *testing.T) {
	s := newSite(t)
	many := strings.Repeat(`"http://localhost/`+strings.Repeat("x", 300)+`",`, 9)
	for _, test := range []struct{ name, body, want string }{
		{"claude.ai", `{"client_name":"Claude","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"claudeai","redirect_uris":["` + claude + `"]}`, ""},
		{"a secret is not given", `{"token_endpoint_auth_method":"client_secret_post","redirect_uris":["` + claude + `"]}`, ""},
		{"VS Code", `{"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"]}`, ""},
		{"one is not allowed", `{"redirect_uris":["` + claude + `","https://evil.example/"]}`, ""},
		{"none is allowed", `{"redirect_uris":["https://evil.example/"]}`, "invalid_redirect_uri"},
		{"a scheme of its own", `{"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback"]}`, "invalid_redirect_uri"},
		{"script", `{"redirect_uris":["javascript:alert(1)"]}`, "invalid_redirect_uri"},
		{"script with a host", `{"redirect_uris":["javascript://claude.ai/%0aalert(1)"]}`, "invalid_redirect_uri"},
		{"no TLS", `{"redirect_uris":["http://claude.ai/api/mcp/auth_callback"]}`, "invalid_redirect_uri"},
		{"no redirects", `{}`, "invalid_redirect_uri"},
		{"an empty list", `{"redirect_uris":[]}`, "invalid_redirect_uri"},
		{"a relative one", `{"redirect_uris":["/x"]}`, "invalid_redirect_uri"},
		{"a fragment", `{"redirect_uris":["` + claude + `#x"]}`, "invalid_redirect_uri"},
		{"a way out of a glob", `{"redirect_uris":["https://chatgpt.com/connector/oauth/.."]}`, "invalid_redirect_uri"},
		{"a way out of a glob, escaped", `{"redirect_uris":["https://chatgpt.com/connector/oauth/%2e%2E"]}`, "invalid_redirect_uri"},
		{"an empty fragment", `{"redirect_uris":["` + claude + `#"]}`, "invalid_redirect_uri"},
		{"a user", `{"redirect_uris":["https://claude.ai@evil.example/api/mcp/auth_callback"]}`, "invalid_redirect_uri"},
		{"a backslash", `{"redirect_uris":["https://evil.example\\@claude.ai/api/mcp/auth_callback"]}`, "invalid_redirect_uri"},
		{"a line break", `{"redirect_uris":["` + claude + `\n"]}`, "invalid_redirect_uri"},
		{"text", `{"redirect_uris":"` + claude + `"}`, "invalid_client_metadata"},
		{"not JSON", `x`, "invalid_client_metadata"},
		{"a list", `[]`, "invalid_client_metadata"},
		{"null", `null`, "invalid_redirect_uri"},
		{"two documents", `{"redirect_uris":["` + claude + `"]}{}`, "invalid_client_metadata"},
		{"deep", strings.Repeat("[", 12_000), "invalid_client_metadata"},
		{"too many", `{"redirect_uris":[` + many + `"` + claude + `"]}`, "invalid_client_metadata"},
		{"eleven", `{"redirect_uris":[` + strings.Repeat(`"`+claude+`",`, 10) + `"` + claude + `"]}`, "invalid_client_metadata"},
		{"another grant", `{"grant_types":["client_credentials"],"redirect_uris":["` + claude + `"]}`, "invalid_client_metadata"},
		{"another response", `{"response_types":["token"],"redirect_uris":["` + claude + `"]}`, "invalid_client_metadata"},
		{"oversized", `{"client_name":"` + strings.Repeat("x", maxRegistration) + `"}`, "invalid_client_metadata"},
	} {
		status, answer := s.send(registerPath, "application/json", test.body)
		got, _ := answer["error"].(string)
		if got != test.want || (status == 201) != (test.want == "") {
			t.Errorf("%s: %d %v", test.name, status, answer)
		}
		if id, _ := answer["client_id"].(string); test.want == "" && (strings.HasPrefix(id, "https:") || answer["token_endpoint_auth_method"] != "none" || answer["client_secret"] != nil || strings.Contains(fmt.Sprint(answer), "evil")) {
			t.Errorf("%s: %v", test.name, answer)
		}
	}
	// Even the longest client ID fits into a URL.
	long := `{"client_name":"` + strings.Repeat("é", 500) + `","redirect_uris":["http://localhost/` + strings.Repeat("x", maxMetadata-20) + `"]}`
	if status, answer := s.send(registerPath, "application/json", long); status != 201 || len(answer["client_id"].(string)) > 4096 {
		t.Errorf("%d %v", status, answer)
	}
}

// TestRedirects: a redirect URI is allowed if its scheme, host and path match a glob of the config.
func TestRedirects(t *testing.T) {
	s := &Server{o: Options{AuthServer: conf.AuthServer{Redirects: []string{"https://*.example.com/cb/*", "cursor://anysphere.cursor-mcp/oauth/callback", "https://a.example"}}}}
	for address, want := range map[string]bool{
		"https://one.example.com/cb/x":                 true,
		"https://one.example.com/cb/x/y":               false,
		"https://one.example.com/cb/x?y":               false,
		"https://evil.example/.example.com/cb/x":       false,
		"https://evil.example?.example.com/cb/x":       false,
		"https://evil.example#.example.com/cb/x":       false,
		"https://evil.example%2f.example.com/cb/x":     false,
		"https://one.example.com:8443/cb/x":            false,
		"https://user@one.example.com/cb/x":            false,
		"https://user:x@one.example.com/cb/x":          false,
		"http://one.example.com/cb/x":                  false,
		"cursor://anysphere.cursor-mcp/oauth/callback": true,
		"cursor://other/oauth/callback":                false,
		"https://a.example/":                           true,
		"https://a.example":                            true,
		"http://localhost:1/":                          false,
	} {
		if s.redirects(address) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
	docs, err := os.ReadFile("../../../docs/logins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(docs), "It replaces the default: `")
	list, _, _ = strings.Cut(list, "`")
	var documented []string
	if err := json.Unmarshal([]byte(list), &documented); err != nil || !slices.Equal(sorted(documented), sorted(defaultRedirects)) {
		t.Errorf("docs/logins.md has other defaults: %v, %v", documented, err)
	}
	for _, glob := range defaultRedirects {
		if _, ok := redirect(glob); !ok && glob != loopback {
			t.Errorf("%s is none itself", glob)
		}
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// chatGPT is the metadata document that ChatGPT publishes, with another client_id.
func chatGPT(id string) string {
	return `{"client_id":"` + id + `","client_name":"ChatGPT","client_uri":"https://chatgpt.com/","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"],
"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"private_key_jwt",
"token_endpoint_auth_methods_supported":["none","private_key_jwt"],"token_endpoint_auth_signing_alg":"RS256","jwks_uri":"https://chatgpt.com/oauth/jwks.json"}`
}

// web serves documents over TLS from a new test server, and makes the authorization server trust it.
func (s *site) web(serve http.HandlerFunc) string {
	web := httptest.NewTLSServer(serve)
	s.t.Cleanup(web.Close)
	s.server.documents.web.Transport = web.Client().Transport
	s.t.Cleanup(web.Client().CloseIdleConnections)
	return web.URL
}

// TestConnect_Document does what ChatGPT does: the client ID is the URL of a metadata document.
func TestConnect_Document(t *testing.T) {
	s := newSite(t)
	id, fetched := "", 0
	id = s.web(func(w http.ResponseWriter, _ *http.Request) {
		fetched++
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(strings.Replace(chatGPT(id), `"redirect_uris":[`, `"redirect_uris":["https://evil.example/cb",`, 1)))
	}) + "/oauth/client.json"
	const redirect = "https://chatgpt.com/connector_platform_oauth_redirect"
	_, text, _ := s.open(s.query(id, redirect))
	host := strings.TrimPrefix(strings.TrimSuffix(id, "/oauth/client.json"), "https://")
	if !strings.Contains(text, "<strong>"+host+"</strong>, which calls itself ChatGPT") {
		t.Errorf("%s", text)
	}
	tokens := s.connected(id, redirect)
	if status, _ := s.refresh(id, tokens); status != 200 {
		t.Errorf("refresh: %d", status)
	}
	if fetched != 1 {
		t.Errorf("the document was fetched %d times", fetched)
	}
	if status, text, to := s.open(s.query(id, claude)); status != 400 || to != nil {
		t.Errorf("a redirect that the document lacks: %d %s", status, text)
	}
	if status, text, to := s.open(s.query(id, "https://evil.example/cb")); status != 400 || to != nil || !strings.Contains(text, "not allowed here") {
		t.Errorf("a redirect that nobody has allowed: %d %s", status, text)
	}
}

// TestNoDocuments: with Options.NoDocuments, no document is fetched, and the metadata says that documents are not
// supported.
func TestNoDocuments(t *testing.T) {
	s := newSite(t, func(o *Options) { o.NoDocuments = true })
	id := s.web(func(http.ResponseWriter, *http.Request) { t.Error("was fetched") }) + "/c"
	if status, _, to := s.open(s.query(id, claude)); status != 400 || to != nil {
		t.Errorf("%d %v", status, to)
	}
	if _, text, _ := s.get(s.server.issuer + metadataPath); !strings.Contains(text, `"client_id_metadata_document_supported":false`) {
		t.Error(text)
	}
}

// TestDocument checks which client metadata documents are accepted.
func TestDocument(t *testing.T) {
	const id = "https://client.example/client.json"
	good := `{"client_id":"` + id + `","redirect_uris":["` + claude + `"]`
	for _, test := range []struct{ name, document, want string }{
		{"the least", good + `}`, ""},
		{"none", good + `,"token_endpoint_auth_method":"none"}`, ""},
		{"ChatGPT", chatGPT(id), ""},
		{"another client_id", strings.Replace(good, "client.json", "Client.json", 1) + `}`, "not this URL"},
		{"no client_id", `{"redirect_uris":["` + claude + `"]}`, "not this URL"},
		{"a secret", good + `,"client_secret":"x"}`, "secret"},
		{"a secret that ends", good + `,"client_secret_expires_at":0}`, "secret"},
		{"authentication by secret", good + `,"token_endpoint_auth_method":"client_secret_post"}`, "client_secret_post"},
		{"authentication by key alone", good + `,"token_endpoint_auth_method":"private_key_jwt"}`, "private_key_jwt"},
		{"no redirects", `{"client_id":"` + id + `"}`, "redirect_uris"},
		{"not JSON", `<html>`, "invalid character"},
	} {
		_, err := readDocument(id, []byte(test.document))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for address, want := range map[string]bool{
		id: true, "https://client.example:8443/a/b?x": true, "https://client.example": false, "https://client.example/": false, "https://client.example/a/../b": false,
		"https://client.example/a/./b": false, "https://client.example/a/%2e%2e/b": false, "https://client.example/a#": false, "https://u@client.example/a": false,
		"https://u:p@client.example/a": false, "https:///a": false, "https://client.example/" + strings.Repeat("a", 1024): false, "https://client.example\\@other/a": false,
	} {
		u, err := url.Parse(address)
		if got := err == nil && documentURL(address, u); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for header, want := range map[string]time.Duration{
		"": documentTime, "max-age=60": time.Minute, "public, Max-Age=\"60\"": time.Minute, "max-age=x": 0, "max-age=-1": 0, "no-store": 0, "no-cache, max-age=60": 0,
		"max-age=99999999": documentMost, "max-age=99999999999999999999": 0,
	} {
		if got := lifetime(http.Header{"Cache-Control": {header}}); got != want {
			t.Errorf("%s: %v", header, got)
		}
	}
}

// TestDocument_Fetch checks how documents are fetched and cached. Errors are not cached.
func TestDocument_Fetch(t *testing.T) {
	s := newSite(t)
	var serve http.HandlerFunc
	fetched := 0
	id := s.web(func(w http.ResponseWriter, r *http.Request) {
		fetched++
		serve(w, r)
	}) + "/c"
	document := `{"client_id":"` + id + `","redirect_uris":["` + claude + `"]`
	says := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		}
	}
	for _, test := range []struct {
		name, want string
		serve      http.HandlerFunc
	}{
		{"not there", "404", http.NotFound},
		{"moved", "302", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }},
		{"a page", "not JSON", says("text/html", document+`}`)},
		{"no type", "not JSON", says("", document+`}`)},
		{"too long", "more than", says("application/json", document+`,"x":"`+strings.Repeat("x", maxDocument)+`"}`)},
		{"broken", "unexpected end", says("application/json", document)},
		{"nothing", "no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		{"an own type", "", says("application/client+json", document+`}`)},
	} {
		serve = test.serve
		_, err := s.server.client(t.Context(), netip.Addr{}, id)
		if f, _ := errors.AsType[*fault](err); (err == nil) != (test.want == "") || f != nil && !strings.Contains(strings.ToLower(f.Text), strings.ToLower(test.want)) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), `sets "documents": false in auth.front`) {
			t.Errorf("%s: it does not say what to set: %v", test.name, err)
		}
	}
	before := fetched
	serve = http.NotFound
	if _, err := s.server.client(t.Context(), netip.Addr{}, id); err != nil || fetched != before {
		t.Errorf("a good one is kept: %v, fetched %d times", err, fetched-before)
	}
	// A document with Cache-Control: no-store is not cached.
	id += "2"
	serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		says("application/json", strings.Replace(document, "/c", "/c2", 1)+`}`)(w, nil)
	}
	for range 2 {
		if _, err := s.server.client(t.Context(), netip.Addr{}, id); err != nil {
			t.Error(err)
		}
	}
	if fetched != before+2 {
		t.Errorf("fetched %d times", fetched-before)
	}
}

// silent is a network in which only the host named quick answers; it serves documents.
type silent struct {
	quick   string
	fetched atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (n *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != n.quick {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	n.fetched.Add(1)
	timer := time.NewTimer(time.Second) // even quick hosts take a second
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":[%q]}`, r.URL, claude)
	return w.Result(), nil
}

// TestDocuments_Silent: an attacker requests documents from many servers that never answer. Documents of other
// clients are still read at once, even for requests from the attacker's address, and a document that many clients
// need at the same time is read once. Requests whose fetch was ended to make room get an error that says so. If the
// sender of a request has gone, its fetch takes no room.
func TestDocuments_Silent(t *testing.T) {
	type attack struct {
		name string
		from func(i int) netip.Addr
		host func(i int) string
	}
	here, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	same := func(int) netip.Addr { return here }
	many := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}) }
	one := func(int) string { return "silent.example" }
	each := func(i int) string { return fmt.Sprintf("s%d.evil.example", i) }
	for _, a := range []attack{
		{"one address, one host", same, one}, {"one address, many hosts", same, each},
		{"many addresses, one host", many, one}, {"many addresses, many hosts", many, each},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := still(t, storeIn(t, ""), 'k')
				network := &silent{quick: "quick.example"}
				s.documents.web.Transport = network
				ctx, hangUp := context.WithCancel(t.Context())
				var hostile sync.WaitGroup
				for i := range 2 * maxFetches {
					hostile.Go(func() {
						_, err := s.client(ctx, a.from(i), fmt.Sprintf("https://%s/c%d", a.host(i), i))
						if f, _ := errors.AsType[*fault](err); f == nil || f.Code != "temporarily_unavailable" {
							t.Errorf("%v", err)
						}
					})
				}
				synctest.Wait()
				var good sync.WaitGroup
				for i, address := range []netip.Addr{here, other, here, other} {
					good.Go(func() {
						id := fmt.Sprintf("https://quick.example/c%d", i/2)
						if c, err := s.client(t.Context(), address, id); err != nil || c.ID != id {
							t.Errorf("a good client: %v", err)
						}
					})
				}
				began := time.Now()
				good.Wait()
				if took := time.Since(began); took > time.Second || network.fetched.Load() != 2 {
					t.Errorf("it took %v and %d fetches", took, network.fetched.Load())
				}
				hangUp()
				hostile.Wait()
				synctest.Wait()
				if n := len(s.documents.fetches); n > 0 {
					t.Errorf("%d places are still taken", n)
				}
				s.Close()
			})
		})
	}
}

// TestDocuments_Inside: no client ID makes the server fetch something from its own network, whatever the host is
// called.
func TestDocuments_Inside(t *testing.T) {
	mcptest.NoLeaks(t)
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("was reached") }))
	defer inside.Close()
	s := still(t, storeIn(t, ""), 'k')
	port := strings.TrimPrefix(inside.URL, "https://127.0.0.1:")
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, "[::ffff:127.0.0.1]:" + port, "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]", "0.0.0.0:" + port} {
		_, err := s.client(context.Background(), netip.Addr{}, "https://"+host+"/client.json")
		if f, _ := errors.AsType[*fault](err); f == nil || f.Code != "invalid_client" || !strings.Contains(f.Text, "not public") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// nothing is a network in which every request fails.
type nothing struct{}

// RoundTrip implements http.RoundTripper.
func (nothing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no network") }

// FuzzServer: no request makes the server panic, or redirect to a URL that is not allowed.
func FuzzServer(f *testing.F) {
	s := still(f, storeIn(f, ""), 'k')
	s.documents.web = &http.Client{Transport: nothing{}}
	id := s.seals.client.close(client{Name: "x", Redirects: []string{claude, "http://localhost/cb"}})
	f.Add("GET", authorizePath, "response_type=code&client_id="+id+"&redirect_uri="+url.QueryEscape(claude)+"&code_challenge="+challengeOfVerifier+"&code_challenge_method=S256", "", "")
	f.Add("POST", authorizePath, "response_type=code&client_id="+id+"&redirect_uri=http://localhost:1/cb&state=x&resource=x", "answer=deny&page=x", "mcpx-page=x")
	f.Add("GET", callbackPath, "code=x&state=y", "", "__Host-mcpx-login=x")
	f.Add("POST", tokenPath, "", s.codeOf(f, "c").Encode(), "")
	f.Add("POST", registerPath, "", `{"redirect_uris":["`+claude+`"]}`, "")
	f.Add("POST", revokePath, "", "token=x&client_id=y", "")
	f.Add("GET", metadataPath+"/mcp", "", "", "")
	f.Fuzz(func(t *testing.T, method, path, query, body, cookie string) {
		req, err := http.NewRequest(method, "https://mcp.example.com/", strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		req.URL.Path, req.URL.RawQuery = path, query
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if location := w.Header().Get("Location"); location != "" {
			u, err := url.Parse(location)
			if err != nil || location != strings.TrimSpace(location) || u.Scheme+"://"+u.Host != "https://claude.ai" && u.Hostname() != "localhost" {
				t.Errorf("sent to %q", location)
			}
		}
		if kind := w.Header().Get("Content-Type"); kind == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %s", w.Body)
		}
	})
}
