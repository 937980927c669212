package setup

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// nobody is the ID of a user other than root, and of that user's group.
const nobody = 65534

// TestWrite_Owner: a file that root edits still belongs to its user. This is also true of a file behind a link, and the link
// stays a link.
func TestWrite_Owner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may edit the files of others")
	}
	sys, c := linux(t), client(t, "cursor")
	file, target := c.File(sys), filepath.Join(sys.Dir, "dotfiles", "mcp.json")
	put(t, target, "{}\n")
	put(t, filepath.Join(filepath.Dir(file), "other"), "")
	if err := os.Chown(target, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	connect(t, b, c, file, nil, false)
	for _, undone := range []bool{false, true} {
		if undone {
			disconnect(t, b, c, file)
		}
		info, err := os.Stat(target)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if owner.Uid != nobody || owner.Gid != nobody || info.Mode() != 0o640 || (content(t, target) == "{}\n") != undone {
			t.Errorf("%d:%d, %v: %s", owner.Uid, owner.Gid, info.Mode(), content(t, target))
		}
		if to, err := os.Readlink(file); to != target {
			t.Errorf("the link is to %q, %v", to, err)
		}
	}
}
