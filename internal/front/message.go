package front

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// message is a JSON-RPC message of a client, parsed once. Its slices share the memory of the bytes that were
// read.
type message struct {
	wire.Message
	requestMeta
	row *method // the method's entry in the table of methods
	// name, uri and arguments are the members of params with these names; nil if absent.
	name, uri, arguments json.RawMessage
	input                request.Input // the answers to an input_required result, which only the modern era has
	told                 bool          // the message came from another replica (Front.Told), not from the client
	// refusal is the error of a message that mcpx refuses as soon as it is read, such as invalid JSON; otherwise nil.
	refusal *rpcError
}

// unknownMethod stands for all methods that are not in the table of methods.
var unknownMethod method

// requestMeta has the members of _meta that mcpx uses.
type requestMeta struct {
	version      string           // protocol revision; empty if _meta names none, as in the legacy era
	clientName   string           // modern era only
	capabilities json.RawMessage  // the client's capabilities, a JSON object; modern era only
	token        json.RawMessage  // progressToken; nil if absent
	level        mcp.LoggingLevel // modern era only: the lowest log level that the client wants; empty means no log messages
	oddLevel     bool             // _meta names a log level that does not exist
	code         bool             // the call is made by a program that the model wrote
	others       []request.Meta   // traceparent and the client's own members, passed on to the upstream
}

// known reports whether the method is in the table of methods.
func (m *message) known() bool { return m.row != &unknownMethod }

// modern reports whether _meta names a revision of the modern era.
func (m *requestMeta) modern() bool { return mcp.IsModernProtocol(m.version) }

// isRequest reports whether the message needs an answer.
func (m *message) isRequest() bool { return m.Method != "" && m.ID != nil }

// readMessage parses one message. If the message must be refused, readMessage sets the field refusal.
func readMessage(data []byte) *message {
	m := &message{row: &unknownMethod}
	var err error
	m.Message, err = wire.Parse(data)
	if row := methods[m.Method]; row != nil {
		m.row = row
	}
	// Invalid input is refused here, because two parsers may understand it differently. Also, a strict upstream server might
	// end its session because of invalid input, which would end the calls of all clients.
	switch {
	case err != nil && wire.Valid(data):
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "the message must be a JSON object"}
	case err != nil || !m.Valid:
		m.refusal = &rpcError{code: mcp.PARSE_ERROR, message: "invalid JSON"}
	case !m.UTF8:
		m.refusal = &rpcError{code: mcp.PARSE_ERROR, message: "invalid UTF-8"}
	case m.Ambiguous:
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "a member of the message is repeated or differs only in case"}
	case m.ID != nil && !isID(m.ID):
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "the id must be a string or a number"}
	case m.ID == nil && m.Method != "" && !strings.HasPrefix(m.Method, "notifications/") && wire.Member(data, "id") != nil:
		// The id is null, which MCP forbids, but the client waits for an answer. In a notification a null id is accepted, because
		// some clients send it in place of no id.
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "the id must not be null"}
	case m.Method == "" && !m.IsResponse():
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "no method"}
	default:
		m.refusal = m.readParams()
		if m.refusal != nil && m.ID == nil {
			// A notification gets no answer, so invalid params are dropped without an error.
			m.refusal, m.Params = nil, nil
		}
	}
	if !isID(m.ID) || (m.refusal != nil && !wire.Valid(m.ID)) {
		m.ID = nil
	}
	return m
}

// isID reports whether a JSON value is a string or a number.
func isID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || (id[0] >= '0' && id[0] <= '9'))
}

// readParams reads _meta and the params that identify what a request is for. It returns the error for params that mcpx refuses, or
// nil.
func (m *message) readParams() *rpcError {
	if len(m.Params) == 0 || string(m.Params) == "null" {
		m.Params = nil
		return nil
	}
	if m.Params[0] != '{' {
		return &rpcError{code: mcp.INVALID_PARAMS, message: "params must be an object"}
	}
	var meta json.RawMessage
	var names memberNames
	_ = wire.Fields(m.Params, func(key string, value []byte) bool {
		if !names.add(paramName(key)) {
			names.twice = true
			return false
		}
		switch key {
		case "_meta":
			meta = value
		case "name":
			m.name = value
		case "uri":
			m.uri = value
		case "arguments":
			m.arguments = value
		case "inputResponses":
			if value[0] == '{' {
				m.input.Responses = value
			}
		case "requestState":
			if value[0] == '"' {
				m.input.State = value
			}
		}
		return true
	})
	switch {
	case names.twice:
		return &rpcError{code: mcp.INVALID_PARAMS, message: "a member of params is repeated or differs only in case"}
	case len(meta) == 0 || string(meta) == "null":
		return nil
	case meta[0] != '{':
		return &rpcError{code: mcp.INVALID_PARAMS, message: "params._meta must be an object"}
	}
	names = memberNames{}
	_ = wire.Fields(meta, func(key string, value []byte) bool {
		names.twice = !names.add(key)
		m.readMeta(key, value)
		return !names.twice
	})
	if names.twice {
		return &rpcError{code: mcp.INVALID_PARAMS, message: "a member of params._meta is repeated"}
	}
	return nil
}

