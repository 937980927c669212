package config

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/base/pattern"
)

const (
	// leastSecret is the length of the shortest value that is struck out: shorter
	// ones stand in every text.
	leastSecret = 4
	// leastLiteral is the same for what is only guessed to be a secret, by the
	// form of an argument or a URL.
	leastLiteral = 6
	// leastLine is the same for one of the lines of a secret.
	leastLine = 12
	// leastNumber: shorter numbers are limits and ports rather than secrets.
	leastNumber = 8
)

var (
	secretKey = pattern.New(`(?i)token|secret|passw|passphrase|(?:api|access)[-_]?key|authorization|bearer|auth(?:$|[-_])|credential|cookie|private|session|signature|dsn|(?:^|[-_.])(?:key|pat|pwd|pass|jwt)$`)
	// aboutSecret are names that say where a secret is, or of what kind, and not
	// what it is.
	aboutSecret = pattern.New(`(?i)(?:file|path|dir|mode|type|kind|method|provider|ur[il]|host|port|env|var|name|ttl|timeout|expiry|scopes?|format|length|limit|count|store|storage)$`)
	// userinfo is what stands before the host of a URL, also of one that does not
	// parse because of what is in there.
	userinfo   = pattern.New(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s@]*(?:@[^/?#\s@]+)*)@`)
	plainWords = []string{"true", "false", "null", "none"}
	// settings are values of arguments whose names look secret.
	settings = []string{
		"basic", "bearer", "oauth", "oauth2", "apikey", "api_key", "api-key",
		"default", "disabled", "enabled", "required", "optional", "keyring", "keychain",
	}
	// surroundings are variables that say where a program runs: to strike out their
	// values would only make texts unreadable.
	surroundings = []string{
		"HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"LANG", "PWD", "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOSTNAME",
	}
	schemes = []string{"bearer", "basic", "token", "apikey"}
)

// secret notes a value that must not be shown. Very short values and words that
// stand in every text cannot be struck out without making texts unreadable.
// credential says that a name or a place shows that it is one.
func (r *serverReader) secret(value string, credential bool) {
	r.strike(value, leastSecret, credential)
}

func (r *serverReader) strike(value string, least int, credential bool) {
	value = strings.TrimSpace(value)
	if len(value) < least || slices.Contains(plainWords, strings.ToLower(value)) {
		return
	}
	r.secrets[value] = r.secrets[value] || credential
	if strings.Contains(value, "\n") { // a log has its lines one by one
		for line := range strings.Lines(value) {
			r.strike(line, leastLine, credential)
		}
	}
	// The credentials alone may be quoted in an error.
	scheme, credentials, _ := strings.Cut(value, " ")
	if slices.Contains(schemes, strings.ToLower(scheme)) {
		r.strike(credentials, least, credential)
	}
}

// SecretName reports whether what stands under a name is a secret, by the name.
func SecretName(name string) bool {
	return secretKey.MatchString(name) && !aboutSecret.MatchString(name)
}

// secretIfNamed notes a literal value of a key whose name looks secret.
func (r *serverReader) secretIfNamed(name, value string) {
	if SecretName(name) {
		r.secret(value, true)
	}
}

// literal notes the value of an argument whose name looks secret.
func (r *serverReader) literal(value string) {
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	number := strings.Trim(value, "0123456789.") == "" && len(value) < leastNumber
	if !number && !slices.Contains(settings, strings.ToLower(value)) {
		r.strike(value, leastLiteral, true)
	}
}

// argSecrets notes what the arguments of a command hold that looks secret, in
// the forms that are in use: --api-key=X, --token X, -e TOKEN=X, --header
// "Authorization: Bearer X", URLs, JSON, and all of these in the words of a
// shell's command line.
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
	r.urlSecrets(strings.Trim(arg, `"'`))
	for range 3 { // as in --env=TOKEN=X, --config={…}
		arg = strings.Trim(arg, `"'`)
		if strings.HasPrefix(arg, "{") {
			if n, err := parseJSON([]byte(arg)); err == nil {
				r.jsonSecrets("", n)
			}
			return
		}
		// The first of the two parts the name from the value.
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

// namesSecret reports whether an argument is the name of a secret.
func namesSecret(name string) bool {
	name = strings.TrimSpace(name)
	return headerKey.MatchString(name) && SecretName(name)
}

// jsonSecrets notes what JSON in an argument has under names that look secret.
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

// urlSecrets notes what the URLs in a text hold that looks secret, as it is
// written and as it is meant. Of HTTP the name of a user is secret too: it is
// mostly a token, and "postgres" or "git" elsewhere.
func (r *serverReader) urlSecrets(text string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return
	}
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

// encoded notes a part of a URL, as it is written and as it is meant.
func (r *serverReader) encoded(value string, least int) {
	r.strike(value, least, true)
	for _, decode := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := decode(value); err == nil && plain != value {
			r.strike(plain, least, true)
		}
	}
}
