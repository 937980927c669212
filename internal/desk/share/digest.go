package share

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
)

// Session is what counts of one session of a client when it is decided whether it shares a server with others: the
// environment and the working folder of the process that the client started. Safe for concurrent use.
type Session struct {
	environ []string
	folder  string

	once     sync.Once
	programs []string // see programsIn, for the PATH of environ
}

// NewSession returns the Session for an environment (KEY=VALUE) and an absolute folder.
func NewSession(environ []string, folder string) *Session {
	return &Session{environ: environ, folder: folder}
}

// programs are the interpreters and package managers, and some programs that many servers start. Servers find them in
// their PATH. Two sessions share a server if these are the same files for both. Otherwise their PATHs may differ: clients
// and terminals add folders of their own.
var programs = strings.Fields(`
	node npm npx corepack pnpm yarn bun bunx deno python python3 uv uvx pip pipx conda ruby java dotnet go
	docker podman git
`)

// Folder returns the folder in which a server starts for this session: its cwd, else the home folder if all sessions share
// it, else the folder of the session.
func (s *Session) Folder(server *config.Server, share conf.Share) string {
	switch {
	case filepath.IsAbs(server.Cwd):
		return server.Cwd
	case server.Cwd == "" && share == conf.ShareUser:
		name := "HOME"
		if runtime.GOOS == "windows" {
			name = "USERPROFILE"
		}
		if home := proc.Value(s.env(server), name); filepath.IsAbs(home) {
			return home
		}
	}
	return filepath.Join(s.folder, server.Cwd)
}

// env returns the environment with which the server starts for this session.
func (s *Session) env(server *config.Server) []string { return proc.Environment(s.environ, server.Env) }

// Digest returns a digest of how a server starts for this session. Sessions with the same digest may share it, if share is
// folder or user. Everything counts that the config says of its start or its address, with references expanded, and of a
// local server the file that its command is, the folder, and the part of the environment that changes what runs or with
// whose rights ([proc.Decisive], and programs). It looks at the disk, and starts nothing. The digest contains secrets only
// as a part of what SHA-256 was applied to.
func (s *Session) Digest(server *config.Server, share conf.Share) string {
	parts := []any{share, server.Type, fieldsOf(server.Launch), fieldsOf(server.Remote)}
	if share == conf.ShareFolder {
		parts = append(parts, s.folder)
	}
	if server.Type == config.Stdio {
		env, folder := s.env(server), s.Folder(server, share)
		file, err := proc.Lookup(proc.Spec{Command: server.Command, Env: env, Dir: folder})
		if err != nil {
			file = proc.Value(env, "PATH") // each PATH gets its own error
		}
		parts = append(parts, linkless(file), folder, proc.Decisive(env), s.programsOf(server, env))
	}
	text, _ := json.Marshal(parts) // cannot fail: only strings, numbers, lists and maps
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fieldsOf returns the fields of a struct, also those that JSON would leave out.
func fieldsOf(of any) (fields []any) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		fields = append(fields, v.Type().Field(i).Name, v.Field(i).Interface())
	}
	return fields
}

// programsOf returns the files that programs are for a server. Few servers have a PATH of their own.
func (s *Session) programsOf(server *config.Server, env []string) []string {
	path := proc.Value(env, "PATH")
	if path != proc.Value(proc.Environment(s.environ, nil), "PATH") {
		return programsIn(path)
	}
	s.once.Do(func() { s.programs = programsIn(path) })
	return s.programs
}

func programsIn(path string) []string {
	files := make([]string, len(programs))
	for i, name := range programs {
		if file, err := proc.Lookup(proc.Spec{Command: name, Env: []string{"PATH=" + path}}); err == nil {
			files[i] = linkless(file)
		}
	}
	return files
}

// linkless returns the path of a file with the links in its folders resolved: some version managers give each terminal a
// link of its own to the same programs. The last part stays, as a program may go by its own name, or by the folder in which
// a link to it is: the python of a virtual environment is a link to that of the system.
func linkless(file string) string {
	if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		return filepath.Join(folder, filepath.Base(file))
	}
	return file
}
