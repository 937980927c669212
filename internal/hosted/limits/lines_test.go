package limits

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestFewLinesInASecondAndNoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines
		written := 0
		for range 1000 {
			if _, ok := l.Take(); ok {
				written++
			}
		}
		if written != maxLines || l.Left() != 1000-maxLines {
			t.Errorf("%d lines, %d left out", written, l.Left())
		}
		time.Sleep(time.Second)
		if left, ok := l.Take(); !ok || left != 1000-maxLines || l.Left() != 0 {
			t.Errorf("in the next second: %d left out before, %v", left, ok)
		}
	})
}
