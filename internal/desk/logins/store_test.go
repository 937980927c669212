package logins

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

// TestStore: a file is encrypted with a key from the keyring. It cannot be read without that key, nor under another name.
func TestStore(t *testing.T) {
	keyring.MockInit()
	ctx, dir := context.Background(), t.TempDir()
	s := &store{dir: dir}
	kept := login{Server: "tracker", Access: "an-access-token", Refresh: "a-refresh-token", Expiry: time.Now().Add(time.Hour).Round(0)}
	if err := s.write(ctx, "a.login", kept); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a.login"))
	if err != nil || strings.Contains(string(data), "token") || strings.Contains(string(data), "tracker") {
		t.Errorf("on disk: %s %v", data, err)
	}
	var got login
	if err := (&store{dir: dir}).read(ctx, "a.login", &got); err != nil || got.Access != kept.Access || !got.Expiry.Equal(kept.Expiry) {
		t.Errorf("read: %+v %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.login"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&store{dir: dir}).read(ctx, "b.login", &got); !errors.Is(err, errLost) {
		t.Errorf("a file under another name: %v", err)
	}
	if err := s.read(ctx, "c.login", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	keyring.MockInit() // the keyring is empty again
	if err := (&store{dir: dir}).read(ctx, "a.login", &got); !errors.Is(err, errLost) {
		t.Errorf("without the key: %v", err)
	}
}

// TestStore_Locked: if the keyring fails, a stored login is not lost. A process that already has the key can still use it.
func TestStore_Locked(t *testing.T) {
	keyring.MockInit()
	server := Server{Name: "tracker", URL: "https://tracker.example/mcp"}
	ctx, l := context.Background(), New(t.TempDir(), nil)
	if err := l.store.write(ctx, loginFile(server), login{Access: "an-access-token"}); err != nil {
		t.Fatal(err)
	}
	keyring.MockInitWithError(errors.New("the collection is locked"))
	fresh := New(l.store.(*store).dir, nil)
	if _, err := fresh.source(server).token(ctx); err == nil || !strings.Contains(err.Error(), "the collection is locked") {
		t.Errorf("locked: %v", err)
	}
	if token, err := l.source(server).token(ctx); err != nil || token != "an-access-token" {
		t.Errorf("the process that has the key: %q %v", token, err)
	}
}

// TestLogout_Leaves: after a logout, also of a server without a login, the folder has no file of the server.
func TestLogout_Leaves(t *testing.T) {
	keyring.MockInit()
	l := New(t.TempDir(), nil)
	s := Server{Name: "tracker", URL: "https://tracker.example/mcp"}
	if _, err := l.keep(t.Context(), s, &login{Server: s.Name, URL: s.URL, Access: "an-access-token"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		if missing, _, err := l.Logout(t.Context(), s); err != nil || missing != want {
			t.Errorf("missing is %t, %v", missing, err)
		}
		left, err := filepath.Glob(filepath.Join(l.store.(*store).dir, "tracker*"))
		if err != nil || len(left) > 0 && runtime.GOOS != "windows" {
			t.Errorf("left: %v %v", left, err)
		}
	}
}

// TestStore_Lock: one process at a time has the lock of a file, also while others delete the file with the lock.
func TestStore_Lock(t *testing.T) {
	dir := t.TempDir()
	var inside, slips atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			s := &store{dir: dir}
			for range 100 {
				unlock, err := s.lock(t.Context(), "a.login")
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 1 {
					slips.Add(1)
				}
				runtime.Gosched()
				inside.Add(-1)
				if err := s.remove("a.login"); err != nil {
					t.Error(err)
				}
				unlock()
			}
		})
	}
	all.Wait()
	if n := slips.Load(); n > 0 {
		t.Errorf("two had the lock %d times", n)
	}
}
