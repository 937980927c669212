package logins

import (
	"net/http"
	"strings"
)

// challenge has what mcpx needs of a WWW-Authenticate header, with which a server refuses a request.
type challenge struct {
	metadata string // the URL of the server's protected resource metadata; empty if not given
	scopes   []string
	missing  bool // the server says that the token lacks scopes (insufficient_scope)
}

// readChallenge reads the challenge from the headers of a 401 or 403 response. If a value occurs several times, the first one is
// used.
func readChallenge(header http.Header) (c challenge) {
	for _, text := range header.Values("Www-Authenticate") {
		parameters(text, func(scheme, name, value string) {
			switch {
			case name == "resource_metadata" && c.metadata == "":
				c.metadata = value
			case scheme != "bearer":
			case name == "scope" && c.scopes == nil:
				c.scopes = strings.Fields(value)
			case name == "error" && value == "insufficient_scope":
				c.missing = true
			}
		})
	}
	return c
}

// parameters calls the function found once for each parameter of the challenges in a WWW-Authenticate header (RFC 9110, section
// 11.6.1). It passes the scheme and the name in lower case. It also reads headers that are not quite valid, such as parameters
// without commas. The SDK's parser would drop such a header altogether. It would also drop a valid header in which a value is
// empty.
func parameters(text string, found func(scheme, name, value string)) {
	const space = " \t"
	scheme := ""
	for {
		text = strings.TrimLeft(text, space+",=\"")
		if text == "" {
			return
		}
		word, rest := cutAt(text, space+",=\"")
		word = strings.ToLower(word)
		value, isParameter := strings.CutPrefix(strings.TrimLeft(rest, space), "=")
		if !isParameter {
			scheme, text = word, rest
			continue
		}
		value, text = parameterValue(strings.TrimLeft(value, space))
		found(scheme, word, value)
	}
}

// parameterValue returns the value at the beginning of text, without its quotes if it is quoted, and the text after it.
func parameterValue(text string) (value, rest string) {
	if !strings.HasPrefix(text, `"`) {
		return cutAt(text, " \t,")
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:]
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}

// cutAt splits text before the first character that is one of characters. If there is none, before is the whole text.
func cutAt(text, characters string) (before, rest string) {
	if end := strings.IndexAny(text, characters); end >= 0 {
		return text[:end], text[end:]
	}
	return text, ""
}
