// Package demo has the sample servers of mcpx demo, in the process: thirty tools
// with schemas and answers such as real servers have. A server is data: what it
// lists (data/NAME.tools.json), what it knows (NAME.json) and how it answers from
// that (NAME.jq, one function a tool). Everything is deterministic, and nothing is
// kept beyond the process.
package demo

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/itchyny/gojq"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Server is one sample server. Its state belongs to the value that [Servers]
// returned: sessions share it, one after another or at the same time.
type Server struct {
	Name string
	// Description is what the server is for, in one sentence.
	Description string
	// Serve speaks newline-delimited JSON-RPC on in and out until in ends or ctx
	// is done, both eras of the protocol. When ctx is done, in and out are closed
	// where they are io.Closers, since nothing else ends a blocked read or write.
	// Requests are answered one after another, and all before it returns.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error
}

//go:embed data
var data embed.FS

// Servers makes the sample servers, sorted by name, in their first state.
func Servers() []Server {
	var all []Server
	for _, name := range []string{"cities", "notes", "tasks", "units", "weather"} {
		s, err := sample(name)
		if err != nil {
			panic(fmt.Errorf("the demo's server %s: %w", name, err)) // a fault of data, which the tests see
		}
		all = append(all, s)
	}
	return all
}

// definition is a tool in NAME.tools.json.
type definition struct {
	Name, Description         string
	Annotations               mcp.ToolAnnotation
	InputSchema, OutputSchema json.RawMessage
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
	s := server.NewMCPServer(name, "1.0.0", server.WithToolCapabilities(false),
		server.WithInstructions(listed.Description), server.WithInputSchemaValidation())
	for _, d := range listed.Tools {
		answer, err := answers.tool(d)
		if err != nil {
			return Server{}, err
		}
		t := mcp.NewToolWithRawSchema(d.Name, d.Description, d.InputSchema)
		t.Annotations, t.RawOutputSchema = d.Annotations, d.OutputSchema
		s.AddTool(t, answer)
	}
	return Server{Name: name, Description: listed.Description, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, s, in, out)
	}}, nil
}

func load(name string, into any) error {
	content, err := data.ReadFile("data/" + name)
	if err != nil {
		return err
	}
	return decode(content, into)
}

// decode keeps numbers as they are written: gojq computes with integers of any size.
func decode(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	return d.Decode(into)
}

// answers runs the filters of one server over its state.
type answers struct {
	name string

	mu    sync.Mutex // one call at a time
	state any        // guarded by mu
}

// start reads what the server knows.
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

// compile compiles the function of that name in NAME.jq.
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

// first is the one output of a filter.
func first(outputs gojq.Iter) (any, error) {
	v, ok := outputs.Next()
	if !ok {
		return nil, errors.New("no answer")
	}
	err, failed := v.(error)
	var fault gojq.ValueError
	switch {
	case errors.As(err, &fault): // of error(…) in the filter
		return nil, fmt.Errorf("%v", fault.Value())
	case failed:
		return nil, err
	}
	return v, nil
}

// tool is what answers calls of d. mcp-go has checked the arguments before.
func (a *answers) tool(d definition) (server.ToolHandlerFunc, error) {
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
	return func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args := maps.Clone(defaults)
		given, err := json.Marshal(r.GetArguments())
		if err == nil {
			err = decode(given, &args)
		}
		if err != nil {
			return nil, err
		}
		code, err := compiled()
		if err != nil {
			return nil, err
		}
		value, err := a.run(code, args, *d.Annotations.ReadOnlyHint)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return result(value, d.OutputSchema != nil)
	}, nil
}

// run answers one call. A tool that is not read-only gives a new state as well.
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

// result is a value as pretty-printed JSON in a text block, as most real servers
// send it, and as structuredContent where the tool declares its shape. A string
// stays text.
func result(value any, structured bool) (*mcp.CallToolResult, error) {
	if text, ok := value.(string); ok {
		return mcp.NewToolResultText(text), nil
	}
	compact, err := gojq.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	r := mcp.NewToolResultText(text.String())
	if structured {
		r.StructuredContent = json.RawMessage(compact)
	}
	return r, nil
}

// maxLine is far above what any argument of a demo tool needs.
const maxLine = 4 << 20

// serve is [Server.Serve] over an mcp-go server.
func serve(ctx context.Context, s *server.MCPServer, in io.Reader, out io.Writer) error {
	defer context.AfterFunc(ctx, func() {
		for _, end := range []any{in, out} {
			if c, ok := end.(io.Closer); ok {
				c.Close()
			}
		}
	})()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		response := s.HandleMessage(ctx, lines.Bytes())
		if response == nil {
			continue
		}
		line, err := json.Marshal(response)
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lines.Err()
}
