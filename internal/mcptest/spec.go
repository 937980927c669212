// Package mcptest has what tests of MCP need: fake upstream servers with the faults of real ones, a proxy that breaks
// connections, and a check that nothing was left running.
//
// It is for tests only. The fakes write their JSON-RPC bytes themselves, so that a test controls every byte that the code
// under test gets. mcptest imports nothing of mcpx.
package mcptest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The protocol revisions that the fakes speak.
const (
	// ModernVersion is the revision without a handshake: every request carries its version and capabilities in _meta.
	ModernVersion = "2026-07-28"
	// LegacyVersion is what a legacy fake answers to initialize, unless
	// Spec.Version says otherwise.
	LegacyVersion = "2025-06-18"
)

// Values of Spec.Era. The empty string is EraLegacy.
const (
	EraLegacy = "legacy"
	EraModern = "modern"
	EraBoth   = "both"
)

// Spec describes a fake upstream and its faults. The zero value is a well-behaved legacy server with the default tools
// (see DefaultTools). A fake uses a copy of its Spec, so that later changes have no effect. A Spec holds only data, as it
// is passed to a child process as JSON.
//
// Faults can be combined. Faults of bytes (Noise, BOM, OneByteWrites and so on) apply to every transport where they make
// sense, faults of processes (ExitAtOnce, IgnoreTERM, …) only to stdio.
type Spec struct {
	// Name is serverInfo.name; empty means "fake".
	Name string
	// Instructions are sent with the handshake, where not empty.
	Instructions string
	// Era is EraLegacy (default), EraModern (initialize is an unknown method)
	// or EraBoth (decided by each request).
	Era string
	// Version is what a legacy fake answers to initialize, whatever the client
	// asked for; empty means LegacyVersion.
	Version string

	// Tools is the raw JSON array of tool definitions, nil for the default tools. A tool with the name of a default tool
	// acts like it; any other answers with its arguments as one text block.
	Tools json.RawMessage `json:",omitempty"`
	// ToolsFile, if set, is read at every tools/list and replaces Tools while it exists, for tools that change.
	ToolsFile string
	// ExtraTools adds that many simple tools: extra_0000, extra_0001, …
	ExtraTools int
	// OddTools adds the definitions of OddTools.
	OddTools bool
	// Resources, Templates and Prompts are raw JSON arrays of definitions. Resources or Templates give the fake the
	// capability for resources, Prompts the one for prompts, and any of them the one for completions. Answers contain the
	// fake's name: see offers.go.
	Resources, Templates, Prompts json.RawMessage `json:",omitempty"`
	// SubscribeEra, if not empty, is the only era in which the fake offers resources/subscribe.
	SubscribeEra string
	// AskEra, if not empty, is the only era in which the tool ask works: the legacy one for a tool that sends a request, the
	// modern one for a tool that answers input_required.
	AskEra string
	// Results are raw tools/call results by tool name, sent as they are.
	Results map[string]json.RawMessage
	// MethodResults are raw results of other requests, by method.
	MethodResults map[string]json.RawMessage
	// NoLogging leaves out the logging capability, and logging/setLevel with it.
	NoLogging bool
	// Pages splits tools/list over that many pages.
	Pages int
	// CursorLoop answers every tools/list with all tools and the same cursor.
	CursorLoop bool
	// EndlessPages answers every tools/list with one new tool and a new cursor.
	EndlessPages bool

	// InitDelay and ListDelay hold back the answers to the handshake
	// (initialize and server/discover) and to tools/list.
	InitDelay, ListDelay time.Duration
	// NeverInit and NeverList leave the handshake, or tools/list, unanswered.
	NeverInit, NeverList bool
	// InstallFor is how long the fake simulates an installer before it reads anything; below 0 that never ends. Meanwhile
	// it writes a line to stdout every InstallEvery (0 = none), until InstallStalls (0 = no limit).
	InstallFor, InstallEvery, InstallStalls time.Duration
	// HangMethods are methods that are never answered.
	HangMethods []string
	// HangTools are tools whose calls are never answered.
	HangTools []string
	// WedgeFile: while this file exists, nothing that arrives is ever answered.
	WedgeFile string
	// FailMethods are methods answered with the JSON-RPC error -32603.
	FailMethods []string
	// SilentUnknown leaves unknown methods unanswered, as some servers do, instead of answering -32601. A legacy fake
	// then does not answer server/discover.
	SilentUnknown bool
	// ExitOnDiscover ends a fake that is not modern at server/discover.
	ExitOnDiscover bool

	// Noise writes banner lines, log lines, blank lines and broken JSON between
	// messages (on SSE streams: comments and events of unknown kinds).
	Noise bool
	// BOM puts a UTF-8 byte order mark before every message.
	BOM bool
	// CRLF ends lines with CR LF.
	CRLF bool
	// ContentLength frames messages with Content-Length headers and ignores input without them.
	ContentLength bool
	// AnyFraming lets a ContentLength fake read plain lines too.
	AnyFraming bool
	// OneByteWrites writes one byte at a time, flushing each.
	OneByteWrites bool
	// InvalidUTF8 puts the bytes ff fe into the text of tool results.
	InvalidUTF8 bool
	// TruncateAnswers cuts answers to tools/call in the middle, but keeps the line end.
	TruncateAnswers bool
	// HugeLine is how many bytes the tool big answers with if its call does not say; below 0 the answer never ends. 0
	// means 1 MiB.
	HugeLine int64

	// DuplicateAnswers sends every answer twice; the second one of a tool call
	// says "second answer".
	DuplicateAnswers bool
	// UnknownIDs sends answers with unknown ids before each answer.
	UnknownIDs bool
	// StringIDs answers tool calls with the request's number as a string.
	StringIDs bool
	// AnswerBeforeRequest sends, after each tools/list, answers to the next three requests before they were made. Their
	// text is "answered too early".
	AnswerBeforeRequest bool
	// AnswerAfterCancel also answers cancelled calls.
	AnswerAfterCancel bool
	// LateProgress sends one more progress notification after each answer.
	LateProgress bool
	// ListChangedStorm is how many tools/list_changed are sent each second
	// while a client is connected.
	ListChangedStorm int
	// ProgressStorm is how many progress notifications are sent each second for
	// every open call that gave a token.
	ProgressStorm int

	// ExitAtOnce ends the process before it reads anything.
	ExitAtOnce bool
	// ExitAfterCalls, where above 0, ends the fake after it has answered that
	// many tool calls. (Over HTTP all sessions are forgotten then.)
	ExitAfterCalls int
	// ExitCode is the status of ExitAtOnce, ExitAfterCalls and crash.
	ExitCode int
	// FailStarts is how many starts end at once; they are counted in LogFile, which must be set.
	FailStarts int
	// CrashFile: a call of read_echo that finds this file removes it and ends
	// the fake without an answer, so the next attempt succeeds.
	CrashFile string
	// StderrLines are written to stderr at the start.
	StderrLines []string
	// StderrFlood is how many bytes are written to stderr before the first message is read; below 0 the flood never ends,
	// and does not delay the rest.
	StderrFlood int64
	// IgnoreTERM ignores SIGTERM and SIGINT; IgnoreEOF stays when stdin closes.
	IgnoreTERM, IgnoreEOF bool
	// ForkGrandchild starts a process in the same group that does nothing and keeps running.
	ForkGrandchild bool
	// GrandchildHoldsPipes lets that process inherit stdout and stderr, so that they stay open after the fake has ended.
	GrandchildHoldsPipes bool
	// NeverReadStdin stops reading stdin after the first tools/list.
	NeverReadStdin bool
	// MaxLife bounds the life of the process; 0 means 10 minutes. (A fake also ends when the test process is gone.)
	MaxLife time.Duration

	// AnswerSSE answers every HTTP request with an event stream. Without it, a plain JSON body is sent if the answer is
	// all there is to send.
	AnswerSSE bool
	// NoGET refuses the GET stream of legacy HTTP with 405.
	NoGET bool
	// NoSession serves legacy HTTP without session ids: each request on its own,
	// no GET stream, no handshake needed.
	NoSession bool
	// Forgotten is the HTTP answer to an unknown session id; the zero value is 404 with a JSON-RPC error.
	Forgotten Refusal
	// Token, if set, is the bearer token that every HTTP request needs.
	Token string
	// Endpoint, if set, replaces the URL that a legacy SSE fake announces.
	Endpoint string

	// PidFile gets one line for each process that is started: its process id
	// and its role, "server" or "grandchild". See Pids.
	PidFile string
	// LogFile gets one JSON line for everything that happens: see Entry. Over HTTP, HTTPServer.Log returns the same
	// without a file.
	LogFile string
}

// Refusal is an HTTP answer. In Body, $ID is replaced by the id of the request.
type Refusal struct {
	Status     int
	Type, Body string
}

// WithFiles returns the spec with PidFile and LogFile in a new temporary folder, which the test removes.
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

// hangs reports whether the fake never answers the method.
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
