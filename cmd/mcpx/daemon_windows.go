package main

import (
	"context"
	"errors"

	"mcpx/internal/desk/attach"
)

// On Windows each session runs without a daemon, because a process cannot hand over its file descriptors to another one there.

func (cmd *serveCommand) place(*cli, streams) (attach.Place, error) { return "", nil }

func (cmd *serveCommand) attach(context.Context, *cli, streams, attach.Place) (served bool, err error) {
	return false, errors.ErrUnsupported
}

func (c *cli) warm(context.Context, streams, daemonCommand) (ran bool, err error) {
	return false, nil
}

func (c *cli) ask(context.Context, streams, string, any) error {
	return errors.New("on Windows there is no daemon: each session serves by itself")
}

func (c *cli) gone(context.Context) error { return nil }

func daemonMain() {}
