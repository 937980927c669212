package main

import (
	"context"
	"slices"

	"mcpx/internal/app"
)

// tryAll returns when every server has been tried, or with ctx. Meanwhile it shows
// on stderr how that goes.
func tryAll(ctx context.Context, a *app.App, s streams) { showing(ctx, a, s, a.Registry.WaitTried) }

// installed returns when no command installs what it runs for the first time, or with
// ctx: to end one in the middle can leave a cache behind that is broken for good.
// Meanwhile it shows on stderr how that goes.
func installed(ctx context.Context, a *app.App, s streams) {
	if slices.ContainsFunc(attempts(a), func(one attempt) bool { return one.installing }) {
		showing(ctx, a, s, a.Registry.WaitInstalled)
	}
}

func showing(ctx context.Context, a *app.App, s streams, wait func(context.Context)) {
	done := make(chan struct{})
	go func() { // ends with wait, for which show waits
		defer close(done)
		wait(ctx)
	}()
	show := &progress{w: s.err, s: s.watched, look: func() []attempt { return attempts(a) }}
	show.show(done)
}
