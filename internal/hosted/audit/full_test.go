//go:build unix

package audit

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullChild is set in the environment of the child that runs TestTrail_full.
const fullChild = "MCPX_TEST_FULL_DISK"

// TestTrail_full: when the disk is full, failed writes are reported and counted, no partial line stays in the file,
// and a later line says how many records are missing. A limit on file sizes imitates the full disk. It applies to the
// whole process, so the test runs in a child process and does not disturb other tests.
func TestTrail_full(t *testing.T) {
	if os.Getenv(fullChild) == "" {
		own, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.CommandContext(t.Context(), own, "-test.run=^TestTrail_full$", "-test.v")
		child.Env = append(os.Environ(), fullChild+"=1")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestTrail_full")) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var said bytes.Buffer
	trail := open(t, path, Options{Keys: keysOf(key), syncAfter: time.Hour, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	write(t, trail, "a")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = uint64(info.Size()) + 20 // only 20 bytes of the next line can be written
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 3 {
		if trail.Write("b") != nil {
			failed++
		}
	}
	failure := trail.Err()
	full, readErr := os.ReadFile(path)
	trail.sync() // tries again, and fails again
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if failed != 3 || failure == nil || readErr != nil || int64(len(full)) != info.Size() || strings.Count(said.String(), "cannot be written") != 1 {
		t.Errorf("%d failed, %v, %d bytes, log %s", failed, failure, len(full), said.String())
	}
	trail.sync()
	if trail.Err() != nil || !strings.Contains(said.String(), "written again") {
		t.Errorf("%v, log %s", trail.Err(), said.String())
	}
	write(t, trail, "c")
	end(t, trail)
	if r := verify(t, path, key); len(r.Faults) > 0 || r.Lost != 3 || r.Lines != 5 {
		t.Errorf("%+v", r)
	}
}
