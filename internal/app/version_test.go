package app

import (
	"runtime/debug"
	"testing"
)

// TestVersion_Embedded: Version returns the version of the module mcpx, not the version of a program that uses it as a package.
func TestVersion_Embedded(t *testing.T) {
	for _, test := range []struct {
		want string
		info debug.BuildInfo
	}{
		{"1.2.3", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}},
		{unversioned, debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}},
		{unversioned, debug.BuildInfo{Main: debug.Module{Path: "example.org/host", Version: "v9.0.0"}}},
		{"1.2.3", debug.BuildInfo{Main: debug.Module{Path: "example.org/host", Version: "v9.0.0"}, Deps: []*debug.Module{
			{Path: "example.org/other", Version: "v8.0.0"}, {Path: module, Version: "v1.2.3"},
		}}},
		{"1.2.4", debug.BuildInfo{Main: debug.Module{Path: "example.org/host"}, Deps: []*debug.Module{
			{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.2.4"}},
		}}},
		{unversioned, debug.BuildInfo{Main: debug.Module{Path: "example.org/host"}, Deps: []*debug.Module{
			{Path: module, Version: "v0.0.0", Replace: &debug.Module{Path: "../mcpx", Version: "(devel)"}},
		}}},
	} {
		if got := versionIn(&test.info); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.info.Main, got, test.want)
		}
	}
}

// TestVersion_Module: the constant is the path of this module.
func TestVersion_Module(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != module {
		t.Errorf("the module is %q", info.Main.Path)
	}
}
