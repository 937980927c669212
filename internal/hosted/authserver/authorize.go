package authserver

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/httpd"
)

const maxQuery = 16 << 10

// authorization is a checked authorization request of a client (RFC 6749, section 4.1.1).
type authorization struct {
	Client    string `json:"c"` // digest of the client_id
	Redirect  string `json:"r"`
	State     string `json:"s"`
	Challenge string `json:"p"` // PKCE code_challenge
	Called    string `json:"n,omitempty"`
	// Own is empty if a client asks for the login. If the user logs in for a web page of mcpx itself, Own is the path of that page,
	// and the other fields are empty.
	Own string `json:"o,omitempty"`
}

// authorize is the authorization endpoint. GET shows the consent page; POST, from the form on that page, starts the login if
// the user allows it. The page is shown at every authorization. The issuer knows only this server, not its clients, so without
// the page it would log in users for clients that they have never seen.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > maxQuery {
		pages.Fault(w, http.StatusRequestURITooLong, "The request is too long.")
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		pages.Fault(w, http.StatusBadRequest, "The address of this page is malformed.")
		return
	}
	c, a, err := s.authorizationRequest(r, query)
	if f, ok := errors.AsType[*fault](err); ok {
		switch {
		case a != nil:
			s.back(w, a, url.Values{"error": {f.Code}, "error_description": {f.Text}})
		case f.Code == "temporarily_unavailable":
			pages.Fault(w, http.StatusServiceUnavailable, f.Text)
		default:
			s.o.Log.Info("a client may not ask for a login", "reason", f.Text, "remote", r.RemoteAddr)
			pages.Fault(w, http.StatusBadRequest, f.Text)
		}
		return
	}
	if r.Method == http.MethodPost {
		s.answered(w, r, a)
		return
	}
	browser := s.cookie(r, pageCookie)
	if browser == "" {
		browser = random()
	}
	s.setCookie(w, pageCookie, browser)
	s.consentPage(w, c, a, s.seals.page.close(page{browser, digest(r.URL.RawQuery), deadline(pageTime)}))
}

// authorizationRequest checks an authorization request. If it returns an error together with an authorization, the error is sent
// back to the client. If it returns only an error, the redirect URI cannot be trusted, and the error is shown to the user alone.
func (s *Server) authorizationRequest(r *http.Request, query url.Values) (*client, *authorization, error) {
	var values [7]string
	for i, name := range []string{
		"client_id", "redirect_uri", "state", "response_type", "code_challenge", "code_challenge_method", "response_mode",
	} {
		value, err := only(query, name)
		if err != nil {
			return nil, nil, err
		}
		values[i] = value
	}
	c, err := s.client(r.Context(), httpd.AddressOf(r.RemoteAddr), values[0])
	if err != nil {
		return nil, nil, err
	}
	a := &authorization{Client: digest(c.ID), Redirect: values[1], State: values[2], Challenge: values[4], Called: c.Name}
	switch {
	case a.Redirect == "":
		return nil, nil, &fault{"invalid_request", "redirect_uri is missing"}
	case !c.knows(a.Redirect):
		return nil, nil, &fault{"invalid_request", "the client has not registered this redirect_uri: " + sanitize.Line(a.Redirect, 200)}
	case !s.redirects(a.Redirect):
		return nil, nil, &fault{
			"invalid_request",
			"this redirect_uri is not allowed here; auth.front.redirects of mcpx allows more: " + sanitize.Line(a.Redirect, 200),
		}
	case values[3] != "code":
		return nil, a, &fault{"unsupported_response_type", "response_type must be code"}
	case values[6] != "" && values[6] != "query":
		return nil, a, &fault{"invalid_request", "response_mode must be query"}
	case values[5] != "S256" || !challenge(a.Challenge):
		return nil, a, &fault{"invalid_request", "code_challenge with the method S256 is missing"}
	case !s.ours(query["resource"]):
		return nil, a, &fault{"invalid_target", "resource must be " + s.o.Resource}
	}
	return c, a, nil
}

// challenge reports whether text can be a PKCE code_challenge: whether it has the form of a SHA-256 hash in base64url (RFC 7636,
// section 4.2).
func challenge(text string) bool {
	return len(text) == 43 && strings.Trim(text, base64url) == ""
}

const base64url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// page is encrypted into the form of the consent page. With it, the user's answer proves that the form was shown in the same
// browser and for the same authorization request.
type page struct {
	Browser string `json:"b"`
	Query   string `json:"q"` // digest of the query string of the authorization request
	Until   int64  `json:"u"` // Unix seconds
}

// answered handles the user's answer on the consent page. It starts the login only if the answer is "allow", and if the form and
// the cookie prove that this page was shown in this browser for this request.
func (s *Server) answered(w http.ResponseWriter, r *http.Request, a *authorization) {
	r.Body = http.MaxBytesReader(w, r.Body, maxQuery)
	var p page
	browser := s.cookie(r, pageCookie)
	if s.sameSite.Check(r) != nil || r.ParseForm() != nil || s.seals.page.open(r.PostForm.Get("page"), &p) != nil ||
		browser == "" || !equal(p.Browser, browser) || p.Query != digest(r.URL.RawQuery) || expired(p.Until) {
		pages.Fault(w, http.StatusForbidden, "This page is too old, or your browser refuses cookies. Connect again from your client.")
		return
	}
	if r.PostForm.Get("answer") != "allow" {
		s.back(w, a, url.Values{"error": {"access_denied"}, "error_description": {"the user refused"}})
		return
	}
	s.startLogin(w, r, a)
}

// back redirects the user's browser to the client. values are the parameters for the client: a code or an error. back adds the
// client's state and the issuer name of this server (RFC 9207).
//
// A login for a web page of mcpx itself has no client. In this case, back shows the user the error in values.
func (s *Server) back(w http.ResponseWriter, a *authorization, values url.Values) {
	if a.Own != "" {
		pages.Fault(w, http.StatusForbidden, "Signing in failed: "+values.Get("error_description")+".")
		return
	}
	u, _ := redirect(a.Redirect) // valid: authorizationRequest has checked it
	if a.State != "" {
		values.Set("state", a.State)
	}
	values.Set("iss", s.issuer)
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += values.Encode()
	w.Header().Set("Location", u.String())
	w.WriteHeader(http.StatusSeeOther)
}

// pageCookie is the name of the cookie that identifies the browser in which the consent page was shown. loginCookie is the name of
// the cookie with the encrypted [pendingLogin].
const (
	pageCookie  = "mcpx-page"
	loginCookie = "mcpx-login"
	maxCookie   = 3800 // bytes; browsers drop cookies of more than 4 KB
)

// setCookie sets a cookie for this host only. If value is empty, it deletes the cookie. The cookie is SameSite=Lax and not Strict,
// because browsers must also send it when the issuer, which is another site, redirects them to mcpx.
func (s *Server) setCookie(w http.ResponseWriter, name, value string) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: int(pageTime / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	if s.secure() {
		c.Name, c.Secure = "__Host-"+name, true
	}
	http.SetCookie(w, c)
}

// cookie returns the value of a cookie. It is empty if the request has no such cookie, or more than one.
func (s *Server) cookie(r *http.Request, name string) string {
	if s.secure() {
		name = "__Host-" + name
	}
	if all := r.CookiesNamed(name); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// secure reports whether browsers reach this server over https. Only a server on loopback may use plain http.
func (s *Server) secure() bool { return strings.HasPrefix(s.issuer, "https://") }

func deadline(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func expired(until int64) bool { return time.Now().Unix() >= until }

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
