package atomicfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRewrite_ReadOnly: a file that a user may only read is not replaced, although its folder is the user's own. The test runs itself as
// that user.
func TestRewrite_ReadOnly(t *testing.T) {
	const name, user = "ATOMICFILE_TEST_REWRITE", 65534
	if path := os.Getenv(name); path != "" {
		var refused *ReadOnlyError
		if err := Rewrite(path, []byte("new")); !errors.As(err, &refused) || refused.Path != path || refused.Hint() == "" {
			t.Errorf("got %v", err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may become another user")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	err := errors.Join(os.WriteFile(path, []byte("old"), 0o644), os.Chown(folder, user, user), os.Chmod(filepath.Dir(folder), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestRewrite_ReadOnly$") // the user cannot enter the folder of the tests
	again.Env = append(os.Environ(), name+"="+path)
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if data, err := os.ReadFile(path); string(data) != "old" {
		t.Errorf("the file is %q, %v", data, err)
	}
}
