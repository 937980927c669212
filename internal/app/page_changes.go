package app

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/page"
	"mcpx/internal/policy"
)

// toolChange is a tool whose definition differs from the approved one. Before is the text of the approved definition; nil for a
// new tool, or if the text was not kept. After is the present text; nil if the tool is gone.
type toolChange struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"` // changed, new or gone
	Members []string `json:"members,omitempty"`
	Before  *string  `json:"before"`
	After   *string  `json:"after"`
}

// pinWords are the words for the values of the config key pin.
var pinWords = map[conf.Pin]string{conf.PinOff: "off", conf.PinWarn: "warn", conf.PinBlock: "block"}

// approvable returns the server called name with all its tools. If the tools cannot be approved, it returns nil and has
// answered the request with the reason.
func (p *pageWork) approvable(w http.ResponseWriter, name string) *catalog.Server {
	of := configured(p.app.current.Load().config, name)
	full, known := p.app.Registry.Snapshot().Server(name)
	switch {
	case of == nil:
		page.Refuse(w, http.StatusNotFound, "unknown_server", "the config has no such server")
	case !known || !full.Known:
		page.Refuse(w, http.StatusConflict, "unavailable", "the tools of the server are not known yet; start it first")
	default:
		return full
	}
	return nil
}

// changes responds with how the tools of a server differ from the approved ones.
func (p *pageWork) changes(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("server")
	full := p.approvable(w, name)
	if full == nil {
		return
	}
	lock, err := LoadLock(p.app.Config)
	if err != nil {
		page.Refuse(w, http.StatusInternalServerError, "failed", "the approved tools cannot be read; the log says why")
		p.app.log.Error("the page shows no changes", "err", err)
		return
	}
	before := approvedDefinitions(p.app.Config, name, lock[name])
	added, changed, gone := lock.Changes(full)
	out := []toolChange{}
	for kind, names := range map[string][]string{"new": added, "changed": changed, "gone": gone} {
		for _, tool := range names {
			out = append(out, changeOf(kind, tool, before, full))
		}
	}
	slices.SortFunc(out, func(a, b toolChange) int { return strings.Compare(a.Name, b.Name) })
	httpd.WriteJSON(w, http.StatusOK, map[string]any{
		"tools": out, "digest": approvalOf(full), "locked": lock[name] != nil,
		"pin": pinWords[configured(p.app.current.Load().config, name).Pin],
	})
}

func changeOf(kind, name string, before map[string]definitionText, full *catalog.Server) toolChange {
	one := toolChange{Name: name, Kind: kind}
	was, kept := before[name]
	if kept {
		text := was.text()
		one.Before = &text
	}
	if now, there := full.Tool(name); there {
		text := definitionOf(now).text()
		one.After = &text
		if kept {
			one.Members = policy.Differences(was.tool(), now)
		}
	}
	return one
}

// approvalOf returns a digest of the present definitions of all tools of a server.
func approvalOf(s *catalog.Server) string {
	present := make(Lock)
	present.Approve(s)
	return digestOf(present[s.Name])
}

// approve makes the present tools of a server the approved ones, if they are still the tools that the viewer has seen.
func (p *pageWork) approve(w http.ResponseWriter, r *http.Request) {
	var in struct{ Digest string }
	name := r.PathValue("name")
	if !body(w, r, &in) {
		return
	}
	full := p.approvable(w, name)
	if full == nil {
		return
	}
	if subtle.ConstantTimeCompare([]byte(approvalOf(full)), []byte(in.Digest)) != 1 {
		refuse(w, http.StatusConflict, errChanged)
		return
	}
	what := change{action: "approve", name: name}
	save := func(setup.ConfigFile) error {
		if err := p.app.auditor.changing(caller.From(r.Context()), what, ""); err != nil {
			return err
		}
		if err := ChangeLock(p.app.Config, func(lock Lock) { lock.Approve(full) }); err != nil {
			return err
		}
		KeepDefinitions(p.app.Config, full)
		return nil
	}
	if p.api.apply(w, r, what, save) {
		w.WriteHeader(http.StatusNoContent)
	}
}
