package netguard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Tokens returns a client like web for requests of x/oauth2 to a token endpoint. It mends responses that x/oauth2 would drop; see
// wholeSeconds.
func Tokens(web *http.Client) *http.Client {
	lenient := *web
	lenient.Transport = wholeSeconds{web.Transport}
	return &lenient
}

// wholeSeconds is a transport that makes expires_in in a response an integer, or 0 (unknown) if it is no number. If expires_in is
// anything else, x/oauth2 drops the whole response, and with it the new refresh token. By then, the server may no longer accept the
// old refresh token.
type wholeSeconds struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w wholeSeconds) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := cmp.Or(w.base, http.DefaultTransport).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) == nil && members["expires_in"] != nil {
		whole := int64(min(max(Seconds(members["expires_in"]), -1), math.MaxInt32))
		members["expires_in"] = strconv.AppendInt(nil, whole, 10)
		data, _ = json.Marshal(members) // cannot fail: the values are valid JSON
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// Seconds returns the value of a JSON number, or of a JSON string that contains a number. For any other value it returns 0.
func Seconds(value json.RawMessage) float64 {
	number, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
	if err != nil || math.IsNaN(number) {
		return 0
	}
	return number
}
