package logins

import (
	"net/http"
	"slices"
	"testing"
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
