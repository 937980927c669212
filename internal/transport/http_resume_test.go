package transport

import (
	"testing"
	"time"
)

func TestResumePause(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		retry time.Duration
		idle  int
		want  time.Duration
	}{
		{-1, 0, firstResume}, {0, 0, minPause}, {300 * ms, 0, 300 * ms}, {300 * ms, 1, 600 * ms},
		{300 * ms, 1000, maxPause}, {time.Minute, 0, time.Minute}, {time.Minute, 3, time.Minute},
	}
	for _, tt := range tests {
		if got := resumePause(tt.retry, tt.idle); got != tt.want {
			t.Errorf("retry %v, %d idle: got %v, want %v", tt.retry, tt.idle, got, tt.want)
		}
	}
}
