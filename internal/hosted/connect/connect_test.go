package connect

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
)

const base = "http://127.0.0.1:1"

// pretended implements [Accounts] for one server, tracker.
type pretended struct{ begun, finished []string }

func (*pretended) Title(server string) (string, bool) {
	return "https://tracker.example/mcp", server == "tracker"
}
func (*pretended) Connected(context.Context, string, string) bool { return false }
func (a *pretended) Begin(_ context.Context, _ string, of Principal, _ string) (json.RawMessage, func(string) string, error) {
	a.begun = append(a.begun, of.ID)
	return json.RawMessage(`{}`), func(state string) string { return "https://tracker.example/authorize?state=" + state }, nil
}
func (a *pretended) Finish(_ context.Context, _ string, of Principal, _ json.RawMessage, _ url.Values) error {
	a.finished = append(a.finished, of.ID)
	return nil
}
func (*pretended) Disconnect(context.Context, string, Principal) error { return nil }
func (*pretended) Sees(*caller.Principal, string) bool                 { return true }

// site has the pages under test, one browser (jar has its cookies) and one program.
type site struct {
	t        *testing.T
	accounts *pretended
	pages    *Pages
	jar      map[string]string
	signed   *caller.Principal // the principal that has signed in with the browser through auth.front
	program  *caller.Principal // the principal whose token the program has
}

