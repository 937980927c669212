package mcpx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx"
)

// greeter returns a server with one tool, made with mcp-go.
func greeter() mcpx.Server {
	s := server.NewMCPServer("greeter", "1.0.0")
	s.AddTool(mcp.NewTool("greet", mcp.WithDescription("Greets somebody"), mcp.WithString("name", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("Hello, " + r.GetString("name", "") + "!"), nil
		})
	return server.NewStdioServer(s).Listen
}

// A program calls a tool of a server that runs in it. Options.Config would add the servers of a config file.
func Example() {
	ctx := context.Background()
	gateway, err := mcpx.New(ctx, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gateway.Close()

	result, err := gateway.Call(ctx, "greeter", "greet", json.RawMessage(`{"name": "Ada"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var greeting struct{ Content []struct{ Text string } }
	_ = json.Unmarshal(result, &greeting) // what the server has sent is JSON
	fmt.Println(greeting.Content[0].Text)

	_, err = gateway.Call(ctx, "greeter", "greet", json.RawMessage(`{"nme": "Ada"}`))
	var refused *mcpx.Error
	fmt.Println(errors.As(err, &refused) && refused.Code == "VALIDATION_ERROR")
	fmt.Println(err)
	// Output:
	// Hello, Ada!
	// true
	// VALIDATION_ERROR: /name: is missing; /nme: is unknown; did you mean name?
	// Expected: type Args = {name: string};
}

// A client over a pair of streams sees the two tools. Here the client is an agent in the same program.
func ExampleGateway_Serve() {
	ctx := context.Background()
	gateway, err := mcpx.New(ctx, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gateway.Close()

	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	go gateway.Serve(ctx, in, out) // ends with Close

	agent := client.NewClient(transport.NewIO(fromGateway, toGateway, io.NopCloser(nil)))
	use(ctx, agent)
	// Output:
	// inspect
	// exec
	// Hello, Ada!
}

// An HTTP server of the program serves the gateway.
func ExampleGateway_Handler() {
	ctx := context.Background()
	gateway, err := mcpx.New(ctx, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gateway.Close()
	handler, err := gateway.Handler()
	if err != nil {
		fmt.Println(err)
		return
	}
	site := httptest.NewServer(handler)
	defer site.Close()

	agent, err := client.NewStreamableHttpClient(site.URL + "/mcp")
	if err != nil {
		fmt.Println(err)
		return
	}
	use(ctx, agent)
	// Output:
	// inspect
	// exec
	// Hello, Ada!
}

// use lists the tools of a gateway, and calls one through exec.
func use(ctx context.Context, agent *client.Client) {
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = mcp.Implementation{Name: "example", Version: "1.0.0"}
	if err := agent.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := agent.Initialize(ctx, hello); err != nil {
		fmt.Println(err)
		return
	}
	tools, err := agent.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range tools.Tools {
		fmt.Println(tool.Name)
	}
	var call mcp.CallToolRequest
	call.Params.Name = "exec"
	call.Params.Arguments = map[string]any{"server_name": "greeter", "tool_name": "greet", "arguments": map[string]any{"name": "Ada"}}
	result, err := agent.CallTool(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(mcp.TextContent).Text)
}
