package front

import (
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// message is a JSON-RPC message of a client, parsed once. Its slices alias the bytes read.
type message struct {
	wire.Message
	requestMeta
	row *method // in the table of methods
	// name, uri and arguments are members of params.
	name, uri, arguments json.RawMessage
	input                request.Input // modern: the answers to an input_required result
	// refusal is the error of a message that is not valid JSON-RPC, or nil.
	refusal *rpcError
}

// unknownMethod is the row of methods that the table does not have.
var unknownMethod method

// requestMeta has the members of _meta that mcpx uses.
type requestMeta struct {
	version      string           // protocol revision; empty in the legacy era
	clientName   string           // modern only
	capabilities json.RawMessage  // of the client, an object; modern only
	token        json.RawMessage  // progressToken; nil if absent
	level        mcp.LoggingLevel // modern: the lowest log level wanted; empty = none
	code         bool             // the call is made by a program that the model wrote
	others       []request.Meta   // traceparent and the client's own members, passed on to the upstream
}

// known reports whether the table of methods has the method.
func (m *message) known() bool { return m.row != &unknownMethod }

// modern reports whether _meta names a revision of the modern era.
func (m *requestMeta) modern() bool { return mcp.IsModernProtocol(m.version) }

// isRequest reports whether the message needs an answer.
func (m *message) isRequest() bool { return m.Method != "" && m.ID != nil }

// readMessage parses one message.
func readMessage(data []byte) *message {
	m := &message{row: &unknownMethod}
	var err error
	m.Message, err = wire.Parse(data)
	if row := methods[m.Method]; row != nil {
		m.row = row
	}
	// Invalid input is refused here: two parsers may understand it differently, and a strict upstream would end its session
	// over it, with the calls of all clients.
	switch {
	case err != nil || !m.Valid:
		m.refusal = &rpcError{code: mcp.PARSE_ERROR, message: "invalid JSON"}
	case !m.UTF8:
		m.refusal = &rpcError{code: mcp.PARSE_ERROR, message: "invalid UTF-8"}
	case m.Ambiguous:
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "a member of the message is repeated or differs only in case"}
	case m.ID != nil && !isID(m.ID):
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "the id must be a string or a number"}
	case m.Method == "" && !m.IsResponse():
		m.refusal = &rpcError{code: mcp.INVALID_REQUEST, message: "no method"}
	default:
		m.refusal = m.readParams()
		if m.refusal != nil && m.ID == nil {
			// A notification gets no answer, so bad params are only dropped.
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

// readParams reads _meta and the params that identify what a request is for.
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

// reservedMeta is the prefix of the protocol's own names in _meta; they are for one hop only.
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
		// Codex' code mode gives its calls such ids; those of a model begin with call_.
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

// nameIn returns the name in a clientInfo.
func nameIn(info json.RawMessage) string { return wire.MemberText(info, "name") }

// refuseModern returns the error of a modern request with a bad _meta (SEP-2575), or nil.
func (m *requestMeta) refuseModern() *rpcError {
	switch {
	case m.capabilities == nil:
		return &rpcError{code: mcp.INVALID_PARAMS, message: "missing or invalid _meta field " + mcp.MetaKeyClientCapabilities}
	case !mcp.IsValidProtocolVersion(m.version):
		return unsupportedVersion(m.version)
	}
	return nil
}

// said returns what a modern message says about its client.
func (m *message) said() caller.Said {
	return caller.Said{Name: m.clientName, Version: m.version, Capabilities: m.capabilities}
}
