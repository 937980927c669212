package dial

import (
	"testing"
	"time"
)

// TestMeter: the bounds of a principal hold for a minute, and are independent of other principals.
func TestMeter(t *testing.T) {
	flood, calm, now := newMeter(Bounds{Bytes: 100, Changes: 2}), newMeter(Bounds{Bytes: 100, Changes: 2}), time.Now()
	for _, step := range []struct {
		bytes, changes int
		after          time.Duration
		ends           bool
	}{{100, 0, 0, false}, {1, 0, time.Second, true}, {1, 2, time.Minute, false}, {1, 1, time.Minute + time.Second, true}} {
		if why := flood.add(step.bytes, step.changes, now.Add(step.after)); (why != "") != step.ends {
			t.Errorf("%+v: %q", step, why)
		}
	}
	if why := calm.add(100, 2, now.Add(time.Minute)); why != "" {
		t.Error(why)
	}
}
