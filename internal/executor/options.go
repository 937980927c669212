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
	"mcpx/internal/builtin"
	"mcpx/internal/jq"
	"mcpx/internal/learned"
	"mcpx/internal/policy"
	"mcpx/internal/programs"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// defaultVerbatim are globs for names of tools that read files. The results of these tools are not compressed, because the model
// may edit the file.
var defaultVerbatim = []string{"read_*file*", "*file_content*", "*_show"}

// ServerOptions are the settings for calls to one server.
type ServerOptions struct {
	// Unchecked turns off the validation of arguments (config: validate: off).
	Unchecked bool
	// Verbatim are globs. If one matches a tool's name, the texts of the tool's results are not compressed; long ones are still
	// cut. Nil means defaultVerbatim.
	Verbatim []string
	// CallTimeout is the maximum duration of a call; 0 means the timeout of the upstream. The first matching entry of
	// ToolTimeouts overrides it.
	CallTimeout  time.Duration
	ToolTimeouts []ToolTimeout
	// IdleTimeout ends a call that has reported no progress for this long; 0 means no such limit.
	IdleTimeout time.Duration
}

// ToolTimeout is the maximum duration of calls of the tools whose names match a glob.
type ToolTimeout = conf.ToolTimeout

// Options are the settings of an executor. Each of them may be zero.
type Options struct {
	// Servers has the options of individual servers, by server name.
	Servers map[string]ServerOptions
	// ExecWait is how long a call waits for a server that is still connecting; 0 means 20 s. If ExecWaitSet is false, a call waits
	// longer while the command of the server installs or starts.
	ExecWait    time.Duration
	ExecWaitSet bool
	// TOON and JS allow mcpx to convert JSON in texts to these formats, for clients that did not choose a format. If both are
	// false, JSON is only minified.
	TOON, JS bool
	// ResultTokens is the maximum length of a result's text, in tokens; read_result reads the rest. 0 means no limit.
	ResultTokens int
	// PreviewTokens is how many tokens of a result are shown at first if the result is longer than ResultTokens; 0 means
	// ResultTokens.
	PreviewTokens int
	// Filter runs jq filters.
	Filter *jq.Runner
	// Record makes events carry the arguments and results of calls.
	Record bool
	// ProgramOptions are for programs that clients can run.
	ProgramOptions
	OfferOptions
	// TypeScript shows types in a VALIDATION_ERROR as TypeScript instead of JSON Schema.
	TypeScript bool
	// Files says which files may be used.
	Files FileOptions
	LearnOptions
	// Journal numbers the calls and has the observers; nil means no observers.
	Journal *request.Journal
	// Tracing creates spans for calls; nil means that a client's traceparent is passed on unchanged.
	Tracing *request.Tracing
	// Current, if not nil, returns the current settings, which replace all of these options except Learned, Journal, Tracing,
	// Results, TaskIDs and Logger. A call keeps the settings from its beginning, unless it starts again because its server was
	// replaced.
	Current func() *Settings
	// Results stores results that are too long, for all clients; nil means in memory.
	Results state.Results[results.Kept]
	TaskIDs
	// Logger may be nil, then nothing is logged.
	Logger *slog.Logger
}

// OfferOptions say what clients see of the servers besides tools.
type OfferOptions struct {
	// NoResources and NoPrompts hide the servers' resources and prompts.
	NoResources, NoPrompts bool
	// Separator is put between the name of a server and the name of a prompt; "" means "__".
	Separator string
}

// TaskIDs are the settings for the ids of tasks that clients get.
type TaskIDs struct {
	// Secrets are keys for tags. A tag is the part of a task's id that proves to whom the task belongs. The first key makes the
	// tags of new ids; tags made with any of the keys are accepted. Nil means one random key.
	Secrets []*state.Secret
	// Replica is the id of this process among those that serve the same clients; empty if there are no others.
	Replica string
}

// LearnOptions say whether mcpx learns and shows the shapes of results of tools that declare no output type.
type LearnOptions struct {
	Learn bool
	// Learned stores what is learned; with nil, nothing is learned. The options that [Options.Current] returns need none.
	Learned *learned.Store
}

// ProgramOptions are the settings of programs: those that clients send to the tool run, and the stored ones.
type ProgramOptions struct {
	// Programs says which programs clients can run, and Runner runs them. Programs is nil if they are turned off.
	Programs *builtin.Programs
	Runner   *programs.Runner
}

// Settings are Options with a cache of the settings of individual tools. The options never change.
type Settings struct {
	Options

	mu    sync.RWMutex
	tools map[toolName]toolSettings // has at most maxToolSettings entries
}

// NewSettings returns settings with these options. If previous has the same options, NewSettings returns previous, to keep its
// cache.
func NewSettings(options Options, previous *Settings) *Settings {
	if options.ExecWait <= 0 {
		options.ExecWait = 20 * time.Second
	}
	options.Separator = cmp.Or(options.Separator, "__")
	if previous != nil && reflect.DeepEqual(previous.Options, options) {
		return previous
	}
	return &Settings{Options: options}
}

type toolName struct{ server, tool string }

// toolSettings are the settings for one tool, from the ServerOptions of its server.
type toolSettings struct {
	verbatim, unchecked bool
	timeout, idle       time.Duration // timeout 0 means the timeout of the upstream; idle 0 means no idle timeout
}

// tool returns the settings of a tool. It caches them, so it must be called only for tools that exist: names that clients invent
// could fill the cache.
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

// maxToolSettings is the maximum number of tools whose settings a [Settings] caches. It is needed because a server may rename its
// tools again and again.
const maxToolSettings = 20_000

// editedFiles are the extensions, with the closing quote of a JSON string, of files that are edited as text. The model must see
// such a file unchanged.
var editedFiles = [][]byte{
	[]byte(`.py"`), []byte(`.json"`), []byte(`.jsonc"`), []byte(`.ipynb"`), []byte(`.geojson"`), []byte(`.lock"`),
}

// namesEditedFile reports whether a string in the arguments ends with one of the extensions in editedFiles.
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
