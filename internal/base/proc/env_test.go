package proc

import (
	"runtime"
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	parent := []string{
		"PATH=/bin", "HOME=/home/u", "LC_ALL=C", "XDG_CACHE_HOME=/c", "https_proxy=http://p", "HTTPS_PROXY=http://q",
		"GITHUB_TOKEN=secret", "AWS_SECRET_ACCESS_KEY=secret", "npm_config__authToken=secret", "SSH_AUTH_SOCK=/s",
		"NODE_OPTIONS=--require /x", "LD_PRELOAD=/x", "UV_INDEX_URL=http://u:secret@h",
		markVar + "=outer.1.", RoleVar + "=outer", "ProgramFiles(x86)=C:\\x",
		"LANG=() { evil; }", "=C:=C:\\", "TERM", "", "TZ=", "SHELL=/bin/sh=x",
	}
	if runtime.GOOS == "windows" {
		t.Skip("names differ in case alone")
	}
	got := Environment(parent, map[string]string{"HOME": "/other", "API_KEY": "k", "EMPTY": ""})
	want := []string{
		"API_KEY=k", "EMPTY=", "HOME=/other", "HTTPS_PROXY=http://q", "LC_ALL=C", "PATH=/bin", "ProgramFiles(x86)=C:\\x",
		"SHELL=/bin/sh=x", "TZ=", "XDG_CACHE_HOME=/c", "https_proxy=http://p",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := Environment(nil, nil); len(got) != 0 {
		t.Errorf("from nothing: %q", got)
	}
}

// TestDecisive: no variable is in both envNames and plainNames, and Decisive returns only variables in envNames, without PATH.
func TestDecisive(t *testing.T) {
	for _, name := range plainNames {
		if slices.Contains(envNames, name) {
			t.Errorf("%s is in both lists", name)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("names differ in case alone")
	}
	env := []string{"PATH=/bin", "LC_ALL=C", "XDG_SESSION_ID=1", "XDG_DATA_HOME=/d", "TMPDIR=/t", "HOME=/h", "API_KEY=k", "no_proxy=x"}
	if got, want := Decisive(env), []string{"HOME=/h", "XDG_DATA_HOME=/d", "no_proxy=x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValue(t *testing.T) {
	env := []string{"PATH=/a", "PATHEXT=.EXE", "PATH=/b", "=C:=C:\\"}
	if got := Value(env, "PATH"); got != "/b" {
		t.Errorf("got %q, want the last", got)
	}
	if got := Value(env, "NONE"); got != "" {
		t.Errorf("got %q of a variable that is not there", got)
	}
	if got, want := without(env, "PATH"), []string{"PATHEXT=.EXE", "=C:=C:\\"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
