// Package setup finds and edits the config files of MCP clients, and of mcpx.
//
// An edit changes as few bytes as possible: comments, the order of keys, indentation, line endings and a byte order mark
// stay. The new text is parsed before it is written.
package setup

import (
	"path"
	"runtime"
	"strings"
)

// System describes the machine and the process, which decide where config files are.
type System struct {
	// OS is the operating system, a value of GOOS.
	OS string
	// Getenv looks up an environment variable.
	Getenv func(string) (string, bool)
	// Dir is the working folder, in which the files of a project may be.
	Dir string
}

// Here returns the system that this process runs on.
func Here(getenv func(string) (string, bool), dir string) System {
	return System{OS: runtime.GOOS, Getenv: getenv, Dir: dir}
}

// env returns the value of an environment variable, or fallback if the variable is empty or not set.
func (s System) env(name, fallback string) string {
	if value, _ := s.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// home returns the user's home folder, or "" if the environment does not name it.
func (s System) home() string {
	if s.OS == "windows" {
		return s.env("USERPROFILE", "")
	}
	return s.env("HOME", "")
}

// join joins path elements with the separator of s.OS, which may differ from the separator of this process. If first is
// empty, the result is empty.
func (s System) join(first string, parts ...string) string {
	if first == "" {
		return ""
	}
	if s.OS != "windows" {
		return path.Join(append([]string{first}, parts...)...)
	}
	return strings.TrimRight(first, `\/`) + `\` + strings.Join(parts, `\`)
}

// appData returns the folder in which desktop applications keep their settings.
func (s System) appData() string {
	switch s.OS {
	case "windows":
		return s.env("APPDATA", s.join(s.home(), "AppData", "Roaming"))
	case "darwin":
		return s.join(s.home(), "Library", "Application Support")
	}
	return s.xdgConfig()
}

// xdgConfig returns the folder in which many command line programs keep their settings, even on macOS and Windows.
func (s System) xdgConfig() string {
	return s.env("XDG_CONFIG_HOME", s.join(s.home(), ".config"))
}

// Short returns a path with the home folder shortened to ~.
func (s System) Short(file string) string {
	home := s.home()
	if rest, ok := strings.CutPrefix(file, home); ok && home != "" && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, `\`)) {
		return "~" + rest
	}
	return file
}
