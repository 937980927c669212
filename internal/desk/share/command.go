package share

import (
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
)

// commandLine is a command that runs a package.
type commandLine struct {
	// name is the package in the form of row.names: npm:NAME, pypi:NAME, image:NAME, or bin:NAME if only the name of the
	// program is known.
	name string
	// others has the other arguments. Of an option whose value is the next argument, it has only the value.
	others []string
}

// title returns the name of the package for the user.
func (c *commandLine) title() string {
	_, name, _ := strings.Cut(c.name, ":")
	return name
}

// launcher is a program that runs a package, or an interpreter that runs a script or module.
type launcher struct {
	kind string // how the names of its packages begin in row.names, such as "npm:"; empty for an interpreter
	// verbs are the words that must come first, such as "run"; often there are none.
	verbs []string
	// flags are options without a value. valued are options with a value: the next argument, or what follows a "=". naming are
	// options whose value is the package. A command with any other option before the package is not recognised, because it may
	// run something else.
	flags, valued, naming []string
}

var (
	npm = launcher{
		kind:   "npm:",
		flags:  strings.Fields("-y --yes -q --quiet -s --silent --no --no-install --ignore-existing --prefer-offline --prefer-online --offline --verbose -d"),
		valued: strings.Fields("--registry --cache --userconfig --loglevel"),
		naming: strings.Fields("-p --package"),
	}
	uv = launcher{
		kind: "pypi:",
		flags: strings.Fields(`-q --quiet -v --verbose --isolated --offline -n --no-cache --native-tls --system-certs --refresh --reinstall
			-U --upgrade --no-config --no-progress --managed-python --no-managed-python --no-python-downloads --no-env-file
			--frozen --locked --no-sync --no-project --no-dev --active --exact`),
		valued: strings.Fields(`--python -p --with -w --with-requirements --index --index-url -i --default-index --extra-index-url -f --find-links
			--index-strategy --keyring-provider --cache-dir --config-file --env-file --allow-insecure-host --refresh-package
			-P --upgrade-package --prerelease --resolution --link-mode --exclude-newer -c --constraints --overrides
			--directory --project --package --extra --group`),
		naming: strings.Fields("--from"),
	}
	container = launcher{
		kind: "image:", verbs: []string{"run"},
		flags: strings.Fields("-i -t -it -ti --interactive --tty --rm --init --read-only --privileged -q --quiet --no-healthcheck"),
		valued: strings.Fields(`-e --env --env-file -v --volume --mount --tmpfs --name -h --hostname --network --net -p --publish --add-host --dns
			-u --user -w --workdir -l --label --pull --platform -m --memory --memory-swap --cpus --pids-limit --shm-size
			--ulimit --cap-add --cap-drop --security-opt --group-add --device --gpus --ipc --log-driver --log-opt --restart --stop-timeout`),
	}
	python = launcher{kind: "", flags: strings.Fields("-u -B -E -I -s -S -O -OO -q -d"), valued: strings.Fields("-X -W")}
	node   = launcher{
		flags:  strings.Fields("--enable-source-maps --no-warnings --no-deprecation --use-system-ca --use-openssl-ca --use-env-proxy --trace-warnings"),
		valued: strings.Fields("--max-old-space-size"),
	}
)

// launchers are the programs that run packages, by their names without folder and extension. In a name of two words, the second
// word is the first argument.
var launchers = map[string]launcher{
	"npx": npm, "pnpx": npm, "bunx": npm.with("--bun", "-b"), "npm exec": npm, "npm x": npm, "pnpm dlx": npm, "yarn dlx": npm,
	"bun x": npm.with("--bun", "-b"),
	"uvx":   uv, "uv tool": uv.after("run"),
	"pipx": {
		kind: "pypi:", verbs: []string{"run"},
		flags:  strings.Fields("-q --quiet -v --verbose --no-cache --fetch-missing-python"),
		valued: strings.Fields("--python --pip-args -i --index-url --backend"), naming: []string{"--spec"},
	},
	"docker": container, "podman": container, "nerdctl": container,
	"deno": {kind: "npm:", verbs: []string{"run"}, flags: strings.Fields("-A --allow-all --allow-net --allow-env --allow-read --allow-write --allow-sys --allow-run -q --quiet --no-prompt")},
}

func (l launcher) with(flags ...string) launcher {
	l.flags = append(slices.Clone(l.flags), flags...)
	return l
}

func (l launcher) after(verb string) launcher {
	l.verbs = []string{verb}
	return l
}

