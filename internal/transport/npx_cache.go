package transport

import (
	"runtime"
	"strings"

	"mcpx/internal/base/pattern"
)

// npxFolder is a folder of npx's cache in what node or npm says.
var npxFolder = pattern.New(`(?:[A-Za-z]:\\|/)[^'"<>|\n]*?[/\\]_npx[/\\][0-9a-f]{12,}`)

// incomplete are the words of node and npm about a cache in which files are missing.
// broken are those about a program that fails while it is loaded, as it does where a
// file is there and empty; a mistake of the program's own looks the same.
var (
	incomplete = pattern.New(`MODULE_NOT_FOUND|Cannot find (?:package|module)|ERR_INVALID_PACKAGE_CONFIG|ENOTEMPTY|ECOMPROMISED`)
	broken     = pattern.New(`(?s)(?:Type|Syntax|Reference)Error\b.*node:internal/modules/`)
)

// npxCure says what to do where stderr tells of a cache of npx that an install has
// left half written: npx never mends it. It is empty for any other stderr.
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
