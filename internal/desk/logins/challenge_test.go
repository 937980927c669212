package logins

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"mcpx/internal/base/conf"
)

// TestReadChallenge: what a server says is found wherever RFC 9110 permits it to stand, and where servers forget a comma.
func TestReadChallenge(t *testing.T) {
	const metadata = `resource_metadata="https://x/y"`
	for _, test := range []struct {
		headers  []string
		metadata string
		scopes   []string
		missing  bool
	}{
		{[]string{`Bearer ` + metadata + `, scope="a b", error="insufficient_scope"`}, "https://x/y", []string{"a", "b"}, true},
		{[]string{`Bearer realm="", ` + metadata}, "https://x/y", nil, false},
		{[]string{`Bearer scope="", ` + metadata + `, error="insufficient_scope"`}, "https://x/y", nil, true},
		{[]string{`Bearer error_description="No, \"scope=x\", never", ` + metadata}, "https://x/y", nil, false},
		{[]string{`BEARER Resource_Metadata=https://x/y?a=b, Scope=a`}, "https://x/y?a=b", []string{"a"}, false},
		{[]string{`Bearer error="invalid_token" , resource_metadata = "https://x/y"`}, "https://x/y", nil, false},
		{[]string{`Bearer error="insufficient_scope" ` + metadata + ` scope="a"`}, "https://x/y", []string{"a"}, true},
		{[]string{"Bearer\t" + metadata + ",,"}, "https://x/y", nil, false},
		{[]string{`Negotiate YWJj==, DPoP algs="ES256", error="insufficient_scope", scope="d", Bearer ` + metadata + `, scope="a"`}, "https://x/y", []string{"a"}, false},
		{[]string{`Negotiate`, `Basic realm="x"`, `Bearer ` + metadata, `Bearer scope="a"`}, "https://x/y", []string{"a"}, false},
		{[]string{`Bearer scope="a", Bearer scope="b"`}, "", []string{"a"}, false},
		{[]string{`Bearer scope="a`, `=`, `"`, `Bearer =`, ``, `,`}, "", []string{"a"}, false},
	} {
		c := readChallenge(http.Header{"Www-Authenticate": test.headers})
		if c.metadata != test.metadata || !slices.Equal(c.scopes, test.scopes) || c.missing != test.missing {
			t.Errorf("%q: %+v", test.headers, c)
		}
	}
}

// TestReadChallenge_Long: reading a long header copies none of its parts. With a copy of the rest for each word, a header of 10 MB, which
// net/http accepts, would take hours.
func TestReadChallenge_Long(t *testing.T) {
	for _, part := range []string{"a ", "a=b,", "a,", "a=,"} {
		header := http.Header{"Www-Authenticate": {"Bearer " + strings.Repeat(part, 1000)}}
		if n := testing.AllocsPerRun(5, func() { readChallenge(header) }); n > 10 {
			t.Errorf("%q: %v allocations", part, n)
		}
	}
}

// TestBegin_StepUp: scopes that the server asked for later, and that were granted, are requested at every further login, unless the config
// says what to request. Those that were not granted are not asked for again.
func TestBegin_StepUp(t *testing.T) {
	keyring.MockInit()
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-authorization-server" {
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register","code_challenge_methods_supported":["S256"]}`, web.URL)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer scope="first"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer web.Close()
	for _, test := range []struct{ configured, granted, want []string }{
		{nil, []string{"first", "later"}, []string{"first", "later"}},
		{nil, []string{"first"}, []string{"first"}},
		{[]string{"ours"}, []string{"first", "later"}, []string{"ours"}},
	} {
		s := Server{Name: "tracker", URL: web.URL + "/mcp", OAuth: conf.OAuth{Scopes: test.configured}}
		l := New(t.TempDir(), nil)
		if err := l.source(s).want(t.Context(), []string{"later"}); err == nil {
			t.Error("the user is not told to log in")
		}
		for range 2 { // the second login is after the first has ended
			if _, err := l.keep(t.Context(), s, &login{Server: s.Name, URL: s.URL, Scopes: test.granted}); err != nil {
				t.Fatal(err)
			}
		}
		b, err := l.begin(t.Context(), s, "")
		if err != nil {
			t.Fatal(err)
		}
		b.web.CloseIdleConnections()
		if !slices.Equal(b.scopes, test.want) {
			t.Errorf("%+v: %q", test, b.scopes)
		}
		l.Close(time.Minute)
	}
}