// packageOf returns which package a command runs. It understands common launchers and wrappers. The second result is false if
// packageOf does not understand the arguments of a launcher or wrapper, because such arguments may change which package is run.
func packageOf(command string, args []string) (commandLine, bool) {
	name := programName(command)
	if line, ok, known := wrapped(name, args); known {
		return line, ok
	}
	if len(args) > 0 {
		if l, ok := launchers[name+" "+args[0]]; ok {
			return l.read(args[1:], nil)
		}
	}
	if l, ok := launchers[name]; ok {
		return l.read(args, nil)
	}
	switch {
	case name == "uv":
		return uvRun(args)
	case isPython(name):
		return pythonRun(args)
	case name == "node" || name == "bun":
		return nodeRun(args)
	case strings.Contains(strings.ReplaceAll(command, `\`, "/"), "/node_modules/"):
		return inNodeModules(command, args)
	}
	return commandLine{"bin:" + name, args}, name != ""
}

// wrapped reads the command that a wrapper starts. A wrapper is a program that only starts another command. known is false if
// the program is no wrapper. ok is false if mcpx does not know what the wrapper's command runs.
func wrapped(name string, args []string) (line commandLine, ok, known bool) {
	var set []string
	switch name {
	case "cmd":
		for len(args) > 0 && strings.HasPrefix(args[0], "/") {
			args = args[1:]
		}
		if len(args) == 1 {
			args = strings.Fields(args[0])
		}
	case "env":
		for len(args) > 0 && (strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "-") || args[0] == "-i") {
			set, args = append(set, args[0]), args[1:]
		}
	case "sh", "bash", "zsh", "dash":
		if len(args) != 2 || !slices.Contains([]string{"-c", "-lc", "-ic"}, args[0]) || !plainScript.MatchString(args[1]) {
			return line, false, true
		}
		if args = strings.Fields(args[1]); len(args) > 0 && args[0] == "exec" {
			args = args[1:]
		}
	default:
		return line, false, false
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return line, false, true
	}
	line, ok = packageOf(args[0], args[1:])
	line.others = append(set, line.others...)
	return line, ok, true
}

// plainScript matches a shell script that is a single command, without special characters of the shell.
var plainScript = pattern.New(`^[A-Za-z0-9@/._:=,+ -]+$`)

// read returns which package a launcher runs. The parameter args has the arguments that are not read yet. The parameter others
// has the options that were already read: for "uv OPTIONS tool run PACKAGE", the options before "tool"; for all other commands,
// none.
func (l launcher) read(args, others []string) (commandLine, bool) {
	words, options, ok := l.words(args, len(l.verbs)+1)
	if !ok || !slices.Equal(words[:len(l.verbs)], l.verbs) {
		return commandLine{}, false
	}
	others = append(others, options.rest...)
	word := words[len(l.verbs)]
	if options.named != "" {
		others, word = append(others, word), options.named
	}
	name := nameOf(l.kind, word)
	return commandLine{l.kind + name, append(others, options.after...)}, name != ""
}

// options has what [launcher.words] reads besides the words.
type options struct {
	named string   // the package that an option of [launcher.naming] names; "" without such an option
	rest  []string // options without a value, and the values of all options except those of [launcher.naming]
	after []string // the arguments after the last word
}

// words returns the first n arguments that are not options. The result ok is false if there are fewer such arguments, if there
// is an option before them that the launcher does not know, or if options name several packages.
func (l launcher) words(args []string, n int) (words []string, o options, ok bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		flag, value, joined := strings.Cut(arg, "=")
		switch {
		case arg == "--":
		case !strings.HasPrefix(arg, "-"):
			if words = append(words, arg); len(words) == n {
				o.after = args[i+1:]
				return words, o, true
			}
		case slices.Contains(l.naming, flag):
			if !joined {
				if i++; i == len(args) {
					return nil, o, false
				}
				value = args[i]
			}
			if o.named != "" {
				return nil, o, false // several packages, and it is unclear whose program runs
			}
			o.named = value
		case joined && slices.Contains(l.valued, flag), slices.Contains(l.flags, flag):
			o.rest = append(o.rest, arg)
		case slices.Contains(l.valued, flag) && i+1 < len(args):
			i++
			o.rest = append(o.rest, args[i])
		default:
			return nil, o, false
		}
	}
	return nil, o, false
}

// uvRun reads "uv run COMMAND" and "uv tool run PACKAGE", with options before each word.
func uvRun(args []string) (commandLine, bool) {
	words, options, ok := uv.words(args, 1)
	switch {
	case !ok || options.named != "":
		return commandLine{}, false
	case words[0] == "tool":
		return uv.after("run").read(options.after, options.rest)
	case words[0] != "run":
		return commandLine{}, false
	}
	with := uv
	with.naming = nil
	words, inner, ok := with.words(options.after, 1)
	if !ok {
		return commandLine{}, false
	}
	line, ok := packageOf(words[0], inner.after)
	line.others = slices.Concat(options.rest, inner.rest, line.others)
	return line, ok
}

func isPython(name string) bool {
	return name == "py" || strings.Trim(strings.TrimPrefix(name, "python"), "0123456789.") == "" && strings.HasPrefix(name, "python")
}

// pythonRun reads "python -m MODULE". The module is found like a package, because its name is mostly that of the package with
// underscores.
func pythonRun(args []string) (commandLine, bool) {
	i := slices.Index(args, "-m")
	if i < 0 || i+1 == len(args) {
		return commandLine{}, false
	}
	if words, _, ok := python.words(append(slices.Clone(args[:i]), "end"), 1); !ok || words[0] != "end" {
		return commandLine{}, false
	}
	name := nameOf("pypi:", args[i+1])
	return commandLine{"pypi:" + name, args[i+2:]}, name != ""
}

// nodeRun reads "node SCRIPT" and "bun SCRIPT", if the script lies in a folder node_modules.
func nodeRun(args []string) (commandLine, bool) {
	words, options, ok := node.words(args, 1)
	if !ok {
		return commandLine{}, false
	}
	return inNodeModules(words[0], append(options.rest, options.after...))
}

// inNodeModules returns the package whose folder in node_modules contains path, or the name of the program if path is in
// node_modules/.bin. It returns false if path is not in node_modules. A relative path is added to others, because it depends on
// the working folder.
func inNodeModules(path string, others []string) (commandLine, bool) {
	const folder = "node_modules/"
	slashed := strings.ReplaceAll(path, `\`, "/")
	at := strings.LastIndex(slashed, folder)
	if at < 0 || at > 0 && slashed[at-1] != '/' {
		return commandLine{}, false
	}
	if isRelative(path) {
		others = append(slices.Clone(others), path)
	}
	parts := strings.Split(slashed[at+len(folder):], "/")
	switch {
	case parts[0] == ".bin" && len(parts) == 2:
		return commandLine{"bin:" + programName(parts[1]), others}, true
	case strings.HasPrefix(parts[0], "@") && len(parts) > 2:
		return commandLine{"npm:" + parts[0] + "/" + parts[1], others}, true
	case !strings.HasPrefix(parts[0], "@") && len(parts) > 1:
		return commandLine{"npm:" + parts[0], others}, true
	}
	return commandLine{}, false
}

// programName returns the name of a program in lower case, without folder and without an extension that programs have on
// Windows. The path may be from any system.
func programName(path string) string {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	for _, extension := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, extension)
	}
	return name
}

// nameOf returns the name of a package without its version, in the form of row.names but without the prefix, such as "npm:". For
// npm and PyPI it returns "" if the parameter word is no valid name, because it is an address, a path or an alias, for example.
func nameOf(kind, word string) string {
	switch kind {
	case "npm:":
		word = strings.TrimPrefix(word, "npm:")
		if at := strings.LastIndexByte(word, '@'); at > 0 {
			if strings.ContainsAny(word[at:], ":/") {
				return ""
			}
			word = word[:at]
		}
		if !npmName.MatchString(word) {
			return ""
		}
		return word
	case "pypi:":
		if i := strings.IndexAny(word, "@=<>!~[; "); i >= 0 {
			if strings.ContainsAny(word[i:], ":/") {
				return ""
			}
			word = word[:i]
		}
		if !pypiName.MatchString(word) {
			return ""
		}
		return strings.Join(strings.FieldsFunc(strings.ToLower(word), func(r rune) bool { return strings.ContainsRune("-_.", r) }), "-")
	}
	word, _, _ = strings.Cut(word, "@")
	if colon := strings.LastIndexByte(word, ':'); colon > strings.LastIndexByte(word, '/') {
		word = word[:colon]
	}
	return strings.TrimPrefix(strings.TrimPrefix(word, "docker.io/"), "index.docker.io/")
}

var (
	npmName  = pattern.New(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$`)
	pypiName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)
