// Package mcptest has what tests of MCP need: fake upstream servers with the faults of real ones, a proxy that breaks
// connections, and a check that tests leave nothing running.
//
// It is for tests only. The fakes write their JSON-RPC messages byte by byte, without an SDK, so that a test controls
// every byte that the tested code gets. mcptest imports no other package of mcpx.
package mcptest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// These are the protocol revisions that the fakes speak.
const (
	// ModernVersion is the revision without a handshake: every request has its protocol version and capabilities in
	// _meta.
	ModernVersion = "2026-07-28"
	// LegacyVersion is the revision with which a legacy fake answers initialize, unless Spec.Version is set.
	LegacyVersion = "2025-06-18"
)

// These are the values of Spec.Era. The empty string means EraLegacy.
const (
	EraLegacy = "legacy"
	EraModern = "modern"
	EraBoth   = "both"
)

// Spec describes a fake upstream and its faults. The zero value is a well-behaved legacy server with the default
// tools (see DefaultTools). A fake uses a copy of its Spec, so later changes to the Spec have no effect. A Spec
// contains only data, since it is passed to a child process as JSON.
//
// Faults can be combined. Faults of bytes (Noise, BOM, OneByteWrites and so on) apply to every transport on which
// they are possible; faults of processes (ExitAtOnce, IgnoreTERM and so on) apply only to stdio.
type Spec struct {
	// Name is serverInfo.name; empty means "fake".
	Name string
	// Instructions are sent with the handshake; empty means none.
	Instructions string
	// Era is EraLegacy (the default), EraModern (initialize is an unknown method) or EraBoth (each request decides by
	// its contents).
	Era string
	// Version is the revision with which a legacy fake answers initialize, whatever the client has requested. Empty
	// means LegacyVersion.
	Version string

	// Tools is the raw JSON array of tool definitions; nil means the default tools. A tool with the name of a default
	// tool behaves like it. Any other tool answers with its arguments as one text block.
	Tools json.RawMessage `json:",omitempty"`
	// ToolsFile, if set, is the path of a file that replaces Tools while it exists. It is read at every tools/list and
	// tools/call, so that a test can change the tools.
	ToolsFile string
	// ExtraTools is how many simple tools are added: extra_0000, extra_0001, …
	ExtraTools int
	// OddTools adds the tools that the function OddTools returns.
	OddTools bool
	// Resources, Templates and Prompts are raw JSON arrays of definitions. With Resources or Templates, the fake has the
	// capability resources; with Prompts, the capability prompts; with any of them, the capability completions. Answers contain
	// the fake's name.
	Resources, Templates, Prompts json.RawMessage `json:",omitempty"`
	// SubscribeEra, if not empty, is the only era in which the fake offers resources/subscribe.
	SubscribeEra string
	// AskEra, if not empty, is the only era in which the tool ask works. In the legacy era, ask sends a request; in the
	// modern era, it answers input_required.
	AskEra string
	// Results has raw results of tools/call by tool name. They are sent without changes, but on one line, and in the modern era
	// with resultType.
	Results map[string]json.RawMessage
	// MethodResults has raw results of other requests, by method.
	MethodResults map[string]json.RawMessage
	// NoLogging omits the logging capability and the method logging/setLevel.
	NoLogging bool
	// Pages is how many pages tools/list is split into; 0 or 1 means one page.
	Pages int
	// CursorLoop answers every tools/list with all tools and always the same cursor.
	CursorLoop bool
	// EndlessPages answers every tools/list with one new tool and a new cursor.
	EndlessPages bool

	// InitDelay delays the answer to the handshake (initialize and server/discover). ListDelay delays the answer to
	// tools/list.
	InitDelay, ListDelay time.Duration
	// NeverInit never answers the handshake, NeverList never answers tools/list.
	NeverInit, NeverList bool
	// InstallFor is how long the fake imitates an installer before it reads anything; a negative value means forever.
	// During this time, it writes a line to stdout every InstallEvery; 0 means no lines. After InstallStalls it
	// writes no more lines; 0 means that it continues.
	InstallFor, InstallEvery, InstallStalls time.Duration
	// HangMethods are methods that are never answered.
	HangMethods []string
	// HangTools are tools whose calls are never answered.
	HangTools []string
	// WedgeFile is the path of a file. A request that arrives while it exists is never answered.
	WedgeFile string
	// FailMethods are methods that are answered with the JSON-RPC error -32603.
	FailMethods []string
	// SilentUnknown never answers unknown methods, as some servers do. For a legacy fake, server/discover is unknown too.
	// Without SilentUnknown, unknown methods get the error -32601.
	SilentUnknown bool
	// ExitOnDiscover ends a legacy fake when server/discover arrives.
	ExitOnDiscover bool

	// Noise writes banner lines, log lines, blank lines and broken JSON between messages. On SSE streams, it writes
	// comments and events of unknown types.
	Noise bool
	// BOM puts a UTF-8 byte order mark before every message.
	BOM bool
	// CRLF ends lines with CR LF. Otherwise they end with LF.
	CRLF bool
	// ContentLength frames messages with Content-Length headers, and ignores input lines that are not framed like this.
	ContentLength bool
	// AnyFraming makes a fake with ContentLength also read plain lines.
	AnyFraming bool
	// OneByteWrites writes one byte at a time, and flushes it.
	OneByteWrites bool
	// InvalidUTF8 puts the bytes ff fe into the text of tool results.
	InvalidUTF8 bool
	// TruncateAnswers cuts answers to tools/call in the middle, but still writes the line end.
	TruncateAnswers bool
	// HugeLine is the size in bytes of the answer of the tool big, if the call does not set a size. 0 means 1 MiB; a
	// negative value means that the answer never ends.
	HugeLine int64

	// DuplicateAnswers sends every answer twice. The second answer to a tool call has the text "second answer".
	DuplicateAnswers bool
	// UnknownIDs sends answers with unknown IDs before each answer.
	UnknownIDs bool
	// StringIDs answers tool calls with the ID as a string, although the ID of the request is a number.
	StringIDs bool
	// AnswerBeforeRequest sends, after each tools/list, answers to the next three requests, before the client has
	// sent them. Their text is "answered too early".
	AnswerBeforeRequest bool
	// AnswerAfterCancel sends answers even to cancelled calls.
	AnswerAfterCancel bool
	// LateProgress sends one more progress notification after each answer to a request with a progress token.
	LateProgress bool
	// ListChangedStorm is how many tools/list_changed notifications are sent per second while a client is connected.
	ListChangedStorm int
	// ProgressStorm is how many progress notifications are sent per second for every open call that has a progress
	// token.
	ProgressStorm int

	// ExitAtOnce ends the process before it reads anything.
	ExitAtOnce bool
	// ExitAfterCalls, if positive, ends the fake after it has answered this many tool calls. Over HTTP, all sessions
	// are forgotten then.
	ExitAfterCalls int
	// ExitCode is the exit status with which faults and the tool crash end the fake.
	ExitCode int
	// FailStarts is a number n: the first n processes of the fake exit before they read anything. The starts are counted in
	// LogFile, which must be set.
	FailStarts int
	// CrashFile is the path of a file. If a call of read_echo, idempotent_echo or destroy_echo finds the file, the call removes
	// the file and ends the fake without an answer. So the next attempt succeeds.
	CrashFile string
	// StderrLines are written to stderr at the start.
	StderrLines []string
	// StderrFlood is how many bytes are written to stderr before the first message is read. If it is negative, the
	// flood never ends, and messages are read during it.
	StderrFlood int64
	// IgnoreTERM ignores SIGTERM and SIGINT. IgnoreEOF keeps running after stdin was closed.
	IgnoreTERM, IgnoreEOF bool
	// ForkGrandchild starts another process in the same process group. That process does nothing. It runs until it is killed,
	// or as long as MaxLife says.
	ForkGrandchild bool
	// GrandchildHoldsPipes lets the grandchild inherit stdout and stderr, so that they stay open after the fake has
	// ended.
	GrandchildHoldsPipes bool
	// NeverReadStdin makes the fake stop reading stdin after the first tools/list.
	NeverReadStdin bool
	// MaxLife is how long the process may run; 0 means 10 minutes. Except on Windows, a fake also ends when the test process
	// has ended.
	MaxLife time.Duration

	// AnswerSSE answers every HTTP request with an event stream. Without it, the response is a plain JSON body if
	// only the answer is sent.
	AnswerSSE bool
	// NoGET refuses the GET stream of legacy HTTP with 405.
	NoGET bool
	// NoSession serves legacy HTTP without session IDs: each request is independent, there is no GET stream, and no
	// handshake is needed.
	NoSession bool
	// Forgotten is the HTTP response to an unknown session ID. The zero value means 404 with a JSON-RPC error.
	Forgotten Refusal
	// Token, if set, is the bearer token that every HTTP request must have.
	Token string
	// Endpoint, if set, is sent as the URL for POSTs by a legacy SSE fake, instead of the real one.
	Endpoint string

	// PidFile is the path of a file that gets one line for each process that is started: its process ID and its role,
	// "server" or "grandchild". See Pids.
	PidFile string
	// LogFile is the path of a file that gets one JSON line for everything that happens, see Entry. Over HTTP,
	// HTTPServer.Log returns the same entries without a file.
	LogFile string
}

// Refusal is an HTTP response. In Body, $ID is replaced by the ID of the request.
type Refusal struct {
	Status     int
	Type, Body string
}

// WithFiles returns the spec with PidFile and LogFile set to paths in a new temporary folder, which is removed when
// the test ends.
func (s Spec) WithFiles(t testing.TB) Spec {
	t.Helper()
	dir := t.TempDir()
	s.PidFile = filepath.Join(dir, "pids")
	s.LogFile = filepath.Join(dir, "log.jsonl")
	return s
}

func (s Spec) name() string {
	if s.Name == "" {
		return "fake"
	}
	return s.Name
}

func (s Spec) version() string {
	if s.Version == "" {
		return LegacyVersion
	}
	return s.Version
}

func (s Spec) legacy() bool { return s.Era != EraModern }
func (s Spec) modern() bool { return s.Era == EraModern || s.Era == EraBoth }

// hangs reports whether the fake never answers this method.
func (s Spec) hangs(method string) bool {
	switch method {
	case "initialize", "server/discover":
		if s.NeverInit {
			return true
		}
	case "tools/list":
		if s.NeverList {
			return true
		}
	}
	return slices.Contains(s.HangMethods, method)
}
