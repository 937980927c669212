package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"mcpx/internal/caller"
	"mcpx/internal/desk/setup"
)

// edit is a change of the config file that came over HTTP.
type edit struct {
	change func(setup.ConfigFile) error
	done   chan error // has room for the outcome
}

// errNoFile is the error of an edit where mcpx has no config file.
var errNoFile = errors.New("this mcpx has no config file, so that its servers cannot be changed")

// edit changes the config file and applies it. The goroutine of Follow does both, so that
// edits come one after the other, and between two looks at the file.
func (a *App) edit(ctx context.Context, change func(setup.ConfigFile) error) error {
	if a.edits == nil {
		return errNoFile
	}
	e := edit{change, make(chan error, 1)}
	select {
	case a.edits <- e:
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-e.done // the file may be written: the outcome counts, not the caller's patience
}

func (r *reloader) edit(ctx context.Context, e edit) error {
	if err := e.change(r.file); err != nil {
		return err
	}
	if err := r.reload(ctx, true); err != nil {
		return fmt.Errorf("the config was written, but cannot be used: %w", err)
	}
	return nil
}

// changing records which principal asks for a change of the servers, before it is made. The
// outcome is in the next config_loaded or request_refused.
func (a *auditor) changing(who *caller.Principal, what, server string) error {
	if a == nil {
		return nil
	}
	err := a.trail.Write("servers_change", slog.String("principal", who.Key()), slog.String("what", what), slog.String("server", server))
	if err != nil && a.required {
		return errors.New("nothing was changed: the audit trail cannot be written")
	}
	return nil
}
