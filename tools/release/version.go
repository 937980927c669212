package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"debug/buildinfo"
)

// version is the version of a release, in the formats of the package registries.
type version struct {
	npm    string // a semantic version
	pypi   string // a PEP 440 version
	commit string
}

var (
	// pseudo matches the pseudo-version that Go gives to a commit without a tag. If the last tag before the commit is a
	// pre-release, preRelease matches the pseudo-version instead.
	pseudo = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(?:0\.)?(\d{14})-[0-9a-f]{12}$`)
	// preRelease matches the version of a pre-release, and the pseudo-version of a commit without a tag after a pre-release.
	preRelease = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(alpha|beta|rc)\.(\d+)(?:\.0\.(\d{14})-[0-9a-f]{12})?$`)
)

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
	v.pypi = v.npm
	if m := pseudo.FindStringSubmatch(v.npm); m != nil {
		v.pypi = m[1] + ".dev" + m[2]
	} else if m := preRelease.FindStringSubmatch(v.npm); m != nil {
		count, err := strconv.Atoi(m[3])
		if err != nil {
			return v, fmt.Errorf("the tag v%s: %w", v.npm, err)
		}
		dev := ""
		if m[4] != "" { // 1.0b2.dev1 comes before 1.0b2, so a commit after beta 1 is a .dev of beta 2
			count, dev = count+1, ".dev"+m[4]
		}
		v.pypi = m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]] + strconv.Itoa(count) + dev
	} else if strings.Contains(v.npm, "-") {
		return v, fmt.Errorf("the tag v%s has no Python version; use -alpha.N, -beta.N or -rc.N", v.npm)
	}
	return v, nil
}
