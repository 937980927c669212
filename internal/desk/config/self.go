package config

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
)

// Distribution is the name of mcpx's packages in npm and PyPI. In PyPI the name mcpx was already taken.
const Distribution = "mcpx-gateway"

// isSelf reports whether the server is mcpx itself, which would then start or call itself endlessly. A server with a URL is mcpx
// only if its host is this machine and its name is the reserved one. A local server is mcpx only if its command runs mcpx with the
// subcommand serve, or without a subcommand.
func (r *serverReader) isSelf() bool {
	if u, err := url.Parse(r.s.URL); err == nil && strings.EqualFold(r.s.Name, Reserved) {
		if slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) {
			return true
		}
	}
	command, args := r.s.Command, slices.Concat(r.commandArgs, r.s.Args)
	if words := r.commandWords(); words != nil {
		command, args = words[0], slices.Concat(words[1:], args)
	}
	if program(command) == "cmd" && len(args) > 1 && strings.EqualFold(args[0], "/c") { // how Windows runs npx
		command, args = args[1], args[2:]
	}
	args, own := afterPackage(command, args)
	return (own || r.isOwn(command)) && (len(args) == 0 || args[0] == "serve" || strings.HasPrefix(args[0], "-"))
}

// isOwn reports whether a program is mcpx: by its name, or because its path leads to the executable of the mcpx that runs here.
func (r *serverReader) isOwn(command string) bool {
	if command == "" {
		return false
	}
	name := program(command)
	if name == Reserved || r.l.o.Executable != "" && name == program(r.l.o.Executable) {
		return true
	}
	if r.l.o.Executable == "" || !strings.ContainsAny(command, `/\`) {
		return false
	}
	own, err := os.Stat(r.l.o.Executable)
	if err != nil {
		return false
	}
	other, err := os.Stat(command)
	return err == nil && os.SameFile(own, other)
}

var (
	// launchers are programs that run the command of a package. verbs are the words that may stand between such a program and the
	// name of the package. A word after a flag may be the value of the flag, but the flags in alone have no value.
	launchers = []string{"npx", "npm", "pnpx", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx"}
	verbs     = []string{"exec", "x", "dlx", "tool", "run"}
	alone     = []string{"-y", "--yes", "-q", "--quiet"}
	// ownPackage matches the word with which a launcher names the package of mcpx (see Distribution). The word may have a version
	// after the name, and a flag with '=' before it.
	ownPackage = pattern.New(`^(--?[a-z]+=)?mcpx-gateway([@=<>~![].*)?$`)
)

// afterPackage is for a command that may be one of the launchers. If a launcher runs the package of mcpx, afterPackage returns the
// arguments for mcpx, and own is true. Otherwise it returns args, and own is false.
func afterPackage(command string, args []string) (rest []string, own bool) {
	if !slices.Contains(launchers, program(command)) {
		return args, false
	}
	i, before := 0, "" // the word before args[i]
	for ; i < len(args) && !ownPackage.MatchString(args[i]); i++ {
		isValue := strings.HasPrefix(before, "-") && !slices.Contains(alone, before) // such as the 3.12 of --python 3.12
		if before = args[i]; !strings.HasPrefix(before, "-") && !slices.Contains(verbs, before) && !isValue {
			return args, false // another package
		}
	}
	if i == len(args) {
		return args, false
	}
	rest = args[i+1:]
	for len(rest) > 0 && (rest[0] == "--" || slices.Contains(alone, rest[0])) {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0] == Reserved { // the name of the command in the package
		rest = rest[1:]
	}
	return rest, true
}

// program returns the name of the executable in a path, in lower case and without .exe or .cmd. The path may be from any system.
func program(path string) string {
	name := strings.ToLower(filepath.Base(strings.ReplaceAll(path, `\`, "/")))
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
}
