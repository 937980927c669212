package proc

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// TestSame: a PATH that leads to the same programs, and what differs between two terminals, is the same; another program or
// another home is not.
func TestSame(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs links and modes")
	}
	dir := t.TempDir()
	for _, name := range []string{"a/node", "b/node"} {
		file := filepath.Join(dir, name)
		if os.MkdirAll(filepath.Dir(file), 0o700) != nil || os.WriteFile(file, nil, 0o700) != nil {
			t.Fatal("making programs")
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "a"), link); err != nil {
		t.Fatal(err)
	}
	base := Same("x", []string{"HOME=/h", "TERM=xterm", "TOKEN=1", "PATH=" + filepath.Join(dir, "a")})
	for _, test := range []struct {
		environ []string
		same    bool
	}{
		{[]string{"HOME=/h", "TERM=dumb", "TOKEN=2", "PATH=/nowhere:" + link}, true},
		{[]string{"HOME=/h", "PATH=" + filepath.Join(dir, "b")}, false},
		{[]string{"HOME=/other", "PATH=" + filepath.Join(dir, "a")}, false},
		{[]string{"HOME=/h", "HTTPS_PROXY=http://p", "PATH=" + filepath.Join(dir, "a")}, false},
	} {
		if got := Same("x", test.environ); slices.Equal(got, base) != test.same {
			t.Errorf("%v: %v, and %v", test.environ, got, base)
		}
	}
}
