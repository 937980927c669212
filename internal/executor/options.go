package executor

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"mcpx/internal/jq"
	"mcpx/internal/policy"
)

// DefaultVerbatim are the tools whose results are files: they stay as they
// are, since what is read will be edited (design 7).
var DefaultVerbatim = []string{"read_*file*", "*file_content*", "*_show"}

// ServerOptions are what the configuration says about calls to one server.
type ServerOptions struct {
	// Unchecked leaves out the validation of arguments (validate: off).
	Unchecked bool
	// Verbatim are globs of tools whose results stay as they are; nil =
	// [DefaultVerbatim].
	Verbatim []string
	// CallTimeout bounds one call, ToolTimeouts do so for single tools, the first
	// that matches counts; 0 = the upstream's.
	CallTimeout  time.Duration
	ToolTimeouts []ToolTimeout
	// IdleTimeout ends a call without progress; 0 = none.
	IdleTimeout time.Duration
}

// ToolTimeout bounds the calls of the tools whose names match.
type ToolTimeout struct {
	Glob    string
	Timeout time.Duration
}

// Options are what an executor needs beside the registry. All may be zero.
type Options struct {
	// Servers has the options of single servers, by name.
	Servers map[string]ServerOptions
	// ExecWait bounds the wait for a server that is connecting; 0 = 20 s.
	ExecWait time.Duration
	// TOON allows tables to become TOON; without it JSON is minified only.
	TOON bool
	// ResultTokens is the longest text of a result; the rest is kept and read by
	// handle. 0 = no limit.
	ResultTokens int
	// Filter runs the filters of select.
	Filter *jq.Runner
	// TypeScript writes the interface of a tool for VALIDATION_ERROR; without
	// it the JSON Schema is shown.
	TypeScript bool
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// settings are options with what they say about single tools, looked up once.
type settings struct {
	Options

	mu    sync.RWMutex
	tools map[toolName]toolSettings // of tools that exist
}

type toolName struct{ server, tool string }

// toolSettings are the options of one tool.
type toolSettings struct {
	verbatim, unchecked bool
	timeout, idle       time.Duration // 0 = the upstream's, none
}

// tool returns the settings of a tool that exists.
func (s *settings) tool(server, tool string) toolSettings {
	name := toolName{server, tool}
	s.mu.RLock()
	found, ok := s.tools[name]
	s.mu.RUnlock()
	if ok {
		return found
	}
	o := s.Servers[server]
	globs := o.Verbatim
	if globs == nil {
		globs = DefaultVerbatim
	}
	found = toolSettings{
		verbatim: policy.Match(globs, tool), unchecked: o.Unchecked, timeout: o.CallTimeout, idle: o.IdleTimeout,
	}
	for _, one := range o.ToolTimeouts {
		if policy.Match([]string{one.Glob}, tool) {
			found.timeout = one.Timeout
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil || len(s.tools) >= maxToolSettings {
		s.tools = make(map[toolName]toolSettings)
	}
	s.tools[name] = found
	return found
}

// maxToolSettings bounds what is kept: a server may change its tools all the time.
const maxToolSettings = 20_000

// editedFiles are the endings of files that people edit as JSON, or as Python
// literals, each with the quote that ends the string.
var editedFiles = [][]byte{
	[]byte(`.py"`), []byte(`.json"`), []byte(`.jsonc"`), []byte(`.ipynb"`), []byte(`.geojson"`), []byte(`.lock"`),
}

// namesEditedFile reports whether any string among the arguments ends like the
// name of such a file.
func namesEditedFile(arguments json.RawMessage) bool {
	for _, ending := range editedFiles {
		if bytes.Contains(arguments, ending) {
			return true
		}
	}
	return false
}
