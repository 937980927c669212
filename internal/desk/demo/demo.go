// Package demo has the sample servers of the command mcpx demo. They run inside the process, and together have thirty
// tools. A server is defined by files in the folder data: NAME.tools.json has its tools, NAME.json the data of its initial
// state, and NAME.jq a jq function for each tool, which computes the answer from the state. Answers are deterministic, and
// nothing is stored on disk.
package demo

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
	"github.com/mark3labs/mcp-go/mcp"
)

// Server is one sample server. All sessions of a Server share its state. Each call of [Servers] makes servers with a new state.
type Server struct {
	Name string
	// Description says in one sentence what the server does.
	Description string
	// Serve serves one session with newline-delimited JSON-RPC. It supports the older revisions of MCP, which have initialize,
	// and revision 2026-07-28, which has no initialize. It answers requests one after another. When the input ends, Serve
	// answers the requests that it has read, and returns. When ctx ends, Serve closes the input and the output if they are
	// io.Closers, so that a blocked read or write ends.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error
}

//go:embed data
var data embed.FS

// Servers returns the sample servers in their initial state, sorted by name.
func Servers() []Server {
	var all []Server
	for _, name := range []string{"cities", "notes", "tasks", "units", "weather"} {
		s, err := sample(name)
		if err != nil {
			panic(fmt.Errorf("the demo's server %s: %w", name, err)) // a mistake in the folder data, which tests find
		}
		all = append(all, s)
	}
	return all
}

// definition is one tool in NAME.tools.json, and in the answer to tools/list.
type definition struct {
	Annotations  mcp.ToolAnnotation `json:"annotations"`
	Description  string             `json:"description"`
	InputSchema  json.RawMessage    `json:"inputSchema"`
	Name         string             `json:"name"`
	OutputSchema json.RawMessage    `json:"outputSchema,omitempty"`
}

func sample(name string) (Server, error) {
	var listed struct {
		Description string
		Tools       []definition
	}
	if err := load(name+".tools.json", &listed); err != nil {
		return Server{}, err
	}
	answers := &answers{name: name}
	if err := answers.start(); err != nil {
		return Server{}, err
	}
	slices.SortFunc(listed.Tools, func(a, b definition) int { return strings.Compare(a.Name, b.Name) })
	s := &server{name: name, instructions: listed.Description, tools: listed.Tools, answers: make(map[string]tool)}
	for _, d := range listed.Tools {
		answer, err := answers.tool(d)
		if err != nil {
			return Server{}, err
		}
		s.answers[d.Name] = answer
	}
	return Server{Name: name, Description: listed.Description, Serve: s.serve}, nil
}

func load(name string, into any) error {
	content, err := data.ReadFile("data/" + name)
	if err != nil {
		return err
	}
	return decode(content, into)
}

// decode decodes JSON with numbers as json.Number, because gojq supports integers of any size.
func decode(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	return d.Decode(into)
}

// answers runs the jq functions of one server on its state.
type answers struct {
	name string

	mu    sync.Mutex // held during a call
	state any        // guarded by mu
}

// start computes the initial state of the server from its data.
func (a *answers) start() error {
	var known any
	if err := load(a.name+".json", &known); err != nil {
		return err
	}
	code, err := a.compile("init")
	if err != nil {
		return err
	}
	a.state, err = first(code.Run(known, nil))
	return err
}

// compile compiles the call of a function in NAME.jq. In the jq function, the variable $a has the arguments of the call.
func (a *answers) compile(function string) (*gojq.Code, error) {
	program := ""
	for _, file := range []string{"prelude.jq", a.name + ".jq"} {
		text, err := data.ReadFile("data/" + file)
		if err != nil {
			return nil, err
		}
		program += string(text)
	}
	query, err := gojq.Parse(program + function)
	if err != nil {
		return nil, err
	}
	return gojq.Compile(query, gojq.WithVariables([]string{"$a"}))
}

// first returns the first output of a jq function. If the function calls error(TEXT), the error of first has this text.
func first(outputs gojq.Iter) (any, error) {
	v, ok := outputs.Next()
	if !ok {
		return nil, errors.New("no answer")
	}
	err, failed := v.(error)
	var fault gojq.ValueError
	switch {
	case errors.As(err, &fault): // the function called error(…)
		return nil, fmt.Errorf("%v", fault.Value())
	case failed:
		return nil, err
	}
	return v, nil
}

// tool is the implementation of a tool. given has the arguments of a call as a JSON object, and is empty if the call has none.
type tool func(given json.RawMessage) (mcp.CallToolResult, error)

// tool returns the implementation of a tool. It does not check the arguments against the input schema, as mcpx has done that.
func (a *answers) tool(d definition) (tool, error) {
	var schema struct {
		Properties map[string]struct{ Default any }
	}
	if err := decode(d.InputSchema, &schema); err != nil {
		return nil, err
	}
	defaults := map[string]any{}
	for name, p := range schema.Properties {
		if p.Default != nil {
			defaults[name] = p.Default
		}
	}
	compiled := sync.OnceValues(func() (*gojq.Code, error) { return a.compile(d.Name) })
	return func(given json.RawMessage) (mcp.CallToolResult, error) {
		args := maps.Clone(defaults)
		if len(given) > 0 {
			if err := decode(given, &args); err != nil {
				return mcp.CallToolResult{}, err
			}
		}
		code, err := compiled()
		if err != nil {
			return mcp.CallToolResult{}, err
		}
		value, err := a.run(code, args, *d.Annotations.ReadOnlyHint)
		if err != nil {
			return *mcp.NewToolResultError(err.Error()), nil
		}
		return result(value, d.OutputSchema != nil)
	}, nil
}

// run runs the jq function of a tool and returns its result. If the tool is not read-only, the jq function returns an object
// with the result and the new state, and run keeps the new state.
func (a *answers) run(code *gojq.Code, args map[string]any, readOnly bool) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, err := first(code.Run(a.state, args))
	if err != nil || readOnly {
		return value, err
	}
	changed := value.(map[string]any)
	a.state = changed["state"]
	return changed["result"], nil
}

// result returns a tool result in which value is pretty-printed JSON in a text block, as in most real servers. If value is a
// string, the text block has the string itself. If structured is true, a value that is not a string is also in
// structuredContent.
func result(value any, structured bool) (mcp.CallToolResult, error) {
	if text, ok := value.(string); ok {
		return *mcp.NewToolResultText(text), nil
	}
	var text bytes.Buffer
	compact, err := gojq.Marshal(value)
	if err == nil {
		err = json.Indent(&text, compact, "", "  ")
	}
	if err != nil {
		return mcp.CallToolResult{}, fmt.Errorf("encoding the result: %w", err)
	}
	r := *mcp.NewToolResultText(text.String())
	if structured {
		r.StructuredContent = json.RawMessage(compact)
	}
	return r, nil
}
