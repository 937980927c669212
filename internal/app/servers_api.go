package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/httpd"
)

// serversAPI serves /api/servers. With it, programs can list the servers and change the config file, in the same ways as the
// commands mcpx add, remove, enable and disable. Changes take effect immediately. Whoever may add a server can run any program as
// the user of mcpx.
type serversAPI struct {
	app *App
	mux *http.ServeMux
}

// maxEntry is the maximum length of a request's body, in bytes.
const maxEntry = 1 << 20

func (a *App) serversAPI() http.Handler {
	h := &serversAPI{a, http.NewServeMux()}
	h.mux.HandleFunc("GET /api/servers", func(w http.ResponseWriter, _ *http.Request) {
		httpd.WriteJSON(w, http.StatusOK, map[string]any{"servers": a.serverStatuses()})
	})
	h.mux.HandleFunc("GET /api/servers/{name}", func(w http.ResponseWriter, r *http.Request) {
		h.show(w, http.StatusOK, r.PathValue("name"))
	})
	h.mux.HandleFunc("POST /api/servers", h.entered("add", func(data []byte, name string, entry json.RawMessage) ([]byte, error) {
		return setup.AddServer(data, name, entry)
	}))
	h.mux.HandleFunc("PUT /api/servers/{name}", h.entered("change", setup.SetServer))
	h.mux.HandleFunc("PATCH /api/servers/{name}", h.entered("change", setup.MergeServer))
	h.mux.HandleFunc("DELETE /api/servers/{name}", func(w http.ResponseWriter, r *http.Request) {
		if h.change(w, r, change{action: "remove", name: r.PathValue("name"), edit: setup.RemoveServer}) {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	for word, on := range map[string]bool{"enable": true, "disable": false} {
		h.mux.HandleFunc("POST /api/servers/{name}/"+word, func(w http.ResponseWriter, r *http.Request) {
			set := func(data []byte, name string) ([]byte, error) { return setup.SetEnabled(data, name, on) }
			if h.change(w, r, change{action: word, name: r.PathValue("name"), edit: set}) {
				h.show(w, http.StatusOK, r.PathValue("name"))
			}
		})
	}
	return h
}

// ServeHTTP implements http.Handler. Package httpd calls it only for admins.
func (h *serversAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case reads:
		h.mux.ServeHTTP(w, r)
	case http.NewCrossOriginProtection().Check(r) != nil:
		refuse(w, http.StatusForbidden, errors.New("pages of other origins must not use this"))
	case h.app.edits == nil:
		refuse(w, http.StatusConflict, errNoFile)
	case !h.app.Config.ChangesServers():
		refuse(w, http.StatusForbidden, errReadOnly)
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// entered returns a handler that adds or changes a server. The request's body is the server's entry for the config. The name of
// the server is in the path or, for a new server, in the body. action is "add" or "change", for the log.
func (h *serversAPI) entered(action string, edit func(data []byte, name string, entry json.RawMessage) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		written, entry, ok := h.entry(w, r)
		adds := name == ""
		switch {
		case !ok:
			return
		case adds && written == "":
			refuse(w, http.StatusBadRequest, errors.New(`the server has no "name"`))
			return
		case !adds && written != "" && written != name:
			refuse(w, http.StatusBadRequest, errors.New("a server cannot be renamed: add it under the other name"))
			return
		}
		name = cmp.Or(name, written)
		set := func(data []byte, name string) ([]byte, error) { return edit(data, name, entry) }
		var served string
		if !h.change(w, r, change{action: action, name: name, edit: set, check: usable(name, &served)}) {
			return
		}
		status := http.StatusOK
		if adds {
			status = http.StatusCreated
			w.Header().Set("Location", "/api/servers/"+served)
		}
		h.show(w, status, served)
	}
}

// usable returns a check that refuses a config in which the server called name has a fault. The check also stores the name under which
// mcpx serves this server in *served.
func usable(name string, served *string) func(*config.Config) error {
	return func(cfg *config.Config) error {
		*served = cfg.Served(name)
		for _, s := range cfg.Servers {
			if s.Name == *served && s.Fault != "" {
				return &serverFault{s.Fault}
			}
		}
		return nil
	}
}

// change is a change of the config that a request asks for.
type change struct {
	action, name string // for the log and the audit trail
	edit         func(data []byte, name string) ([]byte, error)
	check        func(*config.Config) error // may refuse the changed config; nil means no check
	// keep is called after check. It stores what the changed config refers to, such as secrets. nil stores nothing.
	keep func() (undo func(), err error)
}

// serverFault says what is wrong in the config entry of a server, and where.
type serverFault struct{ text string }

func (e *serverFault) Error() string { return e.text }

// change edits the config and reports whether that was successful. If not, it has answered the request with an error.
func (h *serversAPI) change(w http.ResponseWriter, r *http.Request, c change) bool {
	who := caller.From(r.Context())
	return h.apply(w, r, c, func(f setup.ConfigFile) error {
		var before, after []byte
		edit, undo := f.Named(c.name, c.edit), func() {}
		err := f.Edit(func(data []byte) (edited []byte, err error) {
			edited, err = edit(data)
			before, after = data, edited
			return edited, err
		}, func(cfg *config.Config) (err error) {
			if c.check != nil {
				err = c.check(cfg)
			}
			if err == nil && c.keep != nil {
				undo, err = c.keep()
			}
			if err != nil {
				return err // refused before the audit trail records the change
			}
			return h.app.auditor.changing(who, c, difference(configChange{"", h.app.current.Load().config, cfg, before, after}))
		})
		if err != nil {
			undo() // no config refers to what was kept
		}
		return err
	})
}

// apply makes the change c by calling write, which must record the change in the audit trail before it writes a file. If write fails, apply
// answers the request with an error and returns false.
func (h *serversAPI) apply(w http.ResponseWriter, r *http.Request, c change, write func(setup.ConfigFile) error) bool {
	who := caller.From(r.Context())
	if err := h.app.edit(r.Context(), write); err != nil {
		h.app.log.Warn("servers not changed over HTTP", "what", c.action, "server", sanitize.Line(c.name, 80),
			"principal", who.String(), "err", err)
		refuse(w, statusOf(err), err)
		return false
	}
	h.app.Registry.Refresh()
	h.app.log.Info("servers changed over HTTP", "what", c.action, "server", c.name, "principal", who.String())
	return true
}

func statusOf(err error) int {
	_, broken := errors.AsType[*config.SyntaxError](err)
	_, faults := errors.AsType[*config.Faults](err)
	_, fault := errors.AsType[*serverFault](err)
	switch {
	case errors.Is(err, errNotRecordedChange):
		return http.StatusServiceUnavailable
	case errors.Is(err, setup.ErrNoServer):
		return http.StatusNotFound
	case errors.Is(err, setup.ErrThere), errors.Is(err, errChanged):
		return http.StatusConflict
	case faults, fault, broken, errors.Is(err, setup.ErrStruckOut):
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

var errChanged = errors.New("it has changed meanwhile; load it again")

// codeOf returns the error code that tells programs what has failed.
func codeOf(status int, err error) string {
	switch {
	case errors.Is(err, setup.ErrNoServer):
		return "unknown_server"
	case errors.Is(err, setup.ErrThere):
		return "taken"
	case errors.Is(err, errChanged):
		return "changed"
	case errors.Is(err, setup.ErrStruckOut):
		return "struck_out"
	case errors.Is(err, errNoFile):
		return "no_file"
	}
	code, known := map[int]string{
		http.StatusForbidden: "read_only", http.StatusServiceUnavailable: "audit", http.StatusBadRequest: "bad_request",
		http.StatusRequestEntityTooLarge: "too_large", http.StatusUnprocessableEntity: "fault",
	}[status]
	if !known {
		return "failed"
	}
	return code
}

// entry reads a server's entry from the body, and its name if the body has one. If ok is false, entry has answered the request with
// an error.
func (h *serversAPI) entry(w http.ResponseWriter, r *http.Request) (name string, entry json.RawMessage, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEntry))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, errors.New("the body is too large or incomplete"))
		return "", nil, false
	}
	if name, entry, err = setup.ReadEntry(body); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return "", nil, false
	}
	return name, entry, true
}

