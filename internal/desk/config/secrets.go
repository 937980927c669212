package config

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/base/pattern"
)

const (
	// leastSecret is the length of the shortest value that is struck out: shorter ones occur in every text.
	leastSecret = 4
	// leastLiteral is the same for values that only look secret by the form of an argument or a URL.
	leastLiteral = 6
	// leastLine is the same for a single line of a secret.
	leastLine = 12
	// leastNumber is the same for numbers: shorter ones are mostly limits and ports.
	leastNumber = 8
)

var (
	secretKey = pattern.New(`(?i)token|secret|passw|passphrase|(?:api|access)[-_]?key|authorization|bearer|auth(?:$|[-_])|credential|cookie|private|session|signature|dsn|(?:^|[-_.])(?:key|pat|pwd|pass|jwt)$`)
	// aboutSecret are names of values about a secret, such as its place or kind.
	aboutSecret = pattern.New(`(?i)(?:file|path|dir|mode|type|kind|method|provider|ur[il]|host|port|env|var|name|ttl|timeout|expiry|scopes?|format|length|limit|count|store|storage)$`)
	// userinfo is the part of a URL before the host, also if its characters keep the URL from being parsed.
	userinfo = pattern.New(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s@]*(?:@[^/?#\s@]+)*)@`)
	// tokenShape is a token of a service, by the beginning that the service gives to all of its tokens, or a JWT.
	tokenShape = pattern.New(`(?:^|[^A-Za-z0-9])((?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abeoprs]-|AKIA|AIza|npm_|hf_|lin_api_|ntn_|figd_|tvly-|pplx-|dop_v1_|shpat_|SG\.)[A-Za-z0-9_.-]{16,}|eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+)`)
	// webPath is the path of a web address.
	webPath    = pattern.New(`(?i)(?:https?|wss?)://[^/?#\s"']+(/[^?#\s"']*)`)
	plainWords = []string{"true", "false", "null", "none"}
	// settings are values that are not secret, though the names of their arguments look so.
	settings = []string{
		"basic", "bearer", "oauth", "oauth2", "apikey", "api_key", "api-key",
		"default", "disabled", "enabled", "required", "optional", "keyring", "keychain",
	}
	// surroundings are variables about where a program runs. Striking out their values would only make texts
	// unreadable.
	surroundings = []string{
		"HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"LANG", "PWD", "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOSTNAME",
	}
	schemes = []string{"bearer", "basic", "token", "apikey"}
)

// secret notes a value to strike out of texts, unless it is so short or common that texts would become unreadable.
// credential is true if its name or place says that it is a credential.
func (r *serverReader) secret(value string, credential bool) {
	r.strike(value, leastSecret, credential)
}

func (r *serverReader) strike(value string, least int, credential bool) {
	value = strings.TrimSpace(value)
	if len(value) < least || slices.Contains(plainWords, strings.ToLower(value)) {
		return
	}
	r.secrets[value] = r.secrets[value] || credential
	if strings.Contains(value, "\n") { // logs may quote single lines
		for line := range strings.Lines(value) {
			r.strike(line, leastLine, credential)
		}
	}
	// Errors may quote the credentials without the scheme.
	scheme, credentials, _ := strings.Cut(value, " ")
	if slices.Contains(schemes, strings.ToLower(scheme)) {
		r.strike(credentials, least, credential)
	}
}

// SecretName reports whether a name is one of secrets.
func SecretName(name string) bool {
	return secretKey.MatchString(name) && !aboutSecret.MatchString(name)
}

func (r *serverReader) secretIfNamed(name, value string) {
	r.tokens(value)
	r.urlSecrets(value)
	if SecretName(name) {
		r.secret(value, true)
	}
}

// literal notes the value of an argument with the name of a secret.
func (r *serverReader) literal(value string) {
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	number := strings.Trim(value, "0123456789.") == "" && len(value) < leastNumber
	if !number && !slices.Contains(settings, strings.ToLower(value)) {
		r.strike(value, leastLiteral, true)
	}
}

// argSecrets notes what looks secret in the arguments of a command, in the usual forms: --api-key=X, --token X,
// -e TOKEN=X, --header "Authorization: Bearer X", URLs, JSON, and all of these inside of a shell's command line.
func (r *serverReader) argSecrets(args []string) {
	for i, arg := range args {
		r.argSecret(arg)
		if i+1 < len(args) && namesSecret(arg) && strings.HasPrefix(arg, "-") && !strings.HasPrefix(args[i+1], "-") {
			r.literal(args[i+1])
		}
		words := strings.FieldsFunc(arg, func(c rune) bool { return unicode.IsSpace(c) || c == ';' })
		if len(words) > 1 {
			r.argSecrets(words)
		}
	}
}

func (r *serverReader) argSecret(arg string) {
	r.tokens(arg)
	r.urlSecrets(strings.Trim(arg, `"'`))
	for range 3 { // nested, as in --env=TOKEN=X and --config={…}
		arg = strings.Trim(arg, `"'`)
		if strings.HasPrefix(arg, "{") {
			if n, err := parseJSON([]byte(arg)); err == nil {
				r.jsonSecrets("", n)
			}
			return
		}
		at := strings.IndexAny(arg, "=:")
		if at <= 0 || strings.HasPrefix(arg[at:], "://") {
			return
		}
		name, value := arg[:at], arg[at+1:]
		if namesSecret(name) {
			r.literal(value)
		}
		if arg[at] == ':' {
			return
		}
		arg = value
	}
}

// namesSecret reports whether text in an argument is the name of a secret.
func namesSecret(name string) bool {
	name = strings.TrimSpace(name)
	return headerKey.MatchString(name) && SecretName(name)
}

// jsonSecrets notes what looks secret in JSON in an argument.
func (r *serverReader) jsonSecrets(name string, n *node) {
	if n.kind == stringKind {
		r.urlSecrets(n.text)
	}
	if (n.kind == stringKind || n.kind == numberKind) && namesSecret(name) {
		r.literal(n.text)
	}
	for _, m := range n.members {
		r.jsonSecrets(m.key, m)
	}
	for _, item := range n.items {
		r.jsonSecrets(name, item)
	}
}

// urlSecrets notes what looks secret in the URLs in a text. For HTTP and WebSocket this includes the user's name, which
// is mostly a token there; in other URLs it is mostly a name such as "postgres" or "git".
func (r *serverReader) urlSecrets(text string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return
	}
	r.pathSecrets(text)
	r.tokens(text)
	for _, found := range userinfo.FindAllStringSubmatchIndex(text, -1) {
		scheme := strings.ToLower(text[found[0]:found[2]])
		user, password, _ := strings.Cut(text[found[2]:found[3]], ":")
		r.encoded(password, leastSecret)
		if strings.HasPrefix(scheme, "http") || strings.HasPrefix(scheme, "ws") {
			r.encoded(user, leastLiteral)
		}
	}
	_, query, _ := strings.Cut(rest, "?")
	query, _, _ = strings.Cut(query, "#")
	for _, pair := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || unicode.IsSpace(c) }) {
		name, value, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if secretKey.MatchString(name) {
			r.encoded(value, leastSecret)
		}
	}
}