// memberNames are the names of an object's members that have been read so far. mcpx refuses an object that has a name twice,
// because parsers disagree about which of the two values counts: mcpx might check one, and the server use the other.
type memberNames struct {
	first [12]string // a fixed array, which needs no allocation; enough for most messages
	n     int
	more  map[string]struct{}
	twice bool
}

// add adds a name. It returns false if the name was added before.
func (s *memberNames) add(name string) bool {
	if slices.Contains(s.first[:s.n], name) {
		return false
	}
	if s.n < len(s.first) {
		s.first[s.n] = name
		s.n++
		return true
	}
	if s.more == nil {
		s.more = make(map[string]struct{})
	}
	before := len(s.more)
	s.more[name] = struct{}{}
	return len(s.more) > before
}

// paramNames are the members of params by which mcpx decides what a request applies to.
var paramNames = []string{"_meta", "name", "uri", "arguments", "inputResponses", "requestState", "taskId"}

// paramName returns the entry of paramNames that is equal to key except for letter case, because some servers
// ignore case. If there is none it returns key.
func paramName(key string) string {
	for _, known := range paramNames {
		if strings.EqualFold(key, known) {
			return known
		}
	}
	return key
}

// reservedMeta is the prefix of the protocol's own names in _meta. Members with this prefix are not passed on to the upstream
// server.
const reservedMeta = "io.modelcontextprotocol/"

func (m *requestMeta) readMeta(key string, value json.RawMessage) {
	switch key {
	case mcp.MetaKeyProtocolVersion:
		m.version, _ = wire.Text(value)
	case mcp.MetaKeyClientInfo:
		m.clientName = nameIn(value)
	case mcp.MetaKeyClientCapabilities:
		if value[0] == '{' {
			m.capabilities = value
		}
	case mcp.MetaKeyLogLevel:
		if level, _ := wire.Text(value); isLevel(mcp.LoggingLevel(level)) {
			m.level = mcp.LoggingLevel(level)
		} else {
			m.oddLevel = string(value) != "null"
		}
	case "progressToken":
		if isID(value) { // a token is a string or a number, too
			m.token = value
		}
	case "callId":
		// The code mode of Codex gives its calls ids that begin with exec-; ids of calls by a model begin with call_.
		id, _ := wire.Text(value)
		m.code = strings.HasPrefix(id, "exec-")
		fallthrough
	default:
		if strings.HasPrefix(key, reservedMeta) {
			return
		}
		m.others = append(m.others, request.Meta{Name: key, Value: value})
	}
}

// nameIn returns the name in a clientInfo object.
func nameIn(info json.RawMessage) string { return wire.MemberText(info, "name") }

// refuseMeta returns the error of a request whose _meta names a revision that mcpx does not know, or of a modern request with a bad
// _meta (SEP-2575); otherwise nil. The revision is checked first, because an unknown revision may require other members.
func (m *requestMeta) refuseMeta() *rpcError {
	switch {
	case m.version != "" && !mcp.IsValidProtocolVersion(m.version):
		return unsupportedVersion(m.version)
	case !m.modern():
		return nil
	case m.capabilities == nil:
		return &rpcError{code: mcp.INVALID_PARAMS, message: "missing or invalid _meta field " + mcp.MetaKeyClientCapabilities}
	case m.oddLevel:
		return &rpcError{code: mcp.INVALID_PARAMS, message: "no such log level in the _meta field " + mcp.MetaKeyLogLevel}
	}
	return nil
}

// said returns what a modern message says about its client: the name (if any), the protocol version and the capabilities. A
// modern client says this in every request.
func (m *message) said() caller.Said {
	return caller.Said{Name: m.clientName, Version: m.version, Capabilities: m.capabilities}
}
