package main

import (
	"context"
	"errors"

	"mcpx/internal/desk/daemon"
)

// On Windows each session serves by itself: descriptors cannot be handed over there.

func (cmd *serveCommand) place(*cli, streams) (daemon.Place, error) { return "", nil }

func (cmd *serveCommand) attach(context.Context, *cli, streams, daemon.Place) (served bool, err error) {
	return false, errors.ErrUnsupported
}

func daemonMain() {}
