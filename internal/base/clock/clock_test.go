package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// pause waits while fake time passes.
func pause(d time.Duration) { <-time.After(d) }

// TestClock: a clock that is held or was not started does not run. After a restart it has its full time again.
func TestClock(t *testing.T) {
	for _, tt := range []struct {
		name string
		use  func(c *Clock)
		want time.Duration // when the clock calls its func; 0 means never
	}{
		{"started", func(c *Clock) { c.Start() }, time.Second},
		{"started twice", func(c *Clock) { c.Start(); pause(600 * time.Millisecond); c.Start() }, time.Second},
		{"started late", func(c *Clock) { pause(time.Minute); c.Start() }, 61 * time.Second},
		{"not started", func(c *Clock) { c.Hold()(); c.Restart() }, 0},
		{"ended", func(c *Clock) { c.Start(); release := c.Hold(); c.End(); release(); c.Restart() }, 0},
		{"ended before it was started", func(c *Clock) { c.End(); c.Start() }, 0},
		{"held", func(c *Clock) {
			c.Start()
			pause(600 * time.Millisecond)
			first, second := c.Hold(), c.Hold()
			pause(time.Minute)
			first()
			first()
			pause(time.Minute)
			second()
		}, 121 * time.Second},
		{"held before it was started", func(c *Clock) { release := c.Hold(); c.Start(); pause(time.Minute); release() }, 61 * time.Second},
		{"never released", func(c *Clock) { c.Start(); c.Hold() }, 0},
		{"restarted", func(c *Clock) { c.Start(); pause(600 * time.Millisecond); c.Restart() }, 1600 * time.Millisecond},
		{"restarted while it is held", func(c *Clock) {
			c.Start()
			pause(600 * time.Millisecond)
			release := c.Hold()
			c.Restart()
			pause(time.Minute)
			release()
		}, 61*time.Second + 600*time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, calls, at := time.Now(), 0, time.Duration(0)
				var c Clock
				c.Set(time.Second, func() { calls++; at = time.Since(began) })
				tt.use(&c)
				pause(time.Hour)
				synctest.Wait()
				c.Hold()()
				c.Restart()
				pause(time.Hour)
				c.End()
				synctest.Wait()
				if want := min(tt.want, 1); calls != int(want) || at != tt.want {
					t.Errorf("%d calls, the last after %v; want one after %v", calls, at, tt.want)
				}
			})
		})
	}
}
