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

// Session has the environment and the working folder of the process that a client started. They decide which servers the
// session can share with other sessions. A Session is safe for concurrent use.
type Session struct {
	environ []string
	folder  string

	once     sync.Once
	programs []string // the result of programsIn for the PATH of environ
}

// NewSession returns the Session for an environment (KEY=VALUE) and an absolute folder.
func NewSession(environ []string, folder string) *Session {
	return &Session{environ: environ, folder: folder}
}

// programs are interpreters, package managers and other programs that many servers start and find in their PATH. Two sessions
// share a local server only if these programs are the same files in the PATHs of both. Apart from that, the PATHs may differ,
// because clients and terminals add folders of their own.
var programs = strings.Fields(`
	node npm npx corepack pnpm yarn bun bunx deno python python3 uv uvx pip pipx conda ruby java dotnet go
	docker podman git
`)

// Folder returns the folder in which a server starts for this session. If the config sets cwd, Folder returns it; a relative cwd is
// below the folder of the session. Without cwd, a server that all sessions share starts in the home folder, if that is known. Any
// other server starts in the folder of the session.
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

// Digest returns a digest of how a server starts for this session. Sessions with the same digest may share the server, if share is
// folder or user. The digest covers all that the config says about the server's start or address, with references expanded. For a
// local server it also covers the file of the command, the folder, the environment variables that decide what runs and with which
// rights (see [proc.Decisive]), and the files of the list programs. Digest looks at the disk and starts nothing. Nobody can read a
// secret from the digest, because it is a SHA-256.
func (s *Session) Digest(server *config.Server, share conf.Share) string {
	parts := []any{share, server.Type, fieldsOf(server.Launch), fieldsOf(server.Remote)}
	if share == conf.ShareFolder {
		parts = append(parts, s.folder)
	}
	if server.Type == config.Stdio {
		env, folder := s.env(server), s.Folder(server, share)
		file, err := proc.Lookup(proc.Spec{Command: server.Command, Env: env, Dir: folder})
		if err != nil {
			file = proc.Value(env, "PATH") // the command is not found: the error depends on the PATH, so the digest does, too
		}
		parts = append(parts, linkless(file), folder, proc.Decisive(env), s.programsOf(env))
	}
	text, _ := json.Marshal(parts) // cannot fail: only strings, numbers, lists and maps
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fieldsOf returns the names and values of the fields of the struct value, including fields that JSON would leave out.
func fieldsOf(value any) (fields []any) {
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		fields = append(fields, v.Type().Field(i).Name, v.Field(i).Interface())
	}
	return fields
}

// programsOf returns the files that a server finds in its PATH for the names in the list programs. Most servers have the PATH
// of the session, so the files for that PATH are looked up only once.
func (s *Session) programsOf(env []string) []string {
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

// linkless returns the path of a file with the links in its folders resolved: some version managers give each terminal a link
// of its own to the same programs. The last part of the path stays a link, because a program may depend on its own name or on
// its folder: the python of a virtual environment is a link to the system's python.
func linkless(file string) string {
	if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		return filepath.Join(folder, filepath.Base(file))
	}
	return file
}