// tokens notes what has the form of a token, whatever its name is.
func (r *serverReader) tokens(text string) {
	for _, found := range tokenShape.FindAllStringSubmatchIndex(text, -1) {
		r.strike(text[found[2]:found[3]], leastLiteral, true)
	}
}

// pathSecrets notes parts of the paths of web addresses that look random: some services have the token of a user there.
func (r *serverReader) pathSecrets(text string) {
	for _, found := range webPath.FindAllStringSubmatchIndex(text, -1) {
		for part := range strings.SplitSeq(text[found[2]:found[3]], "/") {
			if random(part) {
				r.strike(part, leastLiteral, true)
			}
		}
	}
}

// random reports whether a word looks like random characters, and not like a name or the number of something.
func random(word string) bool {
	has := func(from, to rune) bool {
		return strings.ContainsFunc(word, func(c rune) bool { return c >= from && c <= to })
	}
	switch other := strings.Trim(word, "="); {
	case strings.ContainsFunc(other, func(c rune) bool {
		return c != '-' && c != '_' && (c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c))
	}):
		return false
	case len(word) >= 22 && has('0', '9') && has('a', 'z') && has('A', 'Z'):
		return true
	}
	return len(word) >= 32 && has('0', '9') && has('a', 'f') && strings.Trim(word, "0123456789abcdef") == ""
}

// encoded notes a part of a URL, both as it is written and decoded.
func (r *serverReader) encoded(value string, least int) {
	r.strike(value, least, true)
	for _, decode := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := decode(value); err == nil && plain != value {
			r.strike(plain, least, true)
		}
	}
}
