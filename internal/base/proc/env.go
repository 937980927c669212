package proc

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// envNames are variables that a child inherits. They decide what the child runs, with which rights, or where it finds the user's
// files. [Decisive] returns those that are set, without PATH. Variables that often contain a secret are not in the list: tokens,
// package indexes with a password, agent sockets.
var envNames = strings.Fields(`
	PATH HOME SHELL TZ
	HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
	http_proxy https_proxy ftp_proxy all_proxy no_proxy
	SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
	GIT_SSL_CAINFO NIX_SSL_CERT_FILE
	DISPLAY WAYLAND_DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS
	XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
	LD_LIBRARY_PATH NIX_LD NIX_LD_LIBRARY_PATH NIX_PATH NIX_PROFILES
	NODE_PATH NODE_USE_SYSTEM_CA NODE_USE_ENV_PROXY
	NVM_DIR FNM_DIR VOLTA_HOME N_PREFIX
	ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR MISE_CONFIG_DIR MISE_CACHE_DIR MISE_STATE_DIR
	npm_config_cache npm_config_prefix npm_config_registry npm_config_userconfig
	NPM_CONFIG_CACHE NPM_CONFIG_PREFIX NPM_CONFIG_REGISTRY NPM_CONFIG_USERCONFIG
	PNPM_HOME COREPACK_HOME YARN_CACHE_FOLDER BUN_INSTALL DENO_DIR DENO_INSTALL
	PLAYWRIGHT_BROWSERS_PATH PUPPETEER_CACHE_DIR PUPPETEER_EXECUTABLE_PATH
	UV_CACHE_DIR UV_TOOL_DIR UV_TOOL_BIN_DIR UV_PYTHON UV_PYTHON_INSTALL_DIR
	UV_PYTHON_PREFERENCE UV_CONFIG_FILE UV_NATIVE_TLS UV_SYSTEM_CERTS UV_OFFLINE UV_LINK_MODE
	PYTHONPATH PYTHONHOME PYENV_ROOT PYENV_VERSION VIRTUAL_ENV CONDA_PREFIX CONDA_EXE PIPX_HOME PIPX_BIN_DIR
	PIP_CACHE_DIR PIP_CONFIG_FILE PIP_CERT
	JAVA_HOME GOPATH GOROOT GOCACHE GOMODCACHE CARGO_HOME RUSTUP_HOME GEM_HOME GEM_PATH
	DOTNET_ROOT DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_CERT_PATH DOCKER_TLS_VERIFY
	CONTAINER_HOST
	SystemRoot SystemDrive windir ComSpec PATHEXT USERPROFILE
	HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA ALLUSERSPROFILE PROGRAMDATA PUBLIC
	ProgramFiles ProgramFiles(x86) ProgramW6432
	CommonProgramFiles CommonProgramFiles(x86) CommonProgramW6432
	PSModulePath
`)

// plainNames are further variables that a child inherits. They are about languages, terminals, temporary files and the machine, or follow
// from PATH. Some of them differ from one terminal to the next, so they are not in envNames.
var plainNames = strings.Fields(`
	USER LOGNAME LANG LANGUAGE TERM TMPDIR TEMP TMP
	NVM_BIN NVM_INC FNM_MULTISHELL_PATH
	PYTHONUTF8 PYTHONIOENCODING PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
	OS USERNAME USERDOMAIN COMPUTERNAME NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE PROCESSOR_ARCHITEW6432
	PROCESSOR_IDENTIFIER
`)

// plainPrefixes are prefixes of further variables like those in plainNames.
var plainPrefixes = []string{"LC_", "XDG_"}

// Environment returns the environment of a child, sorted: the variables of parent (KEY=VALUE, such as os.Environ) that programs
// need to work, plus extra, which takes precedence. All other variables of parent are left out, because they may be secrets; a
// server that needs a secret gets it in extra.
func Environment(parent []string, extra map[string]string) []string {
	wanted := keysOf(slices.Concat(envNames, plainNames))
	// The keys are normalized by envKey: on Windows Path and PATH are the same variable.
	env := make(map[string]string)
	for _, entry := range parent {
		name, val, ok := cutEnv(entry)
		// Old shells export functions as variables whose values begin with "()".
		if ok && !strings.HasPrefix(val, "()") && (wanted[envKey(name)] || hasPrefix(name)) {
			env[envKey(name)] = entry
		}
	}
	for name, val := range extra {
		env[envKey(name)] = name + "=" + val
	}
	return slices.Sorted(maps.Values(env))
}

// Decisive returns a part of an environment, sorted: the entries that decide what a child runs, with which rights, or where it
// finds the user's files. PATH is left out: it decides only which programs are found, and callers compare these programs
// themselves.
func Decisive(env []string) []string {
	wanted := keysOf(envNames)
	delete(wanted, envKey("PATH"))
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, ok := cutEnv(entry)
		return !ok || !wanted[envKey(name)]
	})
	slices.Sort(env)
	return env
}

// keysOf returns the set of these names, normalized by envKey.
func keysOf(names []string) map[string]bool {
	keys := make(map[string]bool, len(names))
	for _, name := range names {
		keys[envKey(name)] = true
	}
	return keys
}

func hasPrefix(name string) bool {
	return slices.ContainsFunc(plainPrefixes, func(p string) bool {
		return strings.HasPrefix(envKey(name), p)
	})
}

// envKey normalizes the name of a variable: two names with the same result mean the same variable.
func envKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// cutEnv splits KEY=VALUE. Windows has hidden variables whose names begin with "=".
func cutEnv(entry string) (name, val string, ok bool) {
	if entry == "" {
		return "", "", false
	}
	name, val, ok = strings.Cut(entry[1:], "=")
	return entry[:1] + name, val, ok
}

// Value returns the value of a variable in env. If the variable occurs several times, the last one is used.
func Value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if n, val, ok := cutEnv(entry); ok && envKey(n) == envKey(name) {
			return val
		}
	}
	return ""
}

// without returns a copy of env that lacks the variable name.
func without(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		n, _, ok := cutEnv(entry)
		return ok && envKey(n) == envKey(name)
	})
}
