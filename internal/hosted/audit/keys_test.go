package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeys: after a new key was put before the old one, the trail continues, and both keys together can check all of it. Without
// the old key, Verify reports the lines that were written with it. A line of the old key after a line of the new key is a fault,
// so nobody can forge lines with only the old key.
func TestKeys(t *testing.T) {
	older, newer := []byte("the older key of the trail"), []byte("the newer key of the trail")
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	anchor := anchorOf(t, path)
	end(t, open(t, path, Options{Keys: [][]byte{older}, Anchor: anchor}))
	for range 2 { // the second run finds only lines and an anchor of the newer key at the end
		end(t, open(t, path, Options{Keys: [][]byte{newer, older}, Anchor: anchor}))
	}
	for _, test := range []struct {
		keys [][]byte
		want string // a fault; empty if there is none
	}{
		{[][]byte{newer, older}, ""},
		{[][]byte{newer}, "written with another key"},
		{[][]byte{older}, "written with another key"},
		{[][]byte{older, newer}, "written with an older key"},
	} {
		r, err := Verify(path, test.keys, anchor)
		if err != nil || (len(r.Faults) > 0) != (test.want != "") || test.want != "" && !contains(r.Faults, test.want) {
			t.Errorf("%s: %v %+v", bytes.Join(test.keys, []byte(", ")), err, r)
		}
	}
	if _, err := Open(path, Options{Keys: [][]byte{older}}); err == nil || !strings.Contains(err.Error(), "does not fit audit.key") {
		t.Errorf("without the newer key: %v", err)
	}

	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := lastLine(path)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := readHead(last)
	chain := chainsOf([][]byte{older})[0]
	forged, _ := seal(appendRecord(nil, h.Seq+1, h.Run, "call_ended", nil), chain, h.MAC)
	if err := os.WriteFile(path, append(append(lines, forged...), "}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(path, [][]byte{newer, older}, anchor); err != nil || !contains(r.Faults, "written with an older key") {
		t.Errorf("forged with the older key: %v %+v", err, r)
	}
}

func contains(faults []Fault, text string) bool {
	for _, f := range faults {
		if strings.Contains(f.Text, text) {
			return true
		}
	}
	return false
}
