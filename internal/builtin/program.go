package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/programs"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// RunTool is the tool that runs a program which the caller sends. Each stored program is a separate tool.
const RunTool = "run"

// OfProgram is the value of [results.Origin.Tool] for the result of a program. Origin.Server then has one line for each tool
// that the program has called: the names of the server and the tool, separated by a tab.
const OfProgram = Name + "." + RunTool

// Names are the names of the server's own tools, which no stored program can have.
var Names = []string{RunTool, WaitTool, results.Tool, listTool, readTool, promptTool, SaveTool}

// Programs says which programs callers can run. NewPrograms makes it.
type Programs struct {
	Limits programs.Limits
	// Stored are the stored programs, sorted by name.
	Stored []*programs.Stored

	all []catalog.Tool // RunTool and the stored programs; see NewPrograms
}

// NewPrograms returns the programs with these limits. stored are the stored programs, sorted by name. NewPrograms makes the
// definitions of the tools once for all calls, because package arguments finds the compiled form of a schema by the schema's
// address.
func NewPrograms(limits programs.Limits, stored []*programs.Stored) *Programs {
	p := &Programs{Limits: limits, Stored: stored}
	p.all = append(p.all, p.runTool())
	for _, one := range stored {
		p.all = append(p.all, programTool(one.Name, one.Description, one.Schema))
	}
	return p
}

// runTool is the definition of RunTool.
func (p *Programs) runTool() catalog.Tool {
	l := p.Limits.WithDefaults()
	schema := fmt.Sprintf(`{"type":"object","properties":{"code":{"type":"string"},`+
		`"timeout":{"type":"number","exclusiveMinimum":0,"default":%g,"description":"seconds, at most %g"}},`+
		`"required":["code"],"additionalProperties":false}`, l.Time.Seconds(), l.MaxTime.Seconds())
	return programTool(RunTool, fmt.Sprintf("Run JavaScript (ES2023, the body of an async function) that calls tools; only what it returns or logs is shown. "+
		"await call(server, tool, args) gives the result as JSON value, else text, and throws an Error with code and message. "+
		"result(handle) gives a kept result, file(path) the text of an open file; console.log. At most %d calls, %d at once. No fetch, timers or imports.", l.Calls, l.AtOnce), schema)
}

// programTool is the definition of a tool that runs a program. It has no annotations, because a program has the effects of the
// tools that it calls.
func programTool(name, description, schema string) catalog.Tool {
	return catalog.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
}

// stored finds a stored program. p may be nil.
func (p *Programs) stored(name string) (*programs.Stored, bool) {
	if p == nil {
		return nil, false
	}
	i := slices.IndexFunc(p.Stored, func(s *programs.Stored) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return p.Stored[i], true
}

// tools returns the tools that run programs, without those for which the func denied returns true. If stored is true, it returns
// only the tools for stored programs, without RunTool.
func (p *Programs) tools(denied func(tool string) bool, stored bool) (all []catalog.Tool) {
	if p == nil {
		return nil
	}
	for _, tool := range p.all {
		if !denied(tool.Name) && !(stored && tool.Name == RunTool) {
			all = append(all, tool)
		}
	}
	return all
}

// Runs reports whether a tool runs a program.
func (s *Server) Runs(tool string) bool {
	p := s.Programs()
	_, stored := p.stored(tool)
	return p != nil && tool == RunTool || stored
}

// program runs the program in the arguments of the tool run, or a stored program.
func (c *Caller) program(ctx context.Context, q *request.Request, p *Programs, given json.RawMessage) (json.RawMessage, error) {
	run := programs.Program{Limits: p.Limits}
	if stored, ok := p.stored(q.Tool.Name); ok {
		run.Code, run.Parameters, run.Arguments = stored.Code, stored.Parameters, wire.Merge(given, stored.Defaults)
	} else {
		var args struct {
			Code    string
			Timeout float64
		}
		if err := json.Unmarshal(given, &args); err != nil {
			return nil, arguments.Invalid("/code: must be a string")
		}
		run.Code, run.Timeout = args.Code, time.Duration(min(args.Timeout, 1e6)*float64(time.Second))
	}
	if c.Program == nil {
		return nil, errors.New("a program cannot run another program")
	}
	out, err := c.Program(ctx, q, run)
	if err != nil {
		return nil, err
	}
	var logs []json.RawMessage
	// A caller with a filter gets only the filtered value, without the logs, unless the program has failed.
	if text := strings.TrimSuffix(out.Logs, "\n"); text != "" && (c.Select == "" || out.Failure != nil) {
		logs = append(logs, wire.TextBlock(text))
	}
	if f := out.Failure; f != nil {
		q.Event.Outcome = f.Code
		failure := &results.Failure{Code: f.Code, Message: f.Message}
		if len(out.Made) > 0 {
			made := programs.Summary(out.Made)
			failure.With("calls", made)
			failure.Text = failure.Said() + "\nCalls made: " + made
		}
		result := failure.Result(c.Form.Always())
		result.Content = append(logs, result.Content...)
		return result.Raw(), nil
	}
	text := "undefined"
	if out.Value != nil {
		text = string(out.Value)
		if plain, ok := wire.WholeText(out.Value); ok {
			text = plain
		}
	}
	shown := append(logs, wire.TextBlock(text))
	if out.Value == nil && len(logs) == 0 && q.Tool.Name == RunTool && c.Select == "" && !c.Form.JSON {
		made := "no calls were made"
		if len(out.Made) > 0 {
			made = "calls made: " + programs.Summary(out.Made)
		}
		shown = append(shown, wire.TextBlock("\n["+noReturn+"; "+made+"]"))
	}
	return toolResult(shown), nil
}

// noReturn tells a model that its program has neither returned nor logged anything. Most such programs end in an expression without
// return, put all their code into a function, which they may not even call, or read a member of a promise. The text is followed by the
// outcome of each call, so that the model sees which calls it should not make again.
const noReturn = "nothing was returned or logged: code is the body of a function, so end it with return, and await each call"
