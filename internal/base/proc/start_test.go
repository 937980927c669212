//go:build linux || darwin

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStart_PipesBlock: the child's stdin, stdout and stderr are in blocking mode, since programs of many languages
// cannot handle non-blocking ones.
func TestStart_PipesBlock(t *testing.T) {
	p := start(t, "flags", nil)
	out, _ := io.ReadAll(p.Stdout())
	want := "0 nonblocking=false\n1 nonblocking=false\n2 nonblocking=false\n"
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestStart_Faults(t *testing.T) {
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("script", "#!/no/such/python\n", 0o755)
	plain := write("plain", "text", 0o644)
	path := []string{"PATH=" + dir}
	tests := []struct {
		name  string
		spec  Spec
		want  string
		cause error
	}{
		{"no command", Spec{}, `starting "": the command is empty`, nil},
		{"not in PATH", Spec{Command: "npx", Env: path}, `starting "npx": executable file not found in PATH`, ErrNotFound},
		{"no PATH", Spec{Command: "sh"}, `starting "sh": executable file not found in PATH`, ErrNotFound},
		{"relative PATH", Spec{Command: "script", Env: []string{"PATH=.::testdata"}, Dir: dir}, `starting "script": executable file not found in PATH`, ErrNotFound},
		{"no file", Spec{Command: dir + "/none"}, `starting "` + dir + `/none": no such file or directory`, fs.ErrNotExist},
		{"not executable", Spec{Command: plain}, `starting "` + plain + `": permission denied`, fs.ErrPermission},
		{"not executable in PATH", Spec{Command: "plain", Env: path}, `starting "plain": ` + plain + `: permission denied`, fs.ErrPermission},
		{"no interpreter", Spec{Command: script}, `starting "` + script + `": the interpreter or loader that ` + script + ` names: no such file or directory`, fs.ErrNotExist},
		{"no folder", Spec{Command: "/bin/sh", Dir: dir + "/none"}, `starting "/bin/sh": working folder ` + dir + `/none: no such file or directory`, fs.ErrNotExist},
		{"no relative folder", Spec{Command: "/bin/sh", Dir: "none"}, `starting "/bin/sh": working folder ` + here + `/none: no such file or directory`, fs.ErrNotExist},
		{"no folder but a file", Spec{Command: "/bin/sh", Dir: plain}, `starting "/bin/sh": working folder ` + plain + `: not a directory`, syscall.ENOTDIR},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := descriptors(t)
			p, err := Start(tt.spec, nil)
			if err == nil {
				p.Close(t.Context(), Grace{})
				t.Fatal("no error")
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("the cause is not %v", tt.cause)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
}

func TestStart_Lookup(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\npwd; echo \"$0 $*\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, command, path string }{
		{"PATH of the child", "tool", "/nowhere:" + dir},
		{"relative to Dir", "./tool", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Start(Spec{Command: tt.command, Args: []string{"a b", "c"}, Dir: real, Env: []string{"PATH=" + tt.path}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close(t.Context(), Grace{})
			s := bufio.NewScanner(p.Stdout())
			s.Scan()
			if s.Text() != real {
				t.Errorf("working folder %s, want %s", s.Text(), real)
			}
			s.Scan()
			if !strings.HasSuffix(s.Text(), "/tool a b c") {
				t.Errorf("ran %q", s.Text())
			}
		})
	}
}

func TestStderr_Flood(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const kept = 10 << 10
	lines := make(chan string, 1)
	p, err := Start(Spec{Command: exe, Env: self("flood"), StderrBytes: kept, OnStderr: func(line string) {
		select {
		case lines <- line:
		default:
		}
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("noise ", 100)
	if got := <-lines; got != want {
		t.Errorf("OnStderr got %q", got)
	}
	// The child's stderr is read at a bounded speed, but the child still answers on stdout.
	eventually(t, slack, "the tail is full", func() bool { return len(p.StderrTail()) > kept-len(want)-1 })
	fmt.Fprintln(p.Stdin(), "hello")
	if got := readLine(p.Stdout()); got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
	closeWithin(t, p, Grace{EOF: long}, slack)
	tail := p.StderrTail()
	if len(tail) > kept || !strings.HasPrefix(tail, want) {
		t.Errorf("%d bytes, beginning %.20q: want whole lines, at most %d bytes", len(tail), tail, kept)
	}
}