// show answers a request with the status of the server called name.
func (h *serversAPI) show(w http.ResponseWriter, status int, name string) {
	for _, s := range h.app.serverStatuses() {
		if s.Name == name {
			httpd.WriteJSON(w, status, s)
			return
		}
	}
	refuse(w, http.StatusNotFound, setup.ErrNoServer)
}

func refuse(w http.ResponseWriter, status int, err error) {
	out := map[string]any{"error": err.Error(), "code": codeOf(status, err)}
	if faults, ok := errors.AsType[*config.Faults](err); ok {
		var list []string
		for _, fault := range faults.List {
			list = append(list, fault.String())
		}
		out["faults"] = list
	}
	httpd.WriteJSON(w, status, out)
}

// edit is a change of the config file or of its lock file that was requested over HTTP.
type edit struct {
	by     string // the principal who asks, for the audit trail
	change func(setup.ConfigFile) error
	done   chan error // receives the outcome; has a buffer of one
}

var errNoFile = errors.New("this mcpx has no config file, so its servers cannot be changed")

// edit calls the function change, which writes the config file or its lock file, and applies the config file. The goroutine of
// Follow does both, so an edit never overlaps with another edit or with a reload.
func (a *App) edit(ctx context.Context, change func(setup.ConfigFile) error) error {
	if a.edits == nil {
		return errNoFile
	}
	e := edit{"principal " + caller.From(ctx).String(), change, make(chan error, 1)}
	select {
	case a.edits <- e:
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-e.done // waits even if ctx ends now, because the file may already be written
}

func (r *reloader) edit(ctx context.Context, e edit) error {
	if err := e.change(r.file); err != nil {
		return err
	}
	if err := r.reload(ctx, e.by, true); err != nil {
		return fmt.Errorf("the config was written, but cannot be used: %w", err)
	}
	return nil
}

// errNotRecordedChange is the error for a change that is refused because it cannot be recorded (audit.required).
var errNotRecordedChange = errors.New("the audit trail cannot be written")

// changing records what somebody is about to do with a server, such as adding or stopping it. If that fails, it returns an
// error only if audit.required is set.
func (a *auditor) changing(who *caller.Principal, c change, changes string) error {
	if a.trail == nil {
		return nil
	}
	err := a.trail.Write("servers_change", slog.String("principal", who.String()), slog.String("what", c.action),
		slog.String("server", c.name), slog.Any("changes", audit.Long(changes)))
	if err != nil && a.required {
		return errNotRecordedChange
	}
	return nil
}
