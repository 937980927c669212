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
	"mcpx/internal/learned"
	"mcpx/internal/policy"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// defaultVerbatim are globs of tools that read files. Their results stay unchanged because the model may edit the file (design 7).
var defaultVerbatim = []string{"read_*file*", "*file_content*", "*_show"}

// ServerOptions are the settings of calls to one server.
type ServerOptions struct {
	// Unchecked turns off the validation of arguments (validate: off).
	Unchecked bool
	// Verbatim are globs of tools whose results stay unchanged; nil = defaultVerbatim.
	Verbatim []string
	// CallTimeout bounds one call; the first match in ToolTimeouts overrides it. 0 = the upstream's bound.
	CallTimeout  time.Duration
	ToolTimeouts []ToolTimeout
	// IdleTimeout ends a call that makes no progress; 0 = none.
	IdleTimeout time.Duration
}

// ToolTimeout bounds calls of the tools whose names match.
type ToolTimeout = conf.ToolTimeout

// Options are the settings of an executor. All may be zero.
type Options struct {
	// Servers has the options of single servers, by name.
	Servers map[string]ServerOptions
	// ExecWait bounds the wait for a server that is connecting; 0 = 20 s.
	ExecWait time.Duration
	// TOON and JS allow texts to have these forms, for clients whose format has none; otherwise JSON is only minified.
	TOON, JS bool
	// ResultTokens bounds the text of a result; read_result reads the rest. 0 = no limit.
	ResultTokens int
	// PreviewTokens bounds what is shown of a longer result at first; 0 = ResultTokens.
	PreviewTokens int
	// Filter runs jq filters.
	Filter *jq.Runner
	// NoResources and NoPrompts hide the servers' resources and prompts.
	NoResources, NoPrompts bool
	// Separator joins the names of server and prompt; empty = "__".
	Separator string
	// TypeScript shows types in a VALIDATION_ERROR as TypeScript instead of JSON Schema.
	TypeScript bool
	// Learn keeps the shapes of results of tools that declare no output type, in Learned, and shows them.
	Learn bool
	// Learned is nil if nothing is learned.
	Learned *learned.Store
	// Journal numbers calls and has the observers; nil = no observers.
	Journal *request.Journal
	// Tracing gives calls spans; nil = a client's traceparent is passed on unchanged.
	Tracing *request.Tracing
	// Current, if not nil, returns the settings in force, which replace all of these options except Learned, Journal, Tracing,
	// Results and Secret. A call keeps the settings of its beginning.
	Current func() *Settings
	// Results keeps results that are too long, for all clients; nil = in memory. Secret is the key for the tags on the ids of
	// tasks; nil = a random one.
	Results state.Results[results.Kept]
	Secret  *state.Secret
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// Settings are options in use, with a cache of the settings of single tools. The options never change.
type Settings struct {
	Options

	mu    sync.RWMutex
	tools map[toolName]toolSettings // at most maxToolSettings
}

// NewSettings returns settings for options: before, if not nil and equal; so its cache is kept.
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

// toolSettings are the settings of one tool.
type toolSettings struct {
	verbatim, unchecked bool
	timeout, idle       time.Duration // 0 = the upstream's timeout, no idle timeout
}

// tool returns the settings of a tool. It caches them, so the tool must exist.
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

// maxToolSettings bounds the cache: a server may rename its tools again and again.
const maxToolSettings = 20_000

// editedFiles are the endings of file names (with the closing quote of a JSON string) that are edited as text: the model must see
// the file unchanged.
var editedFiles = [][]byte{
	[]byte(`.py"`), []byte(`.json"`), []byte(`.jsonc"`), []byte(`.ipynb"`), []byte(`.geojson"`), []byte(`.lock"`),
}

// namesEditedFile reports whether a string in the arguments names such a file.
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
