package caller

import (
	"errors"
	"net/http"
	"strings"
)

var (
	// ErrNoToken is the error of a request that contains no bearer token.
	ErrNoToken = errors.New("no token")
	// ErrMalformed is the error of an Authorization header that cannot be read.
	ErrMalformed = errors.New("the Authorization header is malformed")
)

// maxToken is the maximum length of a token, in bytes. The longest tokens are JWTs with many groups.
const maxToken = 16 << 10

// Bearer returns the token in the Authorization header (RFC 6750, section 2.1). It ignores a token in the query of the URL, because
// MCP forbids tokens there. The error is ErrNoToken if there is no header, or if its scheme is not Bearer. It is ErrMalformed if
// the header cannot be read.
func Bearer(header http.Header) (string, error) {
	values := header["Authorization"]
	switch {
	case len(values) == 0:
		return "", ErrNoToken
	case len(values) > 1:
		return "", ErrMalformed
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ErrNoToken
	}
	token = strings.TrimLeft(token, " ")
	if token == "" || len(token) > maxToken {
		return "", ErrMalformed
	}
	for i := range len(token) {
		if !tokenByte[token[i]] {
			return "", ErrMalformed
		}
	}
	return token, nil
}

// tokenByte says for each byte whether a token may contain it (b64token of RFC 6750).
var tokenByte = func() (allowed [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") {
		allowed[c] = true
	}
	return allowed
}()
