package app

import (
	"context"
	"runtime/debug"
	"time"

	"mcpx/internal/proc"
)

// settleAfter is for what follows the last server: the texts, the cache files.
const settleAfter = time.Second

// settle gives back, once every server has been tried, the memory that only the
// start needed.
func (a *App) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a.Registry.WaitTried(ctx)
	timer := time.NewTimer(settleAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	debug.FreeOSMemory()
	proc.DropFilePages()
}
