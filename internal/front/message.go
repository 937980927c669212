package front

import (
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// message is a JSON-RPC message of a client. The transport reads it once and hands it
// down. Its slices alias the bytes that were read.
type message struct {
	wire.Message
	requestMeta
	row *method // of the method
	// name, uri and arguments are members of params.
	name, uri, arguments json.RawMessage
	input                request.Input // modern era: the answers to an input_required result
	// refusal is the error of a message that is not valid JSON-RPC, or nil.
	refusal *rpcError
}

// unknownMethod is the row of every method that methods does not have.
var unknownMethod method

// requestMeta has the members of _meta that concern mcpx.
type requestMeta struct {
	version      string           // protocol revision; empty in the legacy era
	clientName   string           // modern era only
	capabilities json.RawMessage  // of the client, an object; modern era only
	token        json.RawMessage  // progressToken, nil if absent
	level        mcp.LoggingLevel // modern era: least severe log message wanted, empty = none
	code         bool             // a program that the model wrote makes the call
	others       []request.Meta   // traceparent, and what the client has of its own: for the upstream
}

// known reports whether the method is one of the protocol's.
func (m *message) known() bool { return m.row != &unknownMethod }

// modern reports whether the body names a revision of the modern era.
func (m *requestMeta) modern() bool { return mcp.IsModernProtocol(m.version) }

// isRequest reports whether the message wants an answer.
func (m *message) isRequest() bool { return m.Method != "" && m.ID != nil }

// readMessage reads one message.
func readMessage(data []byte) *message {
	m := &message{row: &unknownMethod}
	var err error
	m.Message, err = wire.Parse(data)
	if row := methods[m.Method]; row != nil {
		m.row = row
	}
	// Two parsers can understand invalid input differently. And a strict upstream
	// would end its session over it, with the calls of all clients.
	switch {
	case err != nil || !m.Valid:
		m.refusal = &rpcError{code: mcp.PARSE_ERROR, message: "invalid JSON"}
	case !m.UTF8:
		m.refusal = &rpcError{code: mcp.PARSE_ERROR, message: "invalid UTF-8"}
	case m.Ambiguous:
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "a member of the message is there twice, or in other letters"}
	case m.ID != nil && !isID(m.ID):
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "the id must be a string or a number"}
	case m.Method == "" && !m.IsResponse():
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "no method"}
	default:
		m.refusal = m.readParams()
		if m.refusal != nil && m.ID == nil {
			// Nothing answers a notification, so that one with odd params has none.
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

// readParams reads _meta, which all methods have, and the members that name something.
func (m *message) readParams() *rpcError {
	if len(m.Params) == 0 || string(m.Params) == "null" {
		m.Params = nil
		return nil
	}
	if m.Params[0] != '{' {
		return &rpcError{code: mcp.INVALID_PARAMS, message: "params must be an object"}
	}
	var meta json.RawMessage
	_ = wire.Fields(m.Params, func(key string, value []byte) bool {
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
	case len(meta) == 0 || string(meta) == "null":
		return nil
	case meta[0] != '{':
		return &rpcError{code: mcp.INVALID_PARAMS, message: "params._meta must be an object"}
	}
	_ = wire.Fields(meta, func(key string, value []byte) bool {
		m.readMeta(key, value)
		return true
	})
	return nil
}

// reservedMeta begins the names of _meta that are the protocol's: they concern one hop.
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
		}
	case "progressToken":
		m.token = value
	case "callId":
		// Codex names the calls of its code mode so, and those of a model call_….
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

// nameIn is the name in a clientInfo.
func nameIn(info json.RawMessage) string { return wire.MemberText(info, "name") }

// refuseModern is the error of a modern request with a bad _meta, or nil (SEP-2575).
func (m *requestMeta) refuseModern() *rpcError {
	switch {
	case m.capabilities == nil:
		return &rpcError{code: mcp.INVALID_PARAMS, message: "missing or invalid _meta field " + mcp.MetaKeyClientCapabilities}
	case !mcp.IsValidProtocolVersion(m.version):
		return unsupportedVersion(m.version)
	}
	return nil
}

// said is what a modern message says of its client.
func (m *message) said() caller.Said {
	return caller.Said{Name: m.clientName, Version: m.version, Capabilities: m.capabilities}
}
