// Package delay has functions that wait for a time, for channels, and between attempts, but only until a context ends.
package delay

import (
	"context"
	"time"
)

// Sleep waits for d. It returns false if ctx ends before that.
func Sleep(ctx context.Context, d time.Duration) bool {
	Until(ctx, d, nil, nil)
	return ctx.Err() == nil
}

// Until waits for d. It returns earlier if ctx ends or one of the channels, which may be nil, is closed.
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

// Retry calls try until try returns again = false, or ctx ends. The pauses between the calls grow from a second to a
// minute. After a call that took more than a minute, they begin with a second again. A pause lasts at least as long as
// the wait that try returned.
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
