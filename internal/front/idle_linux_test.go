package front

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestIdleAfterDisconnect: after clients have disconnected during streams and calls, mcpx uses no more
// processor time.
func TestIdleAfterDisconnect(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	clients := crowd(t, web, 10)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	for _, c := range clients {
		if c.era == legacyEra {
			stream, err := c.send(ctx, "GET", "", "")
			if err != nil {
				t.Fatal(err)
			}
			go func() { // the goroutine ends with leave
				defer stream.Body.Close()
				_, _ = io.Copy(io.Discard, stream.Body)
			}()
		}
		go func() { _, _ = c.exec(ctx, "1", "progress", `{"steps":1000000,"ms":1}`, `"mine"`) }() // the goroutine ends with leave
	}
	mcptest.WaitFor(t, "the calls", patience, func() bool { return len(fake.Log().Calls("progress")) == len(clients) })
	leave()
	mcptest.WaitFor(t, "the cancellations", patience, func() bool { return fake.Count("notifications/cancelled") == len(clients) })
	// Some work remains for a while after the cancellations, so the test waits for the first moment without work.
	const moment = 200 * time.Millisecond
	mcptest.WaitFor(t, "a moment without work", patience, func() bool {
		before := worked(t)
		<-time.After(moment)
		return worked(t)-before < moment/4
	})
}

// worked returns the processor time that this process has used.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
