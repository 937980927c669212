package mcptest

import (
	"encoding/json"
	"strconv"
	"strings"
)

const updated = "notifications/resources/updated"

// offers returns the capabilities other than tools as JSON members, each with a comma before it.
func (s *server) offers(modern bool) (all string) {
	if s.spec.Resources != nil || s.spec.Templates != nil {
		era := EraLegacy
		if modern {
			era = EraModern
		}
		subscribe := s.spec.SubscribeEra == "" || s.spec.SubscribeEra == era
		all += `,"resources":{"subscribe":` + strconv.FormatBool(subscribe) + `,"listChanged":true}`
	}
	if s.spec.Prompts != nil {
		all += `,"prompts":{"listChanged":true}`
	}
	if all != "" {
		all += `,"completions":{}`
	}
	return all
}

// offer answers the methods for resources, prompts and completions. Lists have the items of the Spec; the other methods:
//
//   - resources/read: one text, "NAME has URI", if the URI is listed or contains a question mark; otherwise the error
//     -32602 in the modern era, and -32002 in the legacy era
//   - prompts/get: one message, "NAME prompts PROMPT ARGUMENTS"
//   - completion/complete: the values NAME and the raw ref
//   - resources/subscribe and resources/unsubscribe in a legacy session, unless SubscribeEra is EraModern: an empty
//     result. The tool notify sends the notifications.
func (s *server) offer(c *call) (a answer, known bool) {
	lists := map[string]struct {
		kind  string
		items json.RawMessage
	}{
		"resources/list":           {"resources", s.spec.Resources},
		"resources/templates/list": {"resourceTemplates", s.spec.Templates},
		"prompts/list":             {"prompts", s.spec.Prompts},
	}
	if s.offers(c.modern) == "" {
		return a, false
	}
	if list, ok := lists[c.method]; ok {
		if list.items == nil {
			return a, false
		}
		return result(`{"` + list.kind + `":` + string(oneLine(list.items)) + cacheable(c) + `}`), true
	}
	switch {
	case c.method == "resources/read":
		return s.read(c), true
	case strings.HasSuffix(c.method, "subscribe") && s.spec.SubscribeEra == EraModern:
		return a, false
	case c.method == "resources/subscribe" && !c.modern, c.method == "resources/unsubscribe" && !c.modern:
		c.ses.mu.Lock()
		if c.ses.subs == nil {
			c.ses.subs = map[string]bool{}
		}
		c.ses.subs[c.params.URI] = c.method == "resources/subscribe"
		c.ses.mu.Unlock()
		return result(`{}`), true
	case c.method == "prompts/get":
		arguments := string(c.params.Arguments)
		text := s.spec.name() + " prompts " + c.params.Name + strings.TrimRight(" "+arguments, " ")
		return result(`{"description":"a prompt","messages":[{"role":"user","content":{"type":"text","text":` + quote(text) + `}}]}`), true
	case c.method == "completion/complete":
		return result(`{"completion":{"values":[` + quote(s.spec.name()) + `,` + quote(string(c.params.Ref)) + `],"total":2,"hasMore":false}}`), true
	}
	return a, false
}

func (s *server) read(c *call) answer {
	uri := c.params.URI
	if !strings.Contains(string(s.spec.Resources), quote(uri)) && !strings.Contains(uri, "?") {
		a := fails(-32002, "Resource not found: "+uri)
		if c.modern {
			a = fails(-32602, "Resource not found: "+uri)
		}
		a.err.data = `{"uri":` + quote(uri) + `}`
		return a
	}
	return result(`{"contents":[{"uri":` + quote(uri) + `,"mimeType":"text/plain","text":` + quote(s.spec.name()+" has "+uri) +
		`,"x-big":9007199254740993}]` + cacheable(c) + `}`)
}

// cacheable returns the members about caching that modern lists and reads must have.
func cacheable(c *call) string {
	if c.modern {
		return `,"ttlMs":60000,"cacheScope":"public"`
	}
	return ""
}

// listensTo reports whether a legacy session gets a notification. The notification that a resource was updated is sent only to
// sessions that have subscribed to the URI of the resource or to a prefix of that URI.
func (ses *session) listensTo(method, params string) bool {
	if method != updated {
		return true
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	for uri, subscribed := range ses.subs {
		if subscribed && strings.HasPrefix(uriOf(params), uri) {
			return true
		}
	}
	return false
}

func uriOf(params string) string {
	var p struct{ URI string }
	_ = json.Unmarshal([]byte(params), &p) // if params is invalid, URI stays empty
	return p.URI
}
