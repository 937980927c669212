package transport

import (
	"strings"
	"testing"
)

func TestNpxCure(t *testing.T) {
	for stderr, want := range map[string]string{
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /home/u/.npm/_npx/a3241bba59c344f5/node_modules/@x/y/dist/index.js\n    at z":                                                                                                "/home/u/.npm/_npx/a3241bba59c344f5",
		"node:internal\nError: Cannot find module './x.js'\nRequire stack:\n- /c/_npx/0123456789abcdef/node_modules/a/b.js":                                                                                                                                 "/c/_npx/0123456789abcdef",
		"code: 'ERR_MODULE_NOT_FOUND', url: 'file:///c d/_npx/0123456789abcdef/node_modules/a/b.js'":                                                                                                                                                        `"/c d/_npx/0123456789abcdef"`,
		`Cannot find package 'zod' imported from C:\Users\J S\AppData\Local\npm-cache\_npx\0123456789abcdef\node_modules\x.js`:                                                                                                                              `"C:\Users\J S\AppData\Local\npm-cache\_npx\0123456789abcdef"`,
		"npm error ENOTEMPTY: directory not empty, rename '/c/_npx/0123456789abcdef/node_modules/a' -> '/c/_npx/0123456789abcdef/node_modules/.a-x'":                                                                                                        "/c/_npx/0123456789abcdef",
		"/c/_npx/0123456789abcdef/node_modules/e/i.js:117\n  inherits(E, Error)\n\nTypeError: inherits is not a function\n    at x (/c/_npx/0123456789abcdef/node_modules/e/i.js:117:3)\n    at Module._compile (node:internal/modules/cjs/loader:1521:14)": "/c/_npx/0123456789abcdef",
		"Error: API_KEY is not set\n    at x (/c/_npx/0123456789abcdef/node_modules/e/i.js:117:3)\n    at Module._compile (node:internal/modules/cjs/loader:1521:14)":                                                                                       "",
		"TypeError: x is null\n    at onMessage (/c/_npx/0123456789abcdef/node_modules/e/i.js:117:3)\n    at node:events:1":                                                                                                                                 "",
		"Error: no token, see /c/_npx/0123456789abcdef/node_modules/a/README.md":                                                                                                                                                                            "",
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/own/index.js":                                                                                                                                                           "",
		"": "",
	} {
		got := npxCure(stderr)
		if want == "" && got != "" || want != "" && !strings.HasSuffix(got, " "+want+"; ") {
			t.Errorf("%q:\n%q", stderr, got)
		}
	}
}
