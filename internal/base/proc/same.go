package proc

import (
	"path/filepath"
	"slices"
	"strings"
)

// programs are the interpreters and package managers that servers find on the PATH: which of them runs decides what a server
// does. The PATH itself may differ from shell to shell and still lead to the same programs.
var programs = strings.Fields(`
	node npm npx pnpm yarn bun bunx deno python python3 uv uvx pipx ruby java go dotnet docker podman sh bash
`)

// cosmetic are inherited variables that change neither what a child runs nor with whose rights, and that differ between the
// terminals of one user.
var cosmetic = strings.Fields(`
	PATH TERM FNM_MULTISHELL_PATH XDG_SESSION_ID XDG_SESSION_TYPE XDG_SESSION_CLASS XDG_VTNR XDG_SEAT XDG_ACTIVATION_TOKEN
`)

// Same returns what has to be equal in two environments so that a command starts in the same way in both: the file that
// the command is, the programs that it may start, and the variables that it inherits, without its own.
func Same(command string, environ []string) []string {
	inherited := Environment(environ, nil)
	same := slices.DeleteFunc(slices.Clone(inherited), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(cosmetic, name)
	})
	for _, name := range append([]string{command}, programs...) {
		path, err := Look(name, inherited)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		same = append(same, name+" is "+path)
	}
	return same
}
