// Package attach lets the commands of a user share one process: the daemon. A command finds it, starts it if there is none, hands
// its streams over and lives as long as its session in the daemon.
//
// # Which daemon
//
// There is one daemon for each combination of a config file, a build of mcpx, and the environment variables that mcpx itself reads
// (see Place). Anything else that a session brings along, such as its folder and its other variables, stays with the session.
// Clients start mcpx with fewer variables than shells do, so a variable with its usual value is treated like a missing one.
//
// # What is decided when
//
// Until the daemon has welcomed a command, the command may give up and do the work by itself, because the daemon has nothing of the
// session yet. After the welcome, the command sends what it wants, and its streams. From then on it does not use the streams, and
// waits for the end of its session or of the daemon.
//
// # One daemon
//
// The daemon holds the lock of a file as long as it lives. The process that starts the daemon locks the file, and the daemon
// inherits the lock. So a process that gets the lock knows that no daemon runs, and may remove the socket that a killed daemon has
// left.
package attach

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/control"
)

// Role is the name of the daemon's role. mcpx starts its own executable in a role, which says what the new process does.
const Role = "daemon"

// Place identifies a daemon. It is the common beginning of the paths of the daemon's files; only their endings differ. The last
// part of the path has three digests: of the config file, of the build of mcpx, and of the environment variables that mcpx reads.
type Place string

// These are the lengths of the three digests in a place, in hexadecimal digits. The digests of the build and of the environment may
// be short, because a user has few daemons. Equal digests of two environments would do little harm: a session would use the proxies or
// certificates of another session.
const (
	configDigits = 12
	buildDigits  = 6
	ownDigits    = 6
)

func (p Place) socket() string { return string(p) + ".daemon" }
func (p Place) lock() string   { return string(p) + ".lock" }

// Log returns the path of the daemon's own log file.
func (p Place) Log() string { return string(p) + ".log" }

// ErrNone means that no daemon runs, and that Dial should not start one.
var ErrNone = errors.New("no daemon runs")

// longestSocket is the longest path of a socket that works on all systems, in bytes.
const longestSocket = 103

// PlaceOf returns the place of the daemon for a config file and for the environment variables in environ (KEY=VALUE). If the file
// has several names, such as links, all lead to the same place.
func PlaceOf(file string, environ []string) (Place, error) {
	build, err := buildID()
	if err != nil {
		return "", err
	}
	folder, err := folder()
	if err != nil {
		return "", err
	}
	name := digestOf(config.Real(file))[:configDigits] + digestOf(build)[:buildDigits] + digestOf(ownEnviron(environ)...)[:ownDigits]
	place := Place(filepath.Join(folder, name))
	if n := len(place.socket()); n > longestSocket {
		return "", fmt.Errorf("the path of its socket would be too long, %d bytes: %s", n, place.socket())
	}
	return place, nil
}

func digestOf(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(digest, "%d %s", len(part), part)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// usualRuntime returns the usual value of $XDG_RUNTIME_DIR on Linux. mcpx uses it if the variable is missing: clients made with the
// MCP SDKs pass on only six variables to mcpx.
func usualRuntime() string { return "/run/user/" + strconv.Itoa(os.Getuid()) }

// folder returns the folder for the files of daemons, which only this user can enter. Usually it is in $XDG_RUNTIME_DIR, or in the
// usual place of that folder. If there is no such folder, or if it belongs to another user or is not writable, folder uses the
// user's cache folder instead. In containers $XDG_RUNTIME_DIR often does not exist; under sudo and su it may belong to another
// user.
func folder() (string, error) {
	if above := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), usualRuntime()); filepath.IsAbs(above) && control.Own(above) {
		folder := filepath.Join(above, "mcpx")
		err := control.Claim(folder)
		if _, unusable := errors.AsType[*fs.PathError](err); !unusable {
			return folder, err
		}
	}
	above, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(above, 0o700); err != nil {
		return "", err
	}
	folder := filepath.Join(above, "mcpx")
	return folder, control.Claim(folder)
}

// ownVariables are the environment variables that mcpx itself reads: they say where mcpx has files, how it reaches the network, and
// how the Go runtime works. Sessions that differ in one of them have different daemons.
var ownVariables = strings.Fields(`
	HOME USERPROFILE XDG_CONFIG_HOME XDG_CACHE_HOME
	HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy
	SSL_CERT_FILE SSL_CERT_DIR DBUS_SESSION_BUS_ADDRESS MCPX_KEYRING RES_OPTIONS LOCALDOMAIN
	GOGC GOMEMLIMIT GOMAXPROCS GODEBUG GORACE GOTRACEBACK GOCOVERDIR
`)

// ownPrefixes extends ownVariables: mcpx itself also reads all environment variables whose names begin with one of these prefixes.
var ownPrefixes = []string{"OTEL_"}

// starterVariables are variables that the daemon takes over from the command that starts it. They are not among ownVariables, because
// clients often leave them out. TMPDIR and TZ change only the folder for temporary files and the time zone of the log, so sessions
// that differ in these two share the daemon. XDG_RUNTIME_DIR decides where the daemon's files are (see folder).
var starterVariables = []string{"XDG_RUNTIME_DIR", "TMPDIR", "TZ"}

// Own returns the names of those variables of environ that mcpx itself reads, sorted, without those that have their usual value.
func Own(environ []string) (names []string) {
	for _, pair := range ownEnviron(environ) {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}

// ownEnviron returns the variables that mcpx itself reads, sorted, without those that have their usual value.
func ownEnviron(environ []string) (list []string) {
	usual := []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + usualRuntime() + "/bus"}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		prefixed := slices.ContainsFunc(ownPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if (prefixed || slices.Contains(ownVariables, name)) && !slices.Contains(usual, pair) {
			list = append(list, pair)
		}
	}
	slices.Sort(list)
	return list
}

// headBytes is how many bytes at the start of the executable identify a build, together with the size of the executable: linkers
// write the build's id there.
const headBytes = 32 << 10

// buildID returns a text that identifies the build of this executable.
func buildID() (string, error) {
	path, err := proc.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	if _, err := io.CopyN(digest, f, headBytes); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return fmt.Sprintf("%d %x", info.Size(), digest.Sum(nil)), nil
}
