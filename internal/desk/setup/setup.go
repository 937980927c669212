// Package setup finds and edits the config files of MCP clients, and of mcpx.
//
// An edit changes only the bytes that it must: comments, the order of keys, indentation, line
// endings and a byte order mark stay. The new text is parsed before it is written.
package setup

import (
	"path"
	"runtime"
	"strings"
)

// System is what the paths of config files depend on.
type System struct {
	// OS is a value of GOOS.
	OS string
	// Getenv looks up an environment variable.
	Getenv func(string) (string, bool)
	// Dir is the working folder, which may have the files of a project.
	Dir string
}

// Here returns the system that this process runs on.
func Here(getenv func(string) (string, bool), dir string) System {
	return System{OS: runtime.GOOS, Getenv: getenv, Dir: dir}
}

// env returns a variable, or fallback if it is empty or not set.
func (s System) env(name, fallback string) string {
	if value, _ := s.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// home returns the user's home folder.
func (s System) home() string {
	if s.OS == "windows" {
		return s.env("USERPROFILE", "")
	}
	return s.env("HOME", "")
}

// join joins with the separator of s.OS, which may differ from that of this process. If first is
// empty, so is the result.
func (s System) join(first string, parts ...string) string {
	if first == "" {
		return ""
	}
	if s.OS != "windows" {
		return path.Join(append([]string{first}, parts...)...)
	}
	return strings.TrimRight(first, `\/`) + `\` + strings.Join(parts, `\`)
}

// appData returns the folder where desktop applications keep their settings.
func (s System) appData() string {
	switch s.OS {
	case "windows":
		return s.env("APPDATA", s.join(s.home(), "AppData", "Roaming"))
	case "darwin":
		return s.join(s.home(), "Library", "Application Support")
	}
	return s.xdgConfig()
}

// xdgConfig returns the folder where command line programs keep their settings, even on macOS and
// Windows.
func (s System) xdgConfig() string {
	return s.env("XDG_CONFIG_HOME", s.join(s.home(), ".config"))
}

// Short writes a path with ~ for the home folder.
func (s System) Short(file string) string {
	home := s.home()
	if rest, ok := strings.CutPrefix(file, home); ok && home != "" && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, `\`)) {
		return "~" + rest
	}
	return file
}
