//go:build unix

package main

import (
	"context"
	"errors"
	"sync"

	"mcpx/internal/app"
)

// daemonPage is the page of mcpx ui in a daemon. The daemon opens at most one page.
type daemonPage struct {
	mu      sync.Mutex
	open    *ui // nil while the page is closed
	serving sync.WaitGroup
}

// wait waits until the page is closed. The page closes when nobody uses it, and soon after the daemon's context has ended.
func (p *daemonPage) wait() { p.serving.Wait() }

// current returns the open page, or nil.
func (p *daemonPage) current() *ui {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// daemonUI runs mcpx ui inside the daemon.
type daemonUI struct {
	uiCommand
	daemon *daemon
}

// runHere opens the page, unless it is open, and prints a link to it. The page stays open after the command.
func (cmd *daemonUI) runHere(ctx context.Context, c *cli, s streams) error {
	link, err := cmd.daemon.openPage(ctx, c, s)
	if err != nil {
		return err
	}
	cmd.show(ctx, s, link)
	return nil
}

func (d *daemon) openPage(ctx context.Context, c *cli, s streams) (link string, err error) {
	p := &d.page
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		if link := p.open.links.New(); link != "" {
			return link, nil
		}
	}
	release := d.daemon.Hold()
	if release == nil {
		return "", errors.New("the daemon is about to end; run mcpx ui again")
	}
	s.origin.Sessions = d.apps
	open, err := newUI(ctx, c, s, d.lines)
	if err != nil {
		release()
		return "", err
	}
	d.mu.Lock()
	d.setIdle(open.app.Config.DaemonIdle)
	d.mu.Unlock()
	p.open = open
	p.serving.Go(func() { // ends with the daemon, or when nobody uses the page
		defer release()
		err := open.serve(d.ctx)
		p.mu.Lock()
		if p.open == open {
			p.open = nil
		}
		p.mu.Unlock()
		if err != nil && !errors.Is(err, app.ErrUnused) {
			d.log.Error("the page has ended", "err", err)
		}
	})
	return open.links.New(), nil
}
