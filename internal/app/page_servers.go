package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/savings"
	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/page"
)

// shownTool is a tool in the page's list. Why is the reason why the tool is hidden; empty if it is visible.
type shownTool struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Hints       []string `json:"hints,omitempty"`
	Changed     bool     `json:"changed,omitempty"`
	Why         string   `json:"why,omitempty"`
}

// server responds with the tools of a server that the viewer may use. If the config has the server, it adds the hidden tools,
// each with the reason why it is hidden.
func (p *pageWork) server(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	seen, ok := p.app.Executor.Catalogue(p.client(r)).Server(name)
	if !ok {
		page.Refuse(w, http.StatusNotFound, "unknown_server", "there is no such server, or you may not use it")
		return
	}
	cfg := p.app.current.Load().config
	full, known := p.app.Registry.Snapshot().Server(name)
	status, _ := p.app.Registry.Status(name)
	out := struct {
		Purpose string      `json:"purpose"`
		Tools   []shownTool `json:"tools"`
		Hidden  []shownTool `json:"hidden"`
		Faults  []string    `json:"faults,omitempty"`
	}{Purpose: sanitize.Line(seen.Purpose(), 600), Tools: []shownTool{}, Hidden: []shownTool{}}
	for _, fault := range status.Faults {
		out.Faults = append(out.Faults, sanitize.Line(fault, 400))
	}
	changed := p.changedTools(name, full)
	for i := range seen.Tools {
		t := &seen.Tools[i]
		out.Tools = append(out.Tools, shownTool{Name: t.Name, Description: sanitize.Line(t.Description, 160), Hints: page.Hints(t),
			Changed: slices.Contains(changed, t.OwnName())})
	}
	if of := configured(cfg, name); known && of != nil {
		for i := range full.Tools {
			t := &full.Tools[i]
			if slices.ContainsFunc(seen.Tools, func(s catalog.Tool) bool { return s.OwnName() == t.Name }) {
				continue
			}
			why := Explain(cfg, full, status.Faults, t.Name)
			if why.Visible { // no filter hides the tool, so the viewer's rights do
				why.Why = "you may not use it: auth.rights"
			}
			out.Hidden = append(out.Hidden, shownTool{
				t.Name, sanitize.Line(t.Description, 160), page.Hints(t), slices.Contains(changed, t.Name), why.Why,
			})
		}
	}
	httpd.WriteJSON(w, http.StatusOK, out)
}

// client returns a client with the rights of the viewer, for listing the tools that the viewer may use.
func (p *pageWork) client(r *http.Request) *caller.Client {
	place := caller.Place{View: config.ViewTwoTools, Principal: caller.From(r.Context())}
	client := caller.New(place, caller.Said{Name: "mcpx page"})
	return &client
}

// changedTools returns the names of the tools that are new or have changed since they were approved. It returns none if nothing
// of the server was approved.
func (p *pageWork) changedTools(name string, full *catalog.Server) []string {
	lock, err := LoadLock(p.app.Config)
	if err != nil || full == nil || lock[name] == nil {
		return nil
	}
	added, changed, _ := lock.Changes(full)
	return slices.Concat(added, changed)
}

// entry responds with a server's entry in the config, without its secrets.
func (p *pageWork) entry(w http.ResponseWriter, r *http.Request) {
	name, shown := r.URL.Query().Get("name"), setup.Shown{}
	err := errNoFile
	if file := p.app.source.Load(); file != nil {
		var data []byte
		if data, _, err = config.Read(file.Path); err == nil {
			_, err = file.Named(name, func(data []byte, inFile string) ([]byte, error) {
				var err error
				name = inFile
				shown, err = setup.ShowServer(data, inFile)
				return nil, err
			})(data)
		}
	}
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	httpd.WriteJSON(w, http.StatusOK, map[string]any{
		"name": name, "entry": shown.Entry, "secret": orEmpty(shown.Secret), "executes": orEmpty(shown.Executes),
		"digest": shown.Digest,
	})
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// replace writes an entry that the viewer has edited into the config, unless the entry in the file has changed since the viewer
// read it.
func (p *pageWork) replace(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Entry  json.RawMessage
		Digest string
	}
	if !body(w, r, &in) {
		return
	}
	_, entry, err := setup.ReadEntry(in.Entry)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	name, served := r.PathValue("name"), ""
	edit := func(data []byte, name string) ([]byte, error) {
		if shown, err := setup.ShowServer(data, name); err != nil || shown.Digest != in.Digest {
			return nil, errors.Join(err, errChanged)
		}
		return setup.ReplaceServer(data, name, entry)
	}
	if p.api.change(w, r, change{action: "change", name: name, edit: edit, check: usable(name, &served)}) {
		p.show(w, http.StatusOK, served)
	}
}

