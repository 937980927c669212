package audit

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUse: Use adds up the calls in all files of a trail, by user, tool, server or day. It reports a changed line as a fault.
func TestUse(t *testing.T) {
	folder := t.TempDir()
	path, anchor := filepath.Join(folder, "audit.jsonl"), filepath.Join(folder, "anchor", "a.json")
	keys := [][]byte{[]byte("a key of the tests")}
	trail, err := Open(path, Options{Anchor: anchor, Keys: keys, MaxBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	write := func(who, server, tool, outcome string, n int) {
		for range n {
			attrs := Present(nil, [][2]string{{"principal", who}, {"display", "Ms " + who}, {"server", server}, {"tool", tool}, {"outcome", outcome}})
			if err := trail.Write(CallEnded, append(attrs, slog.Int("tokens_sent", 3), slog.Int("bytes_sent", 10))...); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("ann@x", "s", "a", "RESULT", 20)
	write("ann@x", "s", "b", "TIMEOUT", 2)
	write("bob@x", "r", "a", "CANCELLED", 5)
	_ = trail.Write(CallEnded, slog.String("method", "resources/read"), slog.String("server", "s"))
	_ = trail.Write("config_loaded", slog.String("by", "principal ann@x"))
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	use := func(keys [][]byte, q Question) *Used {
		t.Helper()
		used, err := Use(path, keys, anchor, q)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	used := use(keys, Question{By: "user"})
	if len(used.Report.Files) < 2 || len(used.Report.Faults) > 0 || !used.Checked {
		t.Fatalf("%+v", used.Report)
	}
	if len(used.Usage) != 2 || used.Usage[0] != (Usage{Name: "ann@x", Display: "Ms ann@x", Calls: 22, Failures: 2, Tokens: 66, Bytes: 220}) || used.Usage[1].Calls != 5 || used.Usage[1].Failures != 0 {
		t.Errorf("%+v", used.Usage)
	}
	if used := use(keys, Question{By: "tool"}); len(used.Usage) != 3 || used.Usage[0].Name != "s.a" {
		t.Errorf("%+v", used.Usage)
	}
	if used := use(keys, Question{By: "server", User: "ann@x", Records: true}); len(used.Usage) != 1 || len(used.Records) != 23 {
		t.Errorf("%+v, %d records", used.Usage, len(used.Records))
	}
	if used := use(keys, Question{By: "day"}); len(used.Usage) != 1 || used.Usage[0].Calls != 27 {
		t.Errorf("%+v", used.Usage)
	}
	if used := use(nil, Question{By: "user"}); used.Checked || len(used.Usage) != 2 || len(used.Report.Faults) > 0 {
		t.Errorf("without the key: %+v", used.Report)
	}
	text, err := os.ReadFile(path + ".000001")
	if err != nil || os.WriteFile(path+".000001", []byte(strings.Replace(string(text), "ann@x", "bob@x", 1)), 0o600) != nil {
		t.Fatal(err)
	}
	if used := use(keys, Question{By: "user"}); len(used.Report.Faults) != 1 {
		t.Errorf("a changed line: %+v", used.Report.Faults)
	}
}
