package page

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
	"mcpx/internal/view"
)

// maxArguments is the maximum length of the body of a call, in bytes.
const maxArguments = 4 << 20

// client makes a client of the executor for one request. This client keeps no sessions with servers, and does not answer questions
// of servers. Only the method call asks the viewer for consent.
func (p *Page) client(ctx context.Context) *caller.Client {
	place := caller.Place{ID: "page " + rand.Text(), View: p.ViewName, Principal: caller.From(ctx)}
	client := caller.New(place, caller.Said{Name: "mcpx page"})
	return &client
}

// Hints describes the annotations of a tool in words.
func Hints(t *catalog.Tool) (words []string) {
	if t.Hints.IsReadOnly() {
		words = append(words, "read-only")
	}
	if t.Hints.Destructive != nil && t.Hints.IsDestructive() {
		words = append(words, "destructive")
	}
	if t.Hints.IsIdempotent() && !t.Hints.IsReadOnly() {
		words = append(words, "idempotent")
	}
	return words
}

// found is what inspect or a call has returned: the text as a model gets it, and its estimated tokens.
type found struct {
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

func said(result *results.Result) found {
	all := result.Text()
	return found{all, tokens.Estimate(all)}
}

// tool responds with the description of a tool as a model gets it, and with the schema of its arguments.
func (p *Page) tool(w http.ResponseWriter, r *http.Request) {
	q := view.Query{Server: r.URL.Query().Get("server"), Tool: r.URL.Query().Get("name")}
	c := p.client(r.Context())
	s, ok := p.Executor.Catalogue(c).Server(q.Server)
	var t *catalog.Tool
	if ok {
		t, ok = s.Tool(q.Tool)
	}
	if !ok {
		Refuse(w, http.StatusNotFound, "unknown_tool", "there is no such tool, or you may not use it")
		return
	}
	httpd.WriteJSON(w, http.StatusOK, struct {
		found
		Hints  []string        `json:"hints,omitempty"`
		Schema json.RawMessage `json:"schema,omitempty"`
	}{said(p.View.Inspect(r.Context(), c, q, false)), Hints(t), t.InputSchema})
}

// search responds with the tools that inspect finds for a query.
func (p *Page) search(w http.ResponseWriter, r *http.Request) {
	result := p.View.Inspect(r.Context(), p.client(r.Context()), view.Query{Text: r.URL.Query().Get("query")}, true)
	out := struct {
		found
		Tools []json.RawMessage `json:"tools"`
	}{found: said(result), Tools: []json.RawMessage{}}
	var data struct {
		Tools []struct{ Server, Name, Description string }
	}
	_ = json.Unmarshal(result.Structured, &data) // no error check, because a failed search has no structured result
	for _, t := range data.Tools {
		out.Tools = append(out.Tools, wire.Encode(map[string]string{"server": t.Server, "name": t.Name, "description": sanitize.Line(t.Description, 160)}))
	}
	httpd.WriteJSON(w, http.StatusOK, out)
}
