package share

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

// programAt makes a file that can be run, and returns its folder.
func programAt(t *testing.T, folder, name string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// homeName is the variable with the home folder.
var homeName = map[bool]string{true: "USERPROFILE", false: "HOME"}[runtime.GOOS == "windows"]

// stdio is a server that runs npx.
func stdio() *config.Server {
	return &config.Server{Type: config.Stdio, Launch: config.Launch{Command: "npx", Args: []string{"x"}, Framing: "auto"}}
}

func TestDigest_Environment(t *testing.T) {
	home, work, other := t.TempDir(), t.TempDir(), t.TempDir()
	tools := programAt(t, filepath.Join(home, "tools"), "npx")
	python := programAt(t, filepath.Join(home, "venv"), "python3")
	unrelated := programAt(t, filepath.Join(home, "unrelated"), "something-else")
	list := func(folders ...string) string {
		path := ""
		for _, folder := range folders {
			path += folder + string(filepath.ListSeparator)
		}
		return "PATH=" + path
	}
	base := []string{list(tools), homeName + "=" + home, "LANG=C"}
	with := func(more ...string) []string { return append(append([]string{}, base...), more...) }
	first := NewSession(base, work).Digest(stdio(), user)
	for _, test := range []struct {
		name    string
		environ []string
		folder  string
		same    bool
	}{
		{"itself", base, work, true},
		{"another folder", base, other, true},
		{"another home", with(homeName + "=" + other), work, false},
		{"a proxy", with("HTTPS_PROXY=http://127.0.0.1:1"), work, false},
		{"certificates", with("NODE_EXTRA_CA_CERTS=/x"), work, false},
		{"a package manager", with("npm_config_registry=http://127.0.0.1:1"), work, false},
		{"where its files are", with("XDG_CONFIG_HOME=" + other), work, false},
		{"another terminal", with("TERM=xterm", "LANG=de_DE", "LC_ALL=C", "TMPDIR="+other, "XDG_SESSION_ID=7", "FNM_MULTISHELL_PATH=/x"), work, true},
		{"what no server inherits", with("TOKEN=x", "SSH_AUTH_SOCK=/x", "MCPX_CHILD=1"), work, true},
		{"a longer PATH", with(list(unrelated, tools, filepath.Join(home, "missing"))), work, true},
		{"a virtual environment", with(list(python, tools)), work, false},
		{"no npx", with(list(unrelated)), work, false},
	} {
		if same := NewSession(test.environ, test.folder).Digest(stdio(), user) == first; same != test.same {
			t.Errorf("%s: the same is %t", test.name, same)
		}
	}
	if NewSession(with(list(unrelated)), work).Digest(stdio(), user) == NewSession(with(list(python)), work).Digest(stdio(), user) {
		t.Error("servers that are not found in different places are the same")
	}
	if runtime.GOOS == "windows" {
		return // on Windows, making links needs special rights
	}
	link := filepath.Join(home, "link")
	if err := os.Symlink(tools, link); err != nil {
		t.Fatal(err)
	}
	if NewSession(with(list(link)), work).Digest(stdio(), user) != first {
		t.Error("a link to the folder of the programs makes a difference")
	}
	venv := filepath.Join(home, "another-venv")
	if err := os.Mkdir(venv, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(python, "python3"), filepath.Join(venv, "python3")); err != nil {
		t.Fatal(err)
	}
	if NewSession(with(list(python, tools)), work).Digest(stdio(), user) == NewSession(with(list(venv, tools)), work).Digest(stdio(), user) {
		t.Error("two virtual environments with links to the same python are the same")
	}
}

func TestDigest_Folder(t *testing.T) {
	home, work, other := t.TempDir(), t.TempDir(), t.TempDir()
	environ := []string{homeName + "=" + home, "PATH=" + programAt(t, filepath.Join(home, "tools"), "npx")}
	here, there := NewSession(environ, work), NewSession(environ, other)
	for _, test := range []struct {
		cwd    string
		share  conf.Share
		folder string
		same   bool
	}{
		{"", user, home, true},
		{"", folder, work, false},
		{"", session, work, false},
		{other, user, other, true},
		{other, folder, other, false},
		{"sub", user, filepath.Join(work, "sub"), false},
	} {
		s := stdio()
		s.Cwd = test.cwd
		if got := here.Folder(s, test.share); got != test.folder {
			t.Errorf("%s, cwd %q: starts in %s, want %s", test.share, test.cwd, got, test.folder)
		}
		if same := here.Digest(s, test.share) == there.Digest(s, test.share); same != test.same {
			t.Errorf("%s, cwd %q: the same in two folders is %t", test.share, test.cwd, same)
		}
	}
	if homeless := NewSession(environ[1:], work); homeless.Folder(stdio(), user) != work {
		t.Errorf("without a home it starts in %s", homeless.Folder(stdio(), user))
	}
	remote := &config.Server{Type: config.HTTP, Remote: config.Remote{URL: "https://example.com/mcp"}}
	if here.Digest(remote, user) != NewSession(nil, other).Digest(remote, user) {
		t.Error("a remote server goes by the folder or the environment")
	}
	if here.Digest(remote, folder) == there.Digest(remote, folder) {
		t.Error("a remote server that is shared by folder does not go by it")
	}
	// A relative command names another program in another folder.
	local := stdio()
	local.Command = "./npx"
	if here.Digest(local, folder) == there.Digest(local, folder) {
		t.Error("a relative command is the same in two folders")
	}
}

// TestDigest_Fields: each field of [config.Launch] and [config.Remote] changes the digest. The test finds the fields by
// reflection, so it also covers fields that are added later.
func TestDigest_Fields(t *testing.T) {
	s := NewSession(nil, t.TempDir())
	before := s.Digest(&config.Server{}, user)
	for _, part := range []reflect.Type{reflect.TypeFor[config.Launch](), reflect.TypeFor[config.Remote]()} {
		for _, field := range reflect.VisibleFields(part) {
			var changed config.Server
			set(t, reflect.ValueOf(&changed).Elem().FieldByName(field.Name))
			if s.Digest(&changed, user) == before {
				t.Errorf("%s makes no difference", field.Name)
			}
		}
	}
	named := &config.Server{Name: "another", Running: config.Running{CallTimeout: 1}}
	if s.Digest(named, user) != before {
		t.Error("a name or a timeout makes a difference")
	}
	if s.Digest(&config.Server{}, session) == before {
		t.Error("the share makes no difference")
	}
}

// set sets v to another value than zero. If v consists of parts, such as fields or elements, set does the same with them.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		set(t, value)
		v.SetMapIndex(reflect.ValueOf("x"), value)
	case reflect.Struct:
		for i := range v.NumField() {
			set(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(t, v.Elem())
	default:
		t.Fatalf("no value for a %s", v.Kind())
	}
}

func BenchmarkDigest(b *testing.B) {
	environ := os.Environ()
	for b.Loop() {
		s := NewSession(environ, "/")
		for range 15 {
			s.Digest(stdio(), user)
		}
	}
}
