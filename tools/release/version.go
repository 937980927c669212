package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"debug/buildinfo"
)

// version is the version of a release, in the formats of the package registries.
type version struct {
	npm    string // a semantic version
	pypi   string // a PEP 440 version
	commit string
}

// pseudo matches the pseudo-version that Go gives to a commit without a tag, unless the last tag before it is a pre-release.
var pseudo = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(?:0\.)?(\d{14})-[0-9a-f]{12}$`)

// versionOf reads the version from the build information of a binary, as the command `mcpx version` does.
func versionOf(info *buildinfo.BuildInfo) (version, error) {
	v := version{npm: strings.TrimPrefix(info.Main.Version, "v")}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			v.commit = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			return v, errors.New("the working tree has changes; commit them: a release is built from a commit")
		}
	}
	if v.commit == "" {
		return v, errors.New("the binary does not say its commit; build in a clone, with git: a worktree of git is none for Go")
	}
	number, suffix, pre := strings.Cut(v.npm, "-")
	v.pypi = number
	if m := pseudo.FindStringSubmatch(v.npm); m != nil {
		v.pypi = m[1] + ".dev" + m[2]
	} else if pre {
		kind, count, _ := strings.Cut(suffix, ".")
		short := map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[kind]
		if short == "" {
			return v, fmt.Errorf("the tag v%s has no Python version; use -alpha.N, -beta.N or -rc.N", v.npm)
		}
		v.pypi += short + count
	}
	return v, nil
}
