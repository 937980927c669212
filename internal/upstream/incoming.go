package upstream

import (
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// incoming handles the requests and notifications that the server sends. streamID is the id of the request on whose
// stream the message came, or 0 if the message came on a shared stream. The goroutine that reads from the server calls
// incoming, so it must not block.
func (s *session) incoming(m wire.Message, streamID int64) {
	switch {
	case m.ID != nil && (m.Method == "initialize" || m.Method == string(mcp.MethodServerDiscover)):
		s.link.Life().Fail(errEcho) // the server returns messages that only clients send
	case m.ID != nil:
		s.reply(m, streamID)
	case m.Method == "notifications/progress":
		s.progressed(m.Params)
	case m.Method == "notifications/message":
		s.logged(m.Params, streamID)
	case m.Method == methodVisited:
		s.visited(m.Params)
	case m.Method == "notifications/cancelled":
		s.questions.cancelled(m.Params)
	case m.Method == "notifications/tools/list_changed":
		s.changes.tell(catalog.Tools)
	case m.Method == mcp.MethodNotificationResourcesListChanged:
		s.changes.tell(catalog.Resources, catalog.ResourceTemplates)
	case m.Method == mcp.MethodNotificationPromptsListChanged:
		s.changes.tell(catalog.Prompts)
	case m.Method == catalog.Skills.Changed():
		s.changes.tell(catalog.Skills)
	case m.Method == mcp.MethodNotificationResourceUpdated:
		s.updated(m.Params)
	case m.Method == mcp.MethodNotificationSubscriptionsAcknowledged:
		if resources, lists := grants(m.Params); lists {
			s.changes.opened()
		} else if len(resources) > 0 {
			s.acknowledged(resources)
		} else {
			s.changes.noStream()
		}
	case m.Method != "" && s.spec.OnUnknown != nil:
		s.spec.OnUnknown(m.Method, s.spec.originated(m.Params))
	}
}

var errEcho = errors.New("the program answers with what mcpx asks it, as cat does; it is no MCP server")

// grants reads the server's acknowledgement of a subscription. resources are the URIs of the resources whose updates
// the server grants. lists reports whether the server grants notifications of changed lists; it is also true if the
// acknowledgement does not say what is granted.
func grants(params json.RawMessage) (resources []string, lists bool) {
	var p struct {
		Notifications *mcp.SubscriptionFilter `json:"notifications"`
	}
	if json.Unmarshal(params, &p) != nil || p.Notifications == nil {
		return nil, true
	}
	lists = p.Notifications.ToolsListChanged || p.Notifications.ResourcesListChanged || p.Notifications.PromptsListChanged
	return p.Notifications.ResourceSubscriptions, lists
}

// maxID bounds the ids of a server's requests, in bytes, because the answers repeat them.
const maxID = 1 << 10

// reply answers a request of the server. mcpx answers ping itself, and passes other requests on to a client. A request whose id is
// longer than maxID gets no answer.
func (s *session) reply(m wire.Message, streamID int64) {
	switch {
	case len(m.ID) > maxID:
	case m.Method == "ping":
		s.answer(m.ID, json.RawMessage("{}"), nil)
	default:
		s.question(m, streamID)
	}
}
