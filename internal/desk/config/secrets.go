package config

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/base/pattern"
)

const (
	// minSecret is the smallest length of a secret, in bytes. Shorter values are not hidden, because they occur in many
	// messages by chance.
	minSecret = 4
	// minLiteral is the smallest length, in bytes, of three kinds of secrets: those that mcpx recognizes by their form, the values
	// of arguments, and the user names in URLs.
	minLiteral = 6
	// minLine is for secrets of several lines: each line that has at least minLine bytes is also hidden by itself.
	minLine = 12
	// minNumber is the smallest length of a number that can be a secret in an argument. Shorter numbers are mostly limits and ports.
	minNumber = 8
)

var (
	secretKey = pattern.New(`(?i)token|secret|passw|passphrase|(?:api|access)[-_]?key|authorization|bearer|auth(?:$|[-_])|credential|cookie|private|session|signature|dsn|(?:^|[-_.])(?:key|pat|pwd|pass|jwt)$`)
	// aboutSecret matches names of values that say something about a secret, such as its file or type, but are not secret
	// themselves.
	aboutSecret = pattern.New(`(?i)(?:file|path|dir|mode|type|kind|method|provider|ur[il]|host|port|env|var|name|ttl|timeout|expiry|scopes?|format|length|limit|count|store|storage)$`)
	// userinfo matches the user and password in a URL, even if they have characters that make the URL invalid.
	userinfo = pattern.New(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s@]*(?:@[^/?#\s@]+)*)@`)
	// tokenShape matches a JWT, or a token of a service whose tokens all have the same prefix.
	tokenShape = pattern.New(`(?:^|[^A-Za-z0-9])((?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abeoprs]-|AKIA|AIza|npm_|hf_|lin_api_|ntn_|figd_|tvly-|pplx-|dop_v1_|shpat_|SG\.)[A-Za-z0-9_.-]{16,}|eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+)`)
	// webPath matches an HTTP or WebSocket URL with a path. The path is the first group.
	webPath = pattern.New(`(?i)(?:https?|wss?)://[^/?#\s"']+(/[^?#\s"']*)`)
	// databaseFile matches the URL of a database in a local file. Without a password such a URL is no credential, even if the
	// argument's name, such as --dsn, looks like one.
	databaseFile = pattern.New(`(?i)^(?:sqlite3?|duckdb)://[^@?]*$`)
	plainWords   = []string{"true", "false", "null", "none"}
	// settings are values that are not secret even if the name of their argument looks like the name of a secret.
	settings = []string{
		"basic", "bearer", "oauth", "oauth2", "apikey", "api_key", "api-key",
		"default", "disabled", "enabled", "required", "optional", "keyring", "keychain",
	}
	// surroundings are environment variables that describe the user or the system. Their values are not secret, and if they
	// were hidden, messages would become unreadable.
	surroundings = []string{
		"HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"LANG", "PWD", "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOSTNAME",
	}
	schemes = []string{"bearer", "basic", "token", "apikey"}
)

// secret adds a value to the secrets of the server, which are hidden in messages. It leaves out a value that only names a database
// file, and a short or common value, because hiding it would make messages unreadable. credential is true if the name or the place
// of the value shows that it is a credential.
func (r *serverReader) secret(value string, credential bool) {
	r.strike(value, minSecret, credential)
}

func (r *serverReader) strike(value string, minimum int, credential bool) {
	value = strings.TrimSpace(value)
	if len(value) < minimum || slices.Contains(plainWords, strings.ToLower(value)) || databaseFile.MatchString(value) {
		return
	}
	r.secrets[value] = r.secrets[value] || credential
	if strings.Contains(value, "\n") { // messages may quote a single line of the secret
		for line := range strings.Lines(value) {
			r.strike(line, minLine, credential)
		}
	}
	// Messages may quote the credentials without the scheme before them, such as Bearer.
	scheme, credentials, _ := strings.Cut(value, " ")
	if slices.Contains(schemes, strings.ToLower(scheme)) {
		r.strike(credentials, minimum, credential)
	}
}

// SecretName reports whether a name, for example that of a variable, looks like the name of a secret.
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

// literal adds the value of an argument whose name looks like the name of a secret, as in --password=X, to the secrets of the
// server. It leaves out short values, short numbers and the words in settings.
func (r *serverReader) literal(value string) {
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	number := strings.Trim(value, "0123456789.") == "" && len(value) < minNumber
	if !number && !slices.Contains(settings, strings.ToLower(value)) {
		r.strike(value, minLiteral, true)
	}
}

// argSecrets adds what looks secret in the arguments of a command, in the usual forms: --api-key=X, --token X,
// -e TOKEN=X, --header "Authorization: Bearer X", URLs and JSON. It also finds these forms inside an argument that is
// itself a command line, for a shell.
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
	for range 3 { // several times for nested forms, as in --env=TOKEN=X and --config={…}
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

// namesSecret reports whether a part of an argument looks like the name of a secret.
func namesSecret(name string) bool {
	name = strings.TrimSpace(name)
	return headerKey.MatchString(name) && SecretName(name)
}

// jsonSecrets adds what looks secret in an argument that is JSON. name is the key of n or, if n is in an array, the key of the
// array.
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

// urlSecrets adds what looks secret in the URLs in a string. In HTTP and WebSocket URLs this includes the user name, which is
// mostly a token. In other URLs the user name is mostly a real name such as "postgres" or "git".
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
		r.encoded(password, minSecret)
		if strings.HasPrefix(scheme, "http") || strings.HasPrefix(scheme, "ws") {
			r.encoded(user, minLiteral)
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
			r.encoded(value, minSecret)
		}
	}
}

// tokens finds all parts of a string that match [tokenShape], and adds them to the secrets of the server.
func (r *serverReader) tokens(text string) {
	for _, found := range tokenShape.FindAllStringSubmatchIndex(text, -1) {
		r.strike(text[found[2]:found[3]], minLiteral, true)
	}
}

// pathSecrets looks at the paths of HTTP and WebSocket URLs, where some services put the token of a user. It adds the parts that look
// random to the secrets of the server.
func (r *serverReader) pathSecrets(text string) {
	for _, found := range webPath.FindAllStringSubmatchIndex(text, -1) {
		for part := range strings.SplitSeq(text[found[2]:found[3]], "/") {
			if random(part) {
				r.strike(part, minLiteral, true)
			}
		}
	}
}

// random reports whether a part of a path looks like random characters, and not like a name or a number.
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

// encoded adds a part of a URL to the secrets of the server, both as it is written and decoded. It leaves out a part that is
// shorter than minimum bytes.
func (r *serverReader) encoded(value string, minimum int) {
	r.strike(value, minimum, true)
	for _, decode := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := decode(value); err == nil && plain != value {
			r.strike(plain, minimum, true)
		}
	}
}
