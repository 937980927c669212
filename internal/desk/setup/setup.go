// Package setup finds and edits the config files of MCP clients, and of mcpx.
//
// An edit changes only the bytes that it must: comments, the order of keys,
// indentation, line ends and a byte order mark stay as they are. Every edit is
// checked by reading the new text again before anything is written.
package setup

import (
	"path"
	"runtime"
	"strings"
)

// System is what the places of config files depend on.
type System struct {
	// OS is a GOOS.
	OS string
	// Getenv looks a variable up.
	Getenv func(string) (string, bool)
	// Dir is the working folder; the files of a project are looked for in it.
	Dir string
}

// Here is the system that this process runs on.
func Here(getenv func(string) (string, bool), dir string) System {
	return System{OS: runtime.GOOS, Getenv: getenv, Dir: dir}
}

// env is a variable, or the fallback where it is not set.
func (s System) env(name, fallback string) string {
	if value, _ := s.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// home is the user's folder.
func (s System) home() string {
	if s.OS == "windows" {
		return s.env("USERPROFILE", "")
	}
	return s.env("HOME", "")
}

// join joins with the separator of the system, which need not be that of this
// process. A path whose first part is unknown is empty.
func (s System) join(first string, parts ...string) string {
	if first == "" {
		return ""
	}
	if s.OS != "windows" {
		return path.Join(append([]string{first}, parts...)...)
	}
	return strings.TrimRight(first, `\/`) + `\` + strings.Join(parts, `\`)
}

// appData is where applications keep their settings.
func (s System) appData() string {
	switch s.OS {
	case "windows":
		return s.env("APPDATA", s.join(s.home(), "AppData", "Roaming"))
	case "darwin":
		return s.join(s.home(), "Library", "Application Support")
	}
	return s.xdgConfig()
}

// xdgConfig is where programs of the command line keep their settings, on macOS
// and Windows too.
func (s System) xdgConfig() string {
	return s.env("XDG_CONFIG_HOME", s.join(s.home(), ".config"))
}

// Short is a path as a user writes it, with ~ for the user's folder.
func (s System) Short(file string) string {
	home := s.home()
	if rest, ok := strings.CutPrefix(file, home); ok && home != "" && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, `\`)) {
		return "~" + rest
	}
	return file
}
