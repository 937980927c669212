package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

// TestMain: with SECRET_COMMAND set, the test binary acts as the command that TestRun runs.
func TestMain(m *testing.M) {
	switch os.Getenv("SECRET_COMMAND") {
	case "print":
		fmt.Printf("%q\n", os.Args[1:])
	case "fail":
		fmt.Print("hush-out")
		fmt.Fprint(os.Stderr, "hush-err")
		os.Exit(3)
	case "endless":
		for {
			if _, err := fmt.Println(strings.Repeat("x", 1000)); err != nil {
				os.Exit(1)
			}
		}
	case "hang":
		<-time.After(time.Minute)
	default:
		os.Exit(m.Run())
	}
}

// TestStore_NoFolder: without a folder nothing is stored, neither in the working folder nor in the keyring, where it could not be
// listed. What the keyring has can be read.
func TestStore_NoFolder(t *testing.T) {
	t.Setenv("MCPX_KEYRING", "")
	keyring.MockInit()
	if err := keyring.Set("mcpx", "secret old", "from before"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if _, err := New(".").Set(t.Context(), "planted", "x"); err != nil {
		t.Fatal(err)
	}
	s := New("")
	if _, err := s.Set(t.Context(), "new", "hush"); err == nil || !strings.Contains(err.Error(), "$HOME") {
		t.Errorf("set: %v", err)
	}
	if err := s.Seal(t.Context(), "new", "hush"); err == nil {
		t.Error("sealed")
	}
	if _, err := s.Get(t.Context(), "new"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if got, err := s.Get(t.Context(), "old"); got != "from before" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if names, err := s.Names(); len(names) != 0 || err != nil {
		t.Errorf("names %q, %v", names, err)
	}
	if found, err := s.Delete(t.Context(), "new"); found || err != nil {
		t.Errorf("deleted: %v, %v", found, err)
	}
}

// TestStore: a secret can be stored, replaced, listed and deleted, both with and without a keyring.
func TestStore(t *testing.T) {
	for _, kind := range []string{"keyring", "off", "broken"} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("MCPX_KEYRING", "")
			keyring.MockInit()
			switch kind {
			case "off":
				t.Setenv("MCPX_KEYRING", "off")
			case "broken":
				keyring.MockInitWithError(errors.New("no bus"))
			}
			dir := filepath.Join(t.TempDir(), "secrets")
			s := New(dir)
			for _, value := range []string{"first", "hush\nhush"} {
				unsealed, err := s.Set(t.Context(), "git.hub-1", value)
				if err != nil || (unsealed != nil) != (kind != "keyring") {
					t.Fatalf("set: %v, %v", unsealed, err)
				}
			}
			if _, err := s.Set(t.Context(), "GIT.hub-1", "other"); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(t.Context(), "git.hub-1"); got != "hush\nhush" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			names, err := s.Names()
			if !slices.Equal(names, []string{"GIT.hub-1", "git.hub-1"}) || err != nil {
				t.Errorf("names %q, %v", names, err)
			}
			err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				data, _ := os.ReadFile(path)
				if info, _ := d.Info(); runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has mode %v", path, info.Mode())
				}
				if kind == "keyring" && strings.Contains(string(data), "hush") {
					t.Errorf("%s has the value", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			for _, want := range []bool{true, false} {
				if found, err := s.Delete(t.Context(), "git.hub-1"); found != want || err != nil {
					t.Errorf("deleted: %v, %v", found, err)
				}
			}
			if _, err := s.Get(t.Context(), "git.hub-1"); err == nil || !strings.Contains(err.Error(), "there is no secret git.hub-1") {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// TestStore_KeyringGone: if the keyring that has a secret no longer works, Get and Delete return its error, and Names
// still lists the secret.
func TestStore_KeyringGone(t *testing.T) {
	t.Setenv("MCPX_KEYRING", "")
	keyring.MockInit()
	s := New(t.TempDir())
	if _, err := s.Set(t.Context(), "a", "value"); err != nil {
		t.Fatal(err)
	}
	keyring.MockInitWithError(errors.New("no bus"))
	if _, err := s.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Delete(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("delete: %v", err)
	}
	if names, _ := s.Names(); len(names) != 1 {
		t.Errorf("names: %q", names)
	}
}

func TestStore_Refused(t *testing.T) {
	t.Setenv("MCPX_KEYRING", "off")
	s := New(t.TempDir())
	for _, name := range []string{"", "a/b", "../a", ".a", "a b", strings.Repeat("a", 65)} {
		if _, err := s.Set(t.Context(), name, "x"); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
	for _, value := range []string{"", strings.Repeat("x", MaxBytes+1)} {
		if _, err := s.Set(t.Context(), "a", value); err == nil {
			t.Errorf("%d bytes are a value", len(value))
		}
	}
}

// TestRun: Run uses no shell, so the arguments reach the program unchanged. Its errors do not contain the output.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind string
		argv []string
		want string
		err  string
	}{
		{"print", []string{self, "$HOME", "a b", "*;x"}, `["$HOME" "a b" "*;x"]`, ""},
		{"fail", []string{self, "hush"}, "", "failed (exit status 3); run it by hand"},
		{"endless", []string{self}, "", "prints more than 64 KiB"},
		{"print", []string{"no-such-program-here", "hush"}, "", "there is no command no-such-program-here on the PATH"},
		{"print", []string{filepath.Join(t.TempDir(), "none"), "hush"}, "", "could not be started"},
		{"print", []string{"./none", "hush"}, "", "must be a name on the PATH, or an absolute path"},
	} {
		t.Setenv("SECRET_COMMAND", test.kind)
		got, err := Run(t.Context(), test.argv, "", nil)
		if strings.TrimSpace(got) != test.want || (err == nil) != (test.err == "") {
			t.Errorf("%s: %q, %v", test.kind, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v", test.kind, err)
		}
	}
	// If a folder is given, the program is looked up in the PATH of environ, which belongs to a session of the daemon.
	_, err = Run(t.Context(), []string{filepath.Base(self)}, filepath.Dir(self), []string{"PATH=" + t.TempDir()})
	if want := "there is no command " + filepath.Base(self) + " on the PATH of this session"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	t.Setenv("SECRET_COMMAND", "hang")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := Run(ctx, []string{self}, "", nil); err == nil || !strings.Contains(err.Error(), "did not end within 10s") {
		t.Errorf("a command that hangs: %v", err)
	}
}