func newSite(t *testing.T) *site {
	s := &site{t: t, accounts: &pretended{}, jar: map[string]string{}}
	pages, err := New(Options{
		Base: base, Secrets: []*state.Secret{state.NewSecret()}, Accounts: s.accounts, Pending: NewPending(), Codes: NewCodes(),
		Once: state.NewOnce("test", state.NewRecords(100, 1<<20)), Log: slog.New(slog.DiscardHandler),
		Caller: func(*http.Request) (*caller.Principal, error) { return s.program, nil },
		Viewer: func(*http.Request) *caller.Principal { return s.signed },
		SignIn: func(w http.ResponseWriter, r *http.Request, back string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.pages = pages
	return s
}

// open opens a page in the browser. If fields is not nil, it sends the form on the page with these fields.
func (s *site) open(address string, fields url.Values) (status int, page, location string) {
	s.t.Helper()
	method := http.MethodGet
	if fields != nil {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range s.jar {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, r)
	for _, one := range w.Result().Cookies() {
		s.jar[one.Name] = one.Value
	}
	text, _ := io.ReadAll(w.Body)
	return w.Code, string(text), w.Header().Get("Location")
}

// code lets a program of a principal ask for a login. It returns the link for the user, and the code to type there.
func (s *site) code(p *caller.Principal) (link, code string) {
	s.t.Helper()
	s.program = p
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, base+codePath, strings.NewReader(`{"server":"tracker"}`))
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, r)
	var got struct{ URL, Code string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.URL == "" {
		s.t.Fatal(w.Code, w.Body.String(), err)
	}
	return got.URL, got.Code
}

// TestCode_Sent: eve sends her link and her code to bob, so that he connects his account to her principal. If bob has signed in
// with his browser, the pages refuse the code there. If he signs in after typing it, they refuse to begin the login. Eve herself
// can still use the code.
func TestCode_Sent(t *testing.T) {
	eve, bob := &caller.Principal{ID: "token eve", Name: "eve"}, &caller.Principal{ID: "https://a.test bob", Name: "bob@a.test"}
	typed := func(code string) url.Values { return url.Values{"answer": {"code"}, "code": {code}} }

	s := newSite(t)
	link, code := s.code(eve)
	s.signed = bob
	if status, page, _ := s.open(link, typed(code)); status != http.StatusForbidden || !strings.Contains(page, "signed in as bob@a.test") {
		t.Errorf("typed by bob: %d %s", status, page)
	}
	s.signed = nil
	if status, page, _ := s.open(link, typed(code)); status != http.StatusSeeOther {
		t.Errorf("typed by eve: %d %s", status, page)
	}
	if status, page, _ := s.open(link, nil); status != http.StatusOK || !strings.Contains(page, "You are <strong>eve") {
		t.Errorf("seen by eve: %d %s", status, page)
	}
	s.signed = bob
	if _, _, location := s.open(link, url.Values{"answer": {"go"}}); !strings.HasPrefix(location, base+pagePath) || len(s.accounts.begun) > 0 {
		t.Errorf("bob goes on: %s %v", location, s.accounts.begun)
	}
	if _, page, _ := s.open(link, nil); !strings.Contains(page, "is signed in as <strong>bob@a.test") {
		t.Errorf("seen by bob: %s", page)
	}
	s.signed = nil
	if _, _, location := s.open(link, url.Values{"answer": {"go"}}); strings.HasPrefix(location, "https://tracker.example/") {
		t.Error("the browser is eve's again, after bob was seen in it")
	}
}

// TestCode_Front: a principal that logged in through auth.front signs in there to prove who it is. So it gets no code, which
// could be stolen or sent to somebody else.
func TestCode_Front(t *testing.T) {
	s := newSite(t)
	ann := &caller.Principal{ID: "https://a.test ann", Name: "ann@a.test", IssuerToken: func(context.Context) (string, error) { return "", nil }}
	link, code := s.code(ann)
	if code != "" {
		t.Errorf("a code %q", code)
	}
	s.signed = ann
	_, page, _ := s.open(link, nil)
	_, _, location := s.open(link, url.Values{"answer": {"go"}})
	if !strings.Contains(page, "You are <strong>ann@a.test") || !strings.HasPrefix(location, "https://tracker.example/") {
		t.Errorf("%s\n%s", page, location)
	}
}

// TestLink_Near: only the principal of a link can use it, even if the IDs of other principals are similar: the same subject of
// another issuer, an issuer whose URL begins with the URL of this one, a token with the name of the user, or similar letters.
func TestLink_Near(t *testing.T) {
	var all []*caller.Principal
	for _, id := range []string{
		"https://a.test ann", "https://b.test ann", "https://a.test.evil.test ann", "https://a.test/ ann", "https://a.test Ann", "https://a.test \u0430nn",
		"token ann", "https://a.test ann ", "https://a.test an", "certificate https://a.test ann",
	} {
		all = append(all, &caller.Principal{ID: id, Name: "ann@a.test"}) // the same name for all: only the ID may count
	}
	for _, of := range all {
		for _, viewer := range all {
			s := newSite(t)
			s.signed = viewer
			link := s.pages.Link("tracker", of)
			_, page, _ := s.open(link, nil)
			_, _, location := s.open(link, url.Values{"answer": {"go"}})
			on := strings.HasPrefix(location, "https://tracker.example/")
			if on != (of == viewer) || strings.Contains(page, "You are") != on {
				t.Fatalf("%q with the link of %q: %v", viewer.ID, of.ID, on)
			}
			if !on {
				continue
			}
			// The redirect from the server's login page is refused in the browser of everybody else, and accepted in this one.
			state, browser := location[strings.Index(location, "state=")+len("state="):], s.jar
			for _, other := range all {
				if other != of {
					s.jar, s.signed = map[string]string{}, other
					s.open(s.pages.Link("tracker", other), nil)
					if status, page, _ := s.open(base+CallbackPath+"?code=x&state="+state, nil); status != http.StatusBadRequest || len(s.accounts.finished) > 0 {
						t.Fatalf("%q with the redirect of %q: %d %s", other.ID, of.ID, status, page)
					}
				}
			}
			s.jar, s.signed = browser, nil
			if status, page, _ := s.open(base+CallbackPath+"?code=x&state="+state, nil); status != http.StatusOK || len(s.accounts.finished) != 1 {
				t.Fatalf("%q: %d %s", of.ID, status, page)
			}
		}
	}
}
