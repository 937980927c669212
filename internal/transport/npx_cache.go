package transport

import (
	"runtime"
	"strings"

	"mcpx/internal/base/pattern"
)

// npxFolder matches a folder of npx's cache in the output of node or npm.
var npxFolder = pattern.New(`(?:[A-Za-z]:\\|/)[^'"<>|\n]*?[/\\]_npx[/\\][0-9a-f]{12,}`)

// incomplete matches errors of node and npm about missing files. broken matches errors that occur while a program
// is loaded, for example because a file is empty; a bug of the program can cause the same errors.
var (
	incomplete = pattern.New(`MODULE_NOT_FOUND|Cannot find (?:package|module)|ERR_INVALID_PACKAGE_CONFIG|ENOTEMPTY|ECOMPROMISED`)
	broken     = pattern.New(`(?s)(?:Type|Syntax|Reference)Error\b.*node:internal/modules/`)
)

// npxCure returns advice if stderr shows that an interrupted install has left npx's cache incomplete. The user must then delete the
// folder, because npx never repairs it. Otherwise npxCure returns "".
func npxCure(stderr string) string {
	folder := npxFolder.FindString(strings.ReplaceAll(stderr, "file://", ""))
	is := ""
	switch {
	case folder == "":
		return ""
	case incomplete.MatchString(stderr):
		is = "is"
	case broken.MatchString(stderr):
		is = "may be"
	default:
		return ""
	}
	remove := "rm -rf "
	if runtime.GOOS == "windows" {
		remove = "rmdir /s /q "
	}
	if strings.Contains(folder, " ") {
		folder = `"` + folder + `"`
	}
	return "the cache of npx " + is + " half written, delete it: " + remove + folder + "; "
}
