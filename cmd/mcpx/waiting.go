package main

import (
	"context"
	"slices"

	"mcpx/internal/app"
)

// tryAll waits until every server has been tried, or until ctx ends, and shows progress
// on stderr.
func tryAll(ctx context.Context, a *app.App, s streams) { showing(ctx, a, s, a.Registry.WaitTried) }

// installed waits until no command is installing its program, or until ctx ends, and
// shows progress on stderr: a broken-off install can leave a broken cache behind.
func installed(ctx context.Context, a *app.App, s streams) {
	if slices.ContainsFunc(attempts(a), func(one attempt) bool { return one.installing }) {
		showing(ctx, a, s, a.Registry.WaitInstalled)
	}
}

func showing(ctx context.Context, a *app.App, s streams, wait func(context.Context)) {
	done := make(chan struct{})
	go func() { // ends with wait; show waits for it
		defer close(done)
		wait(ctx)
	}()
	show := &progress{w: s.err, s: s.watched, look: func() []attempt { return attempts(a) }}
	show.show(done)
}
