// Package delay waits for a time, for channels, and between attempts, at most until a context ends.
package delay

import (
	"context"
	"time"
)

// Sleep waits for d. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	Until(ctx, d, nil, nil)
	return ctx.Err() == nil
}

// Until waits for d, but not longer than until one of the channels, which may be nil, is closed or ctx ends.
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

// Retry calls try until that returns again = false, or ctx ends. The pauses grow from a second to a minute, start
// anew after an attempt of over a minute, and last at least wait.
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
