package identity

import (
	"crypto/aes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
	"mcpx/internal/caller"
)

// Agents say which tokens of agents are accepted. An agent, in this package, is a client that connects as in the older system that
// mcpx replaces (dial.compat in the config). Its token is in the query of its URL.
type Agents struct {
	// Keys verify the tokens: a token is valid if one of the keys fits. The first key makes new tokens.
	Keys []string
	// Encrypted is true if the tokens of the older system are accepted too. These never expire and can be altered.
	Encrypted bool
}

// AgentKind is the first word of the ID of a principal that an agent's token has proved.
const AgentKind = "agent"

// agentID matches the IDs that an agent may have. The name of an agent is "agent:" and its ID. So it differs from the names of all
// other principals: they have an @, or do not begin with "agent:".
var agentID = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// agentClaim names the agent. It is a claim in a signed token, and a member of the JSON object in an encrypted one.
const agentClaim = "agentId"

var agentParser = jwt.NewParser(
	jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(), jwt.WithStrictDecoding())

// NewAgentToken makes a token for an agent that is valid until the given time: a JWT, signed with HMAC-SHA-256.
func NewAgentToken(key, agent string, until time.Time) (string, error) {
	if !agentID.MatchString(agent) {
		return "", errAgentID
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{agentClaim: agent, "exp": until.Unix()}).SignedString([]byte(key))
}

var errAgentID = errors.New("an agent is named by 1 to 64 letters (a-z), digits, '.', '_' and '-'")

// Agent verifies an agent's token. The error is ErrNone if there is no token, and else wraps ErrInvalid. It never contains a part
// of the token.
func (v *Verifier) Agent(token string) (*Proof, error) {
	s := v.state()
	switch {
	case s == nil || s.agents == nil:
		return nil, invalid(errors.New("no tokens of agents are accepted; dial.compat in the config turns them on"))
	case token == "":
		return nil, ErrNone
	case len(token) > maxAgentToken:
		return nil, invalid(errors.New("it is too long for a token of an agent"))
	}
	agent, by, until, err := s.options.Agents.open(token)
	if err == nil && !agentID.MatchString(agent) {
		err = errAgentID
	}
	if err != nil {
		return nil, invalid(err)
	}
	return &Proof{&caller.Principal{ID: AgentKind + " " + agent, Name: conf.Agents + agent}, s.agents[by].valid, until}, nil
}

// maxAgentToken is the maximum length of a token of an agent, in bytes.
const maxAgentToken = 4 << 10

// keyOfAgents is a key, and whether it verifies signed tokens or opens encrypted ones.
type keyOfAgents struct {
	key    string
	signed bool
}

// open verifies a token. It returns the agent, the key that fits, and the time (until) at which the token expires; the zero time means
// never.
func (a *Agents) open(token string) (agent string, by keyOfAgents, until time.Time, err error) {
	signed := strings.Count(token, ".") == 2
	if !signed && !a.Encrypted {
		return "", by, until, errors.New("it is not signed; mcpx token agent makes signed tokens")
	}
	err = errors.New("no key")
	for _, key := range a.Keys {
		if signed {
			agent, until, err = openSigned(token, key)
		} else {
			agent, err = openEncrypted(token, key)
		}
		if err == nil {
			return agent, keyOfAgents{key, signed}, until, nil
		}
	}
	return "", by, time.Time{}, err
}

func openSigned(token, key string) (agent string, until time.Time, err error) {
	claims := jwt.MapClaims{}
	if _, err := agentParser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return []byte(key), nil }); err != nil {
		return "", until, err
	}
	agent, _ = claims[agentClaim].(string)
	end, err := claims.GetExpirationTime()
	if err != nil {
		return "", until, err
	}
	return agent, end.Time, nil
}

var errEncrypted = errors.New("the token is not encrypted with the key")

// openEncrypted opens a token of the older system: base64 of AES in ECB mode, with PKCS #7 padding, of {"agentId": "ID"}.
func openEncrypted(token, key string) (agent string, err error) {
	// A + that was not escaped in the query arrives as a space.
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(token, " ", "+"))
	if err != nil || len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return "", errEncrypted
	}
	block, err := aes.NewCipher(encryptionKey(key))
	if err != nil {
		return "", err
	}
	for at := 0; at < len(data); at += aes.BlockSize {
		block.Decrypt(data[at:], data[at:])
	}
	padding := int(data[len(data)-1])
	if padding == 0 || padding > aes.BlockSize {
		return "", errEncrypted
	}
	text, tail := data[:len(data)-padding], data[len(data)-padding:]
	for _, b := range tail {
		if int(b) != padding {
			return "", errEncrypted
		}
	}
	var said map[string]string // any other JSON may be put together from blocks of several tokens
	if json.Unmarshal(text, &said) != nil || len(said) != 1 {
		return "", errEncrypted
	}
	return said[agentClaim], nil
}

// encryptionKey makes an AES key from a text as the older system does. If the text does not have the length of a key, it is padded
// with zeros or cut to 32 bytes.
func encryptionKey(text string) []byte {
	switch len(text) {
	case 16, 24, 32:
		return []byte(text)
	}
	key := make([]byte, 32)
	copy(key, text)
	return key
}

// newAgents returns the credentials that stand for the tokens of all agents: for each key one for signed and, if accepted, one for
// encrypted tokens. It returns nil if no such tokens are accepted. Credentials that the previous state has too are kept, so that
// connections stay valid.
func newAgents(o *Options, previous *State) map[keyOfAgents]*credential {
	if o.Agents == nil {
		return nil
	}
	all := make(map[keyOfAgents]*credential)
	for _, key := range o.Agents.Keys {
		for _, by := range []keyOfAgents{{key, true}, {key, false}} {
			if !by.signed && !o.Agents.Encrypted {
				continue
			}
			if all[by] = previous.agents[by]; all[by] == nil {
				all[by] = newCredential(conf.Token{}, nil)
			}
		}
	}
	return all
}
