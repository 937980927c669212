// Package wiretrace writes the messages between clients and mcpx, and between mcpx and MCP servers, to a file, for
// authors of MCP servers. It removes secrets.
package wiretrace

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
)

// Trace writes one line of JSON for each message. It is safe for concurrent use if its writer is.
type Trace struct {
	out      io.Writer
	isSecret func(name string) bool
	log      *slog.Logger

	secrets func() *sanitize.Secrets
	failed  atomic.Bool
}

// New returns a Trace. isSecret reports whether the value of a member with this name is a secret. secrets returns values that are
// removed wherever they occur in a message. Each line is one Write to out. Only the first error of out is logged; after an error,
// the trace goes on writing.
func New(out io.Writer, isSecret func(name string) bool, secrets func() *sanitize.Secrets, log *slog.Logger) *Trace {
	return &Trace{out: out, isSecret: isSecret, secrets: secrets, log: log}
}

// Strike returns text without secrets, and without other text that looks like a credential.
func Strike(secrets *sanitize.Secrets, text string) string {
	return credential.ReplaceAllStringFunc(secrets.Strike(text), func(found string) string {
		if strings.HasPrefix(found, "://") {
			return "://" + struck + "@"
		}
		return struck
	})
}

const (
	// A line contains at most maxMessage bytes of a message. The next lookahead bytes are searched for secrets too, so that no
	// secret of at most this length is cut in half and missed.
	maxMessage = 64 << 10
	lookahead  = 16 << 10

	struck = "[secret]"
)

// line is what is written for one message.
type line struct {
	Time string `json:"time"`
	From string `json:"from"`
	To   string `json:"to"`
	// Peer is the client's connection. It is empty if the message is not to or from a client.
	Peer  string `json:"peer,omitempty"`
	Bytes int    `json:"bytes"`
	// Message is the message without its secrets. If the message is too long or invalid JSON, Text is set instead.
	Message json.RawMessage `json:"message,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// Client writes a message between mcpx and the client on the connection peer. received means that mcpx received the
// message.
func (t *Trace) Client(peer string, received bool, message []byte) {
	one := line{From: "mcpx", To: "client", Peer: peer}
	if received {
		one.From, one.To = one.To, one.From
	}
	t.write(one, message)
}

// Server writes a message between mcpx and an MCP server. received means that mcpx received the message.
func (t *Trace) Server(name string, received bool, message []byte) {
	one := line{From: "mcpx", To: "server " + name}
	if received {
		one.From, one.To = one.To, one.From
	}
	t.write(one, message)
}

func (t *Trace) write(one line, message []byte) {
	one.Time, one.Bytes = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"), len(message)
	text := t.clean(string(message[:min(len(message), maxMessage+lookahead)]))
	switch {
	case len(message) <= maxMessage && json.Valid([]byte(text)):
		one.Message = json.RawMessage(text)
	case len(text) > maxMessage:
		one.Text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	default:
		one.Text = text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // Encode also compacts the message
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(one); err != nil {
		return
	}
	if _, err := t.out.Write(out.Bytes()); err != nil && !t.failed.Swap(true) {
		t.log.Error("the trace cannot be written", "err", err)
	}
}

// form has the patterns for JSON in a message: either JSON as it is, or JSON that is quoted in other JSON.
type form struct {
	member *pattern.Lazy // the name of a member, and the colon after it
	token  *pattern.Lazy // a string, a number, a literal, or a bracket of a list, with the comma after it
	quote  string
}

var (
	// plain is JSON. quoted is JSON that is quoted in other JSON, where line ends and tabs are escapes.
	plain = form{
		member: pattern.New(`"([^"\\]{1,100})"\s*:`),
		token:  pattern.New(`^\s*("(?:[^"\\]|\\.)+"|-?\d[\d.eE+-]*|""|null|true|false|[\[\]])\s*,?`),
		quote:  `"`,
	}
	quoted = form{
		member: pattern.New(`\\"([^"\\]{1,100})\\"(?:\s|\\[nrt])*:`),
		token: pattern.New(`^(?:\s|\\[nrt])*(\\"(?:[^"\\]|\\\\(?:\\["\\]|[^"\\])|\\[^"\\])+\\"|` +
			`-?\d[\d.eE+-]*|\\"\\"|null|true|false|[\[\]])(?:\s|\\[nrt])*,?`),
		quote: `\"`,
	}
	// credential matches text that looks like a credential, in any member.
	credential = pattern.New(`(?i:\bbearer\s+|\bbasic\s+)[A-Za-z0-9._~+/=-]{8,}|` +
		`\b(?:mcpx_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[a-z]-[\w-]{10,}|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)|` +
		`-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]*PRIVATE KEY-----)?|` +
		`://[^/?#\s@"\\]+:[^/?#\s@"\\]+@`)
)

// notSecret are names that resemble names of secrets, but whose values are not secret.
var notSecret = []string{"progressToken", "sessionId", "session"}

// clean removes three kinds of secrets: known ones, the values of members with names of secrets, and text that looks like a
// credential.
func (t *Trace) clean(text string) string {
	text = Strike(t.secrets(), text)
	text = plain.strike(text, t.isSecretMember)
	text = quoted.strike(text, t.isSecretMember)
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return text
}

func (t *Trace) isSecretMember(name string) bool {
	return t.isSecret(name) && !slices.Contains(notSecret, name)
}

// strike replaces the values of members whose names say that their values are secret: strings and numbers, alone or in lists. In
// a list, it stops at the first object. Objects stay, because the schema of an argument that is called password is no secret.
// Numbers of tokens, such as the value of maxTokens, stay too.
func (f *form) strike(text string, secret func(name string) bool) string {
	var out strings.Builder
	last := 0
	for _, at := range f.member.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		if at[0] < last || !secret(name) {
			continue
		}
		isCount := strings.Contains(strings.ToLower(name), "tokens")
		for pos, depth, more := at[1], 0, true; more; more = depth > 0 {
			found := f.token.FindStringSubmatchIndex(text[pos:])
			if found == nil {
				break
			}
			start, end := pos+found[2], pos+found[3]
			pos += found[1]
			switch value := text[start:end]; value {
			case "[":
				depth++
			case "]":
				depth--
			case "null", "true", "false", f.quote + f.quote:
			default:
				if isCount && !strings.HasPrefix(value, f.quote) {
					continue
				}
				out.WriteString(text[last:start] + f.quote + struck + f.quote)
				last = end
			}
		}
	}
	if last == 0 {
		return text
	}
	out.WriteString(text[last:])
	return out.String()
}
