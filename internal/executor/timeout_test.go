package executor

import (
	"testing"
	"time"
)

// The first glob that matches counts, then the server's time.
func TestToolTimeout(t *testing.T) {
	o := ServerOptions{CallTimeout: time.Minute, ToolTimeouts: []ToolTimeout{{"export_all", time.Hour}, {"export_*", 10 * time.Minute}, {"*/b", time.Second}}}
	for tool, want := range map[string]time.Duration{
		"export_all": time.Hour, "export_one": 10 * time.Minute, "read": time.Minute, "a/b": time.Second,
	} {
		if got := o.timeout(tool); got != want {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
	if got := (ServerOptions{}).timeout("x"); got != 0 {
		t.Errorf("without any: %v", got)
	}
}
