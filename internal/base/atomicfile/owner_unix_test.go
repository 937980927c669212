//go:build !windows

package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRewrite_Owner: a file that root rewrites still belongs to its user, with the same permissions. A file that Rewrite makes is
// private.
func TestRewrite_Owner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const uid, gid = 65534, 65533
	path := filepath.Join(t.TempDir(), "file")
	for i, mode := range []os.FileMode{0o600, 0o600, 0o664} {
		if err := Rewrite(path, []byte{'0' + byte(i)}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if i > 0 && (owner.Uid != uid || owner.Gid != gid) || info.Mode() != mode {
			t.Errorf("rewritten %d times: %d:%d, %v", i, owner.Uid, owner.Gid, info.Mode())
		}
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, []os.FileMode{0o600, 0o664, 0}[i]); err != nil {
			t.Fatal(err)
		}
	}
}
