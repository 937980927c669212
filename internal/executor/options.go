package executor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/jq"
	"mcpx/internal/policy"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// defaultVerbatim are globs of tools that read files. Their results stay unchanged,
// since the model may edit the file (design 7).
var defaultVerbatim = []string{"read_*file*", "*file_content*", "*_show"}

// ServerOptions are the settings of calls to one server.
type ServerOptions struct {
	// Unchecked turns off the validation of arguments (validate: off).
	Unchecked bool
	// Verbatim are globs of tools whose results stay unchanged; nil =
	// defaultVerbatim.
	Verbatim []string
	// CallTimeout bounds one call. For single tools the first match in ToolTimeouts
	// overrides it. 0 = the upstream's.
	CallTimeout  time.Duration
	ToolTimeouts []ToolTimeout
	// IdleTimeout ends a call without progress; 0 = none.
	IdleTimeout time.Duration
}

// ToolTimeout bounds the calls of the tools whose names match.
type ToolTimeout = conf.ToolTimeout

// Options are the settings of an executor. All may be zero.
type Options struct {
	// Servers has the options of single servers, by name.
	Servers map[string]ServerOptions
	// ExecWait bounds the wait for a server that is connecting; 0 = 20 s.
	ExecWait time.Duration
	// TOON allows tables to become TOON; without it JSON is only minified.
	TOON bool
	// ResultTokens bounds the text of a result; read_result reads the rest. 0 = no
	// limit.
	ResultTokens int
	// PreviewTokens bounds the first look at a longer JSON; 0 = ResultTokens.
	PreviewTokens int
	// Filter runs the filters of select.
	Filter *jq.Runner
	// NoResources and NoPrompts turn off what servers have beside tools.
	NoResources, NoPrompts bool
	// Separator stands between the name of a server and that of its prompt; empty = "__".
	Separator string
	// TypeScript shows a tool in VALIDATION_ERROR as TypeScript, not as JSON Schema.
	TypeScript bool
	// Journal numbers the calls, and has their observers; nil = nobody observes them.
	Journal *request.Journal
	// Tracing, where not nil, gives calls spans; without it a client's traceparent goes
	// through as it is.
	Tracing *request.Tracing
	// Current, where not nil, returns the settings in force: they take the place of the options
	// above, except Journal, Tracing, Results and Secret. Open calls keep the ones of their beginning.
	Current func() *Settings
	// Results keeps what is too long, for all clients; nil = in memory. Secret is what the tags of tasks are made with; nil = a
	// random one.
	Results state.Results[results.Kept]
	Secret  *state.Secret
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// Settings are options as calls use them, with a cache of the settings of single tools. The
// options never change.
type Settings struct {
	Options

	mu    sync.RWMutex
	tools map[toolName]toolSettings // at most maxToolSettings
}

// NewSettings makes settings of options: before, which may be nil, where its options are the same.
func NewSettings(options Options, before *Settings) *Settings {
	if options.ExecWait <= 0 {
		options.ExecWait = 20 * time.Second
	}
	options.Separator = cmp.Or(options.Separator, "__")
	if before != nil && reflect.DeepEqual(before.Options, options) {
		return before
	}
	return &Settings{Options: options}
}

type toolName struct{ server, tool string }

// toolSettings are the options of one tool.
type toolSettings struct {
	verbatim, unchecked bool
	timeout, idle       time.Duration // 0 = the upstream's, none
}

// tool returns the settings of a tool, which must exist: it caches them.
func (s *Settings) tool(server, tool string) toolSettings {
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
		globs = defaultVerbatim
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

// maxToolSettings bounds the cache: a server may change its tools all the time.
const maxToolSettings = 20_000

// editedFiles are endings of the names of JSON and Python files, with the quote that
// ends the string. A model may edit such a file, and must see it unchanged.
var editedFiles = [][]byte{
	[]byte(`.py"`), []byte(`.json"`), []byte(`.jsonc"`), []byte(`.ipynb"`), []byte(`.geojson"`), []byte(`.lock"`),
}

// namesEditedFile reports whether some string in the arguments names such a file.
func namesEditedFile(arguments json.RawMessage) bool {
	if bytes.IndexByte(arguments, '.') < 0 {
		return false
	}
	for _, ending := range editedFiles {
		if bytes.Contains(arguments, ending) {
			return true
		}
	}
	return false
}
