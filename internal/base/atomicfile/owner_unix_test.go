//go:build !windows

package atomicfile

import (
	"errors"
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

// TestRewrite_OwnerOfNew: if root makes a file with Rewrite, the file belongs to the owner of its folder, also if it is behind a
// link. A file that root makes with [Write] belongs to root.
func TestRewrite_OwnerOfNew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const uid, gid = 65534, 65533
	folder, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	path, written := filepath.Join(folder, "file"), filepath.Join(folder, "written")
	err := errors.Join(os.Chown(folder, uid, gid), os.Symlink(path, link), Rewrite(link, []byte("{}")), Write(written, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][2]uint32{path: {uid, gid}, written: {0, 0}} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if got := [2]uint32{owner.Uid, owner.Gid}; got != want || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, got, info.Mode())
		}
	}
}
