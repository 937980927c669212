package mcptest

import (
	"context"
	"io"
	"time"
)

// install imitates an installer that runs before the server. It ends early if ctx ends.
func (s Spec) install(ctx context.Context, out io.Writer) {
	if s.InstallFor == 0 {
		return
	}
	began := time.Now()
	for left := s.InstallFor; s.InstallFor < 0 || left > 0; left = s.InstallFor - time.Since(began) {
		speaks := s.InstallEvery > 0 && (s.InstallStalls == 0 || time.Since(began) < s.InstallStalls)
		pause := left
		switch {
		case speaks && (left < 0 || s.InstallEvery < left):
			pause = s.InstallEvery
		case left < 0:
			pause = time.Hour
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if speaks {
			_, _ = io.WriteString(out, "installing\n")
		}
	}
}
