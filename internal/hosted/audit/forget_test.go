package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForget: after Forget, the name of the principal is nowhere in the trail, the principal's records are still counted, and the
// trail can be verified and continued. Forget refuses a trail that a process has open, or that somebody has changed.
func TestForget(t *testing.T) {
	const ann = "ann@x.test@login.test"
	folder := t.TempDir()
	path, anchor := filepath.Join(folder, "audit.jsonl"), filepath.Join(folder, "anchor", "a.json")
	for _, keys := range [][][]byte{{[]byte("a newer key of the tests"), []byte("a key of the tests")}, nil} {
		if os.RemoveAll(folder) != nil {
			t.Fatal("removing")
		}
		open := func() *Trail {
			t.Helper()
			trail, err := Open(path, Options{Anchor: anchor, Keys: keys, MaxBytes: 1500})
			if err != nil {
				t.Fatal(err)
			}
			return trail
		}
		trail := open()
		for range 10 {
			for _, who := range []string{"bob@x.test@login.test", ann} {
				_ = trail.Write(CallEnded, Present(nil, [][2]string{{"principal", who}, {"display", "Ms " + who}, {"server", "s"}, {"tool", "a"}, {"outcome", "RESULT"}})...)
			}
		}
		_ = trail.Write("config_loaded", Present(nil, [][2]string{{"by", "principal " + ann}, {"changes", `allow: ["ann@x.test", "joann@x.test", "Ann@X.test", "ann@x.test.example"] -> []`}})...)
		if _, _, err := Forget(path, keys, anchor, ann); !errors.As(err, new(*InUseError)) {
			t.Errorf("an open trail: %v", err)
		}
		if err := trail.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := Verify(path, keys, anchor)
		if err != nil || len(before.Faults) > 0 || len(before.Files) < 3 {
			t.Fatalf("%+v, %v", before, err)
		}
		pseudonym, lines, err := Forget(path, keys, anchor, ann)
		if err != nil || lines != 11 {
			t.Fatalf("%d lines, %v", lines, err)
		}
		open().Close()
		after, err := Verify(path, keys, anchor)
		if err != nil || len(after.Faults) > 0 || after.Last != before.Last+3 || !after.Anchored {
			t.Errorf("%+v, %v", after, err)
		}
		text := ""
		for _, file := range after.Files {
			data, _ := os.ReadFile(file)
			text += string(data)
		}
		if others := strings.Count(text, `"joann@x.test\"`) + strings.Count(text, `"ann@x.test.example\"`); others != 2 {
			t.Errorf("names that have the name as a part: %s", text)
		}
		text = strings.NewReplacer("joann@x.test", "", "ann@x.test.example", "").Replace(text)
		if strings.Contains(strings.ToLower(text), "ann@x") || strings.Count(text, pseudonym) != 14 || !strings.Contains(text, `"was_mac":"`+before.MAC) {
			t.Errorf("the trail has\n%s", text)
		}
		used, err := Use(path, keys, anchor, Question{By: "user", User: pseudonym})
		if err != nil || len(used.Usage) != 1 || used.Usage[0].Calls != 10 || used.Usage[0].Display != "" {
			t.Errorf("%+v, %v", used, err)
		}
		if _, lines, err := Forget(path, keys, anchor, "nobody@x"); lines != 0 || err != nil {
			t.Errorf("nobody: %d, %v", lines, err)
		}
		// Forget was interrupted after the new files were whole, and before they replaced the old ones.
		data, _ := os.ReadFile(path)
		if os.WriteFile(path+rewritten, data, 0o600) != nil || os.WriteFile(path+complete, nil, 0o600) != nil {
			t.Fatal("writing")
		}
		if _, err := Open(path, Options{Anchor: anchor, Keys: keys}); !errors.Is(err, errForgetting) {
			t.Errorf("opening a trail between two states: %v", err)
		}
		_, verified := Verify(path, keys, anchor)
		_, added := Use(path, keys, anchor, Question{By: "user"})
		for _, err := range []error{verified, added, Accept(path, keys, anchor)} {
			if !errors.Is(err, errForgetting) {
				t.Errorf("reading a trail between two states: %v", err)
			}
		}
		if _, _, err := Forget(path, keys, anchor, "nobody@x"); err != nil {
			t.Error(err)
		}
		// Forget was interrupted before a new file was whole.
		part, err := os.Create(path + rewritten)
		if err != nil {
			t.Fatal(err)
		}
		part.Close()
		if _, _, err := Forget(path, keys, anchor, "nobody@x"); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*forgetting*")); left != nil {
			t.Errorf("left behind: %s", left)
		}
		open().Close()
		if keys == nil {
			return
		}
		if os.WriteFile(path, []byte(strings.Replace(string(data), "bob", "bab", 1)), 0o600) != nil {
			t.Fatal("writing")
		}
		if _, _, err := Forget(path, keys, anchor, "bob@x.test@login.test"); err == nil || !strings.Contains(err.Error(), "not as it was written") {
			t.Errorf("a changed trail: %v", err)
		}
	}
}
