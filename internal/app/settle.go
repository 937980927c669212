package app

import (
	"context"
	"runtime/debug"
	"time"

	"mcpx/internal/proc"
)

// settleAfter is the time for the work that follows the last server: the texts, the
// cache files.
const settleAfter = time.Second

// settle gives back, once every server has been tried, the memory that only the
// start needed. mcpx and its reaper over 10 servers with 500 tools: 17 MB resident,
// 32 if mcpx kept the pages of its file, 43 if the reaper kept them too, 49 without
// the collection.
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
