package netguard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestGuard checks which addresses a client may connect to without Reach, with Reach.Loopback, and with Reach.Private.
func TestGuard(t *testing.T) {
	for _, test := range []struct {
		address       string
		remote, local bool // whether a client may connect to it without Reach, and with Reach.Loopback
	}{
		{"93.184.216.34", true, true},
		{"2606:2800:220:1::1", true, true},
		{"127.0.0.1", false, true},
		{"::1", false, true},
		{"::ffff:127.0.0.1", false, true},
		{"10.1.2.3", false, false},
		{"172.20.0.1", false, false},
		{"192.168.0.10", false, false},
		{"169.254.169.254", false, false}, // address of the metadata services of clouds
		{"::ffff:169.254.169.254", false, false},
		{"fd00:ec2::254", false, false},
		{"fe80::1%eth0", false, false},
		{"100.64.0.1", false, false},
		{"0.0.0.0", false, false},
		{"::", false, false},
		{"64:ff9b::a9fe:a9fe", false, false}, // NAT64 form of 169.254.169.254
		{"64:ff9b::5db8:d822", true, true},   // NAT64 form of a public address
		{"64:ff9b:1::1", false, false},
		{"2002:a00:1::1", false, false}, // 6to4 form of 10.0.0.1
		{"224.0.0.1", false, false},
		{"255.255.255.255", false, false},
	} {
		ip := netip.MustParseAddr(test.address)
		for reach, want := range map[Reach]bool{{}: test.remote, {Loopback: true}: test.local, {Private: true}: true} {
			if err := (&guard{Reach: reach}).address(ip); (err == nil) != want {
				t.Errorf("%s, %+v: %v", ip, reach, err)
			}
		}
	}
}

// TestGuard_Client: the rules also apply to redirects, to host names and to plain HTTP.
func TestGuard_Client(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("was reached") }))
	defer inside.Close()
	remote := NewClient(Reach{})
	port := strings.TrimPrefix(inside.URL, "http://127.0.0.1:")
	for _, address := range []string{inside.URL, "http://localhost:" + port, "http://169.254.169.254/latest/meta-data", "http://tracker.example/"} {
		if _, err := remote.Get(address); err == nil {
			t.Errorf("%s: no error", address)
		}
	}
	var to string
	redirected := make(chan bool, 100)
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redirected <- true
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	defer local.Close()
	client := NewClient(Reach{Loopback: true})
	for _, to = range []string{"https://10.0.0.1/", "http://tracker.example/", "file:///etc/passwd"} {
		if _, err := client.Get(local.URL); err == nil {
			t.Errorf("a redirect to %s: no error", to)
		}
	}
	for len(redirected) > 0 {
		<-redirected
	}
	to = local.URL
	if _, err := client.Get(local.URL); err == nil || !strings.Contains(err.Error(), "too many redirects") || len(redirected) > 8 {
		t.Errorf("redirects without end: %v after %d", err, len(redirected))
	}
	to = inside.URL
	if _, err := client.Post(local.URL, "text/plain", strings.NewReader("secret")); err == nil || !strings.Contains(err.Error(), "holds secrets") {
		t.Errorf("a redirect of a POST: %v", err)
	}
}

// TestGet: a document is read with a bearer token. A response over maxAnswer is not read to its end, which is an
// error.
func TestGet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", maxAnswer) + `"`))
		case "/token":
			_, _ = w.Write([]byte(`"` + r.Header.Get("Authorization") + `"`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	web := NewClient(Reach{Loopback: LoopbackURL(server.URL)})
	var said string
	if err := Get(t.Context(), web, server.URL+"/token", "x", &said); err != nil || said != "Bearer x" {
		t.Errorf("%q %v", said, err)
	}
	if err := Get(t.Context(), web, server.URL+"/long", "", &said); err == nil || err.Error() != "the answer is not the expected JSON document" {
		t.Errorf("a long answer: %v", err)
	}
	err := Get(t.Context(), web, server.URL, "", &said)
	if status, ok := errors.AsType[*StatusError](err); !ok || status.Code != http.StatusNotFound {
		t.Errorf("no document: %v", err)
	}
	server.Close()
	if err := Get(t.Context(), web, server.URL, "", &said); err == nil || strings.Contains(Cause(err).Error(), server.URL+`"`) {
		t.Errorf("no server: %v", Cause(err))
	}
}
