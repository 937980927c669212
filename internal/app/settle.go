package app

import (
	"context"
	"runtime/debug"
	"time"

	"mcpx/internal/base/proc"
)

// settleAfter is the time for the work after the last server: texts and cache files.
const settleAfter = time.Second

// settle gives back the memory that only the start needed, after the first attempt of
// every server. mcpx and its reaper with 10 servers and 500 tools: 17 MB resident; 32 if
// mcpx kept the pages of its file, 43 if the reaper kept them too, 49 without the
// collection.
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
