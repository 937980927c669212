package delay_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/delay"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !delay.Sleep(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("slept for %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if began = time.Now(); delay.Sleep(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("slept for %v in a context of a minute", time.Since(began))
		}
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		close(closed)
		began := time.Now()
		delay.Until(t.Context(), time.Hour, closed, nil)
		delay.Until(t.Context(), time.Hour, nil, closed)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited for %v", took)
		}
	})
}

// TestRetry: the pauses grow, begin anew after an attempt that took long, and are longer if an attempt asks for it.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began []time.Duration
		start := time.Now()
		delay.Retry(t.Context(), func() (wait time.Duration, again bool) {
			began = append(began, time.Since(start)/time.Second)
			switch len(began) {
			case 3:
				time.Sleep(2 * time.Minute)
			case 4:
				wait = 10 * time.Second
			}
			return wait, len(began) < 5
		})
		if want := []time.Duration{0, 1, 3, 124, 134}; !slices.Equal(began, want) {
			t.Errorf("attempts after %d s, want %d", began, want)
		}
	})
}
