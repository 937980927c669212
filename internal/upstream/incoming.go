package upstream

import (
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// incoming takes what the server sends on its own, see the type incoming. It runs
// in a reader.
func (s *session) incoming(m wire.Message, of int64) {
	switch {
	case m.ID != nil && (m.Method == "initialize" || m.Method == string(mcp.MethodServerDiscover)):
		s.link.Life().Fail(errEcho) // what only clients ask
	case m.ID != nil:
		s.reply(m, of)
	case m.Method == "notifications/progress":
		s.progressed(m.Params)
	case m.Method == "notifications/message":
		s.logged(m.Params, of)
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
	default:
		s.unknown(m)
	}
}

// unknown passes on a notification that mcpx does not know, for clients that see the
// server alone.
func (s *session) unknown(m wire.Message) {
	if m.Method == "" || s.spec.OnUnknown == nil {
		return
	}
	s.spec.OnUnknown(m.Method, validText(m.Params))
}

var errEcho = errors.New("the program answers with what mcpx asks it, as cat does; it is no MCP server")

// grants reads of which resources a subscription that is acknowledged with these params
// tells, and whether it tells of changed lists. What does not say what it grants is taken
// to grant these.
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

// maxID bounds the ids of a server's requests, which are sent back to it.
const maxID = 1 << 10

// reply answers a request of the server: mcpx itself answers ping, and a client what
// only clients can (questions.go).
func (s *session) reply(m wire.Message, of int64) {
	switch {
	case len(m.ID) > maxID:
	case m.Method == "ping":
		s.answer(m.ID, json.RawMessage("{}"), nil)
	default:
		s.question(m, of)
	}
}