func (p *pageWork) remove(w http.ResponseWriter, r *http.Request) {
	if p.api.change(w, r, change{action: "remove", name: r.PathValue("name"), edit: setup.RemoveServer}) {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (p *pageWork) enable(on bool) http.HandlerFunc {
	word := map[bool]string{true: "enable", false: "disable"}[on]
	return func(w http.ResponseWriter, r *http.Request) {
		set := func(data []byte, name string) ([]byte, error) { return setup.SetEnabled(data, name, on) }
		name := r.PathValue("name")
		if p.api.change(w, r, change{action: word, name: name, edit: set}) {
			p.show(w, http.StatusOK, p.app.current.Load().config.Served(name))
		}
	}
}

// act returns the handler for a button of the page. word is the name of the button, such as start or stop. run does what the button says
// with a server, and returns false if that is not possible.
func (p *pageWork) act(word string, run func(name string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		of := configured(p.app.current.Load().config, name)
		if of == nil {
			page.Refuse(w, http.StatusNotFound, "unknown_server", "the config has no such server")
			return
		}
		if !p.recorded(w, r, word, name) {
			return
		}
		if of.Fault != "" || !of.Enabled || !run(name) {
			page.Refuse(w, http.StatusConflict, "not_here",
				"this cannot be done to the server now: it is disabled, has a fault, or does not run")
			return
		}
		p.app.Registry.Refresh()
		p.show(w, http.StatusOK, name)
	}
}

// recorded records in the log and the audit trail what a viewer is about to do. It returns false if the audit trail is required
// but cannot be written; then it has answered the request with an error.
func (p *pageWork) recorded(w http.ResponseWriter, r *http.Request, action, name string) bool {
	who := caller.From(r.Context())
	if err := p.app.auditor.changing(who, change{action: action, name: name}, ""); err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return false
	}
	p.app.log.Info("asked by the page", "what", action, "server", sanitize.Line(name, 80), "principal", who.String())
	return true
}

func (p *pageWork) start(name string) bool {
	return p.each(func(a *App) bool {
		status, ok := a.Registry.Status(name)
		if ok && status.State == catalog.Unavailable {
			a.Registry.Retry(name)
		} else if a == p.app {
			a.Registry.Ask(name)
		}
		return ok
	})
}

func (p *pageWork) stop(name string) bool {
	if p.app.origin.Pool != nil {
		p.app.origin.Pool.Renew(name)
	}
	return p.each(func(a *App) bool { return a.Stop(name) })
}

func (p *pageWork) restart(name string) bool {
	if p.app.origin.Pool != nil {
		p.app.origin.Pool.Renew(name)
	}
	done := p.each(func(a *App) bool { return a.Restart(name) })
	p.app.Registry.Ask(name)
	return done
}

const (
	// maxLines is the largest number of log lines in a response; maxLineLength is the largest number of characters in a line.
	maxLines, maxLineLength = 500, 4000
)

type logLine struct {
	N    int64  `json:"n"`
	Text string `json:"text"`
}

// log responds with the lines after a position in the log, but at most with the newest maxLines of them. The position counts
// bytes from the beginning. If the request names a server, the response has only lines about this server.
func (p *pageWork) log(w http.ResponseWriter, r *http.Request) {
	server := r.URL.Query().Get("server")
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		after = 0
	}
	lines, next := []logLine{}, after
	if p.app.lines != nil {
		var text []byte
		text, next, _ = p.app.lines.From(after)
		at := next - int64(len(text))
		for line := range strings.Lines(string(text)) {
			n := at
			at += int64(len(line))
			if server == "" || About([]byte(line), server) {
				lines = append(lines, logLine{n, sanitize.Line(p.app.strike(strings.TrimRight(line, "\n")), maxLineLength)})
			}
		}
	}
	lines = lines[max(0, len(lines)-maxLines):]
	httpd.WriteJSON(w, http.StatusOK, map[string]any{"lines": lines, "next": next, "kept": p.app.lines != nil})
}

// SavedBy returns how many tokens mcpx with this config file has saved in as many days as the parameter days says, up to today.
// grouping says how the report groups the tokens: by server, tool, client or day.
func SavedBy(file string, days int, grouping string) (*savings.Report, error) {
	now := time.Now()
	r := &savings.Report{Encoding: "o200k_base", Since: now.AddDate(0, 0, 1-days).Format(time.DateOnly), Days: days, By: grouping}
	// Days after tomorrow are not read: they were written while the clock was wrong. Tomorrow is read, because in the time zone of
	// another process it may be tomorrow already.
	list, err := savings.Load(savingsDir(file), r.Since, now.AddDate(0, 0, 1).Format(time.DateOnly))
	if err != nil {
		return nil, err
	}
	r.Total, r.Rows = savings.Sum(list, grouping)
	return r, nil
}

// stats responds with the same JSON that mcpx stats --json prints.
func (p *pageWork) stats(w http.ResponseWriter, r *http.Request) {
	days, err := strconv.Atoi(r.URL.Query().Get("days"))
	by := r.URL.Query().Get("by")
	if err != nil || days < 1 || days > savings.KeptDays || !slices.Contains([]string{"server", "tool", "client", "day"}, by) {
		page.Refuse(w, http.StatusBadRequest, "bad_request", "days must be from 1 to 400, and by server, tool, client or day")
		return
	}
	report, err := SavedBy(p.app.Config.Path, days, by)
	if err != nil {
		p.app.log.Warn("reading the savings", "err", err)
		page.Refuse(w, http.StatusInternalServerError, "failed", "the savings cannot be read; the log says why")
		return
	}
	httpd.WriteJSON(w, http.StatusOK, report)
}

// detached returns a context for work that goes on after the request. The context ends with the App or after the duration
// limit; after the limit, reason is its cause.
func (p *pageWork) detached(limit time.Duration, reason error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(p.ctx, limit, reason)
}
