package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSavedBy_Clock: savings that were written while the clock was a year ahead are not counted before that day. Savings of
// tomorrow are counted, because in the time zone of the process that wrote them it may be tomorrow already.
func TestSavedBy_Clock(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, home)
	}
	config := filepath.Join(home, "config.json")
	dir := savingsDir(config)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, day := range []time.Time{now, now.AddDate(0, 0, 1), now.AddDate(1, 0, 0)} {
		text := fmt.Appendf(nil, `{"servers":{"s%d":{"calls":1}}}`, i)
		if err := os.WriteFile(filepath.Join(dir, day.Format(time.DateOnly)+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if report, err := SavedBy(config, 30, "server"); err != nil || report.Total.Calls != 2 || len(report.Rows) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
