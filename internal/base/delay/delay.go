// Package delay waits: for a time, for what comes first, and between attempts. Every wait ends with its context.
package delay

import (
	"context"
	"time"
)

// Sleep waits for d. It reports false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	Until(ctx, d, nil, nil)
	return ctx.Err() == nil
}

// Until waits until one of the channels is closed, which a nil one never is, but not beyond d or the end of ctx.
func Until(ctx context.Context, d time.Duration, one, other <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-one:
	case <-other:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Retry calls try again and again, until that says that another attempt is of no use, or ctx ends. The pauses between
// grow from a second to a minute, begin anew after an attempt that took over a minute, and are at least wait long.
func Retry(ctx context.Context, try func() (wait time.Duration, again bool)) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		began := time.Now()
		wait, again := try()
		if time.Since(began) > time.Minute {
			pause = time.Second
		}
		if !again || !Sleep(ctx, max(pause, wait)) {
			return
		}
	}
}
