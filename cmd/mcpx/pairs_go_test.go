//lint:file-ignore SA1019 The pairings also test methods that newer revisions of MCP deprecate.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goclient "github.com/mark3labs/mcp-go/client"
	gotransport "github.com/mark3labs/mcp-go/client/transport"
	gomcp "github.com/mark3labs/mcp-go/mcp"
	goserver "github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The servers and clients of the pairings that use the two Go SDKs. With the environment variable pairRole,
// the test binary runs as one of them. testdata/pypi/pair_server.py and pair_client.py describe what they do.
const pairRole = "MCPX_PAIR_ROLE"

func init() {
	var run func() error
	switch os.Getenv(pairRole) {
	case "go-sdk server":
		run = goSDKServer
	case "mcp-go server":
		run = mcpGoServer
	case "go-sdk client":
		run = goSDKClient
	case "mcp-go client":
		run = mcpGoClient
	default:
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pairKey are the arguments of the tools slow and cancelled.
type pairKey struct {
	Key string `json:"key"`
}

// pairSlow implements the tool slow, which waits until it is cancelled.
func pairSlow(ctx context.Context, key string) string {
	pairNote(key, "began")
	<-ctx.Done()
	pairNote(key, "cancelled")
	return "cancelled"
}

// pairNote records in a file what happened to a call.
func pairNote(key, state string) {
	if file, err := os.OpenFile(os.Getenv("PAIR_CANCELLED"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(file, key, state)
		_ = file.Close()
	}
}

// pairNoted reports whether pairNote has recorded this state of a call.
func pairNoted(key, state string) bool {
	data, _ := os.ReadFile(os.Getenv("PAIR_CANCELLED"))
	return slices.Contains(strings.Split(string(data), "\n"), key+" "+state)
}

// pairProgress implements the tool progress: it reports progress until the client has received some.
func pairProgress(key string, report func(n int)) string {
	n := 0
	if pairPatient(func() bool { n++; report(n); return pairNoted(key, "heard") }) {
		return "done"
	}
	return "not heard"
}

// pairCancelled implements the tool cancelled: it says what has happened to the call of slow with this key.
func pairCancelled(key string) string {
	for _, state := range []string{"cancelled", "began"} {
		if pairNoted(key, state) {
			return state
		}
	}
	return "not called"
}

// pairServe serves over HTTP on a free port until stdin ends. It prints the URL.
func pairServe(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	go func() { // ends with stdin, and ends the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, handler)
}

func pairOverHTTP() bool { return os.Args[len(os.Args)-1] == "http" }

const pairQuestion = "Your name?"

var pairSchema = map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"}}

func goSDKServer() error {
	thing := "pair://" + os.Getenv("PAIR_NAME")
	accept := func(context.Context, *sdk.SubscribeRequest) error { return nil }
	leave := func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
	s := sdk.NewServer(&sdk.Implementation{Name: "pair", Version: "1"}, &sdk.ServerOptions{SubscribeHandler: accept, UnsubscribeHandler: leave})
	s.AddResource(&sdk.Resource{URI: thing, Name: "thing"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: thing, Text: "a thing"}}}, nil
	})
	tool := func(name string, run func(ctx context.Context, r *sdk.CallToolRequest, key string) (string, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(ctx context.Context, r *sdk.CallToolRequest, in struct {
			Key string `json:"key,omitempty"`
		}) (*sdk.CallToolResult, any, error) {
			text, err := run(ctx, r, in.Key)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, err
		})
	}
	need := func(name string, ask sdk.InputRequest, answer func(sdk.InputResponse) string) {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			if q := r.Params.InputResponses["q"]; q != nil {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer(q)}}}, nil, nil
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": ask}}, nil, nil
		})
	}
	elicit := &sdk.ElicitParams{Message: pairQuestion, RequestedSchema: pairSchema}
	elicited := func(r *sdk.ElicitResult) string { return fmt.Sprint(r.Action, " ", r.Content["name"]) }
	sample := &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: pairQuestion}}}}
	sampled := func(c sdk.Content) string {
		text, _ := c.(*sdk.TextContent)
		return text.Text
	}
	tool("elicit", func(ctx context.Context, r *sdk.CallToolRequest, _ string) (string, error) {
		answer, err := r.Session.Elicit(ctx, elicit)
		if err != nil {
			return "", err
		}
		return elicited(answer), nil
	})
	tool("sample", func(ctx context.Context, r *sdk.CallToolRequest, _ string) (string, error) {
		answer, err := r.Session.CreateMessage(ctx, sample)
		if err != nil {
			return "", err
		}
		return sampled(answer.Content), nil
	})
	tool("roots", func(ctx context.Context, r *sdk.CallToolRequest, _ string) (string, error) {
		answer, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		return answer.Roots[0].URI, nil
	})
	need("need_elicit", elicit, func(a sdk.InputResponse) string { return elicited(a.(*sdk.ElicitResult)) })
	need("need_sample", sample, func(a sdk.InputResponse) string {
		switch a := a.(type) {
		case *sdk.CreateMessageResult:
			return sampled(a.Content)
		case *sdk.CreateMessageWithToolsResult:
			return sampled(a.Content[0])
		}
		return fmt.Sprintf("%T", a)
	})
	need("need_roots", &sdk.ListRootsParams{}, func(a sdk.InputResponse) string { return a.(*sdk.ListRootsResult).Roots[0].URI })
	tool("progress", func(ctx context.Context, r *sdk.CallToolRequest, key string) (string, error) {
		return pairProgress(key, func(n int) {
			if token := r.Params.GetProgressToken(); token != nil {
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n)})
			}
		}), nil
	})
	tool("heard", func(_ context.Context, _ *sdk.CallToolRequest, key string) (string, error) {
		pairNote(key, "heard")
		return "noted", nil
	})
	tool("slow", func(ctx context.Context, _ *sdk.CallToolRequest, key string) (string, error) {
		return pairSlow(ctx, key), nil
	})
	tool("cancelled", func(_ context.Context, _ *sdk.CallToolRequest, key string) (string, error) {
		return pairCancelled(key), nil
	})
	tool("touch", func(ctx context.Context, _ *sdk.CallToolRequest, _ string) (string, error) {
		return "touched", s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: thing})
	})
	if pairOverHTTP() {
		return pairServe(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	}
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

func mcpGoServer() error {
	thing := "pair://" + os.Getenv("PAIR_NAME")
	s := goserver.NewMCPServer("pair", "1", goserver.WithResourceCapabilities(true, false), goserver.WithElicitation(), goserver.WithRoots(), goserver.WithToolCapabilities(false))
	s.EnableSampling()
	s.AddResource(gomcp.NewResource(thing, "thing"), func(context.Context, gomcp.ReadResourceRequest) ([]gomcp.ResourceContents, error) {
		return []gomcp.ResourceContents{gomcp.TextResourceContents{URI: thing, Text: "a thing"}}, nil
	})
	tool := func(name string, run func(ctx context.Context, r gomcp.CallToolRequest) (string, error)) {
		s.AddTool(gomcp.NewTool(name, gomcp.WithString("key")), func(ctx context.Context, r gomcp.CallToolRequest) (*gomcp.CallToolResult, error) {
			text, err := run(ctx, r)
			if err != nil {
				return gomcp.NewToolResultError(err.Error()), nil
			}
			return gomcp.NewToolResultText(text), nil
		})
	}
	elicit := gomcp.ElicitationParams{Message: pairQuestion, RequestedSchema: pairSchema}
	elicited := func(r *gomcp.ElicitationResult) string {
		content, _ := r.Content.(map[string]any)
		return fmt.Sprint(r.Action, " ", content["name"])
	}
	sample := gomcp.CreateMessageParams{MaxTokens: 10, Messages: []gomcp.SamplingMessage{{Role: "user", Content: gomcp.NewTextContent(pairQuestion)}}}
	sampled := func(r *gomcp.CreateMessageResult) string {
		text, _ := json.Marshal(r.Content)
		return string(text)
	}
	tool("elicit", func(ctx context.Context, _ gomcp.CallToolRequest) (string, error) {
		answer, err := s.RequestElicitation(ctx, gomcp.ElicitationRequest{Params: elicit})
		if err != nil {
			return "", err
		}
		return elicited(answer), nil
	})
	tool("sample", func(ctx context.Context, _ gomcp.CallToolRequest) (string, error) {
		answer, err := s.RequestSampling(ctx, gomcp.CreateMessageRequest{CreateMessageParams: sample})
		if err != nil {
			return "", err
		}
		return sampled(answer), nil
	})
	tool("roots", func(ctx context.Context, _ gomcp.CallToolRequest) (string, error) {
		answer, err := s.RequestRoots(ctx, gomcp.ListRootsRequest{})
		if err != nil {
			return "", err
		}
		return answer.Roots[0].URI, nil
	})
	need := func(name string, ask func(*goserver.InputRequestBuilder) *goserver.InputRequestBuilder, answer func(gomcp.InputResponses) string) {
		s.AddTool(gomcp.NewTool(name), func(_ context.Context, r gomcp.CallToolRequest) (*gomcp.CallToolResult, error) {
			if _, ok := goserver.InputResponse(r.Params.InputResponses, "q"); ok {
				return gomcp.NewToolResultText(answer(r.Params.InputResponses)), nil
			}
			return ask(goserver.NewInputRequestBuilder("state")).ToolResult(), nil
		})
	}
	need("need_elicit", func(b *goserver.InputRequestBuilder) *goserver.InputRequestBuilder { return b.Elicit("q", elicit) },
		func(a gomcp.InputResponses) string { return elicited(goserver.ElicitationResponse(a, "q")) })
	need("need_sample", func(b *goserver.InputRequestBuilder) *goserver.InputRequestBuilder { return b.Sample("q", sample) },
		func(a gomcp.InputResponses) string { return sampled(goserver.SamplingResponse(a, "q")) })
	need("need_roots", func(b *goserver.InputRequestBuilder) *goserver.InputRequestBuilder { return b.Roots("q") },
		func(a gomcp.InputResponses) string { return goserver.RootsResponse(a, "q").Roots[0].URI })
	tool("progress", func(ctx context.Context, r gomcp.CallToolRequest) (string, error) {
		return pairProgress(r.GetString("key", ""), func(n int) {
			if meta := r.Params.Meta; meta != nil && meta.ProgressToken != nil {
				_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": meta.ProgressToken, "progress": n})
			}
		}), nil
	})
	tool("heard", func(_ context.Context, r gomcp.CallToolRequest) (string, error) {
		pairNote(r.GetString("key", ""), "heard")
		return "noted", nil
	})
	tool("slow", func(ctx context.Context, r gomcp.CallToolRequest) (string, error) {
		return pairSlow(ctx, r.GetString("key", "")), nil
	})
	tool("cancelled", func(_ context.Context, r gomcp.CallToolRequest) (string, error) {
		return pairCancelled(r.GetString("key", "")), nil
	})
	tool("touch", func(context.Context, gomcp.CallToolRequest) (string, error) {
		s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": thing})
		return "touched", nil
	})
	if pairOverHTTP() {
		return pairServe(goserver.NewStreamableHTTPServer(s))
	}
	return goserver.ServeStdio(s)
}

// pairTarget is a server that a client reaches through its connection.
type pairTarget struct {
	Server string // the server's name in what the client prints
	Prefix string // the prefix of the names of the server's tools
	Thing  string // the URI of the server's resource
}

// pairClient is a client that the pairings test.
type pairClient interface {
	tools(ctx context.Context) ([]string, error)
	// call calls a tool. If progressed is not nil, it counts the progress notifications.
	call(ctx context.Context, tool string, arguments any, progressed *atomic.Int64) (string, error)
	subscribe(ctx context.Context, uri string) error
	updates(uri string) bool // whether an update of the resource was received
}

// pairRun checks what works with each server, and prints a line for each.
func pairRun(c pairClient) error {
	var targets []pairTarget
	if err := json.Unmarshal([]byte(os.Getenv("PAIR_TARGETS")), &targets); err != nil {
		return err
	}
	ctx := context.Background()
	tools, err := c.tools(ctx)
	if err != nil {
		return err
	}
	for _, target := range targets {
		line, _ := json.Marshal(map[string]any{"server": target.Server, "results": pairChecks(ctx, c, tools, target)})
		fmt.Println(string(line))
	}
	return nil
}

// pairPatient waits until done returns true, for at most a minute.
func pairPatient(done func() bool) bool {
	late, again := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-late:
			return false
		}
	}
	return true
}

func pairChecks(ctx context.Context, c pairClient, tools []string, target pairTarget) map[string]string {
	name := os.Getenv("PAIR_CLIENT")
	results := make(map[string]string)
	has := func(tool string) bool { return slices.Contains(tools, target.Prefix+tool) }
	call := func(tool string, arguments any, progressed *atomic.Int64) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return c.call(ctx, target.Prefix+tool, arguments, progressed)
	}
	report := func(check, want, got string, err error) {
		switch {
		case err != nil:
			results[check] = err.Error()
		case !strings.Contains(got, want):
			results[check] = got
		default:
			results[check] = "ok"
		}
	}
	for check, want := range map[string]string{"elicit": "accept " + name, "sample": "sampled by " + name, "roots": "file:///home/" + name} {
		for _, tool := range []string{check, "need_" + check} {
			if has(tool) {
				got, err := call(tool, struct{}{}, nil)
				report(tool, want, got, err)
			}
		}
	}
	var progressed atomic.Int64
	key := fmt.Sprintf("%s-%s-%d", name, target.Server, time.Now().UnixNano())
	var working sync.WaitGroup
	var over atomic.Bool
	var failure error
	working.Go(func() {
		defer over.Store(true)
		_, failure = call("progress", pairKey{key}, &progressed)
	})
	pairPatient(func() bool { return progressed.Load() > 0 || over.Load() })
	came := progressed.Load() > 0
	_, err := call("heard", pairKey{key}, nil)
	working.Wait()
	report("progress", "true", fmt.Sprint(came), cmp.Or(failure, err))
	report("cancel", "the server heard", pairCancel(ctx, c, target), nil)
	if has("touch") {
		report("updates", "heard", pairUpdates(ctx, c, target), nil)
	}
	return results
}

func pairCancel(ctx context.Context, c pairClient, target pairTarget) string {
	key := fmt.Sprintf("%s-%s-%d", os.Getenv("PAIR_CLIENT"), target.Server, time.Now().UnixNano())
	got, err := "", error(nil)
	says := func(state string) func() bool {
		return func() bool {
			got, err = c.call(ctx, target.Prefix+"cancelled", pairKey{key}, nil)
			return err != nil || strings.Contains(got, state)
		}
	}
	called, cancel := context.WithCancel(ctx)
	var slow sync.WaitGroup
	slow.Go(func() { _, _ = c.call(called, target.Prefix+"slow", pairKey{key}, nil) })
	pairPatient(says("began"))
	cancel()
	slow.Wait()
	switch heard := pairPatient(says("cancelled")); {
	case err != nil:
		return err.Error()
	case heard:
		return "the server heard"
	}
	return "nothing: " + got
}

func pairUpdates(ctx context.Context, c pairClient, target pairTarget) string {
	if err := c.subscribe(ctx, target.Thing); err != nil {
		return err.Error()
	}
	var err error
	came := pairPatient(func() bool {
		_, err = c.call(ctx, target.Prefix+"touch", struct{}{}, nil)
		return err != nil || c.updates(target.Thing)
	})
	switch {
	case err != nil:
		return err.Error()
	case came:
		return "heard"
	}
	return "nothing came"
}

// pairArgs returns the arguments of a client: its era, its transport (stdio or http), and the command or URL
// to connect to.
func pairArgs() (era, over string, target []string) {
	at := slices.Index(os.Args, "--") + 1
	return os.Args[at], os.Args[at+1], os.Args[at+2:]
}

// heard holds the resources for which an update was received.
type heard struct{ uris [64]atomic.Pointer[string] }

func (h *heard) add(uri string) {
	for i := range h.uris {
		if at := h.uris[i].Load(); at != nil && *at == uri || h.uris[i].CompareAndSwap(nil, &uri) {
			return
		}
	}
}

func (h *heard) updates(uri string) bool {
	for i := range h.uris {
		if at := h.uris[i].Load(); at != nil && *at == uri {
			return true
		}
	}
	return false
}

type goSDKPair struct {
	session    *sdk.ClientSession
	progressed *atomic.Pointer[atomic.Int64]
	heard
}

func goSDKClient() error {
	name := os.Getenv("PAIR_CLIENT")
	c := &goSDKPair{progressed: &atomic.Pointer[atomic.Int64]{}}
	client := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
		},
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "sampled by " + name}}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { c.add(r.Params.URI) },
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
			if n := c.progressed.Load(); n != nil {
				n.Add(1)
			}
		},
	})
	client.AddRoots(&sdk.Root{URI: "file:///home/" + name, Name: name})
	era, over, target := pairArgs()
	options := &sdk.ClientSessionOptions{}
	if era == "legacy" {
		options.ProtocolVersion = "2025-11-25"
	}
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: target[0]}
	if over == "stdio" {
		command := exec.Command(target[0], target[1:]...)
		command.Stderr, command.Env = os.Stderr, pairEnv()
		transport = &sdk.CommandTransport{Command: command}
	}
	var err error
	if c.session, err = client.Connect(context.Background(), transport, options); err != nil {
		return err
	}
	defer c.session.Close()
	return pairRun(c)
}

// pairEnv returns the environment for programs that a client starts, without pairRole.
func pairEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, pairRole+"=") })
}

func (c *goSDKPair) tools(ctx context.Context) (names []string, err error) {
	for tool, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c *goSDKPair) call(ctx context.Context, tool string, arguments any, progressed *atomic.Int64) (string, error) {
	params := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	if progressed != nil {
		c.progressed.Store(progressed)
		params.SetProgressToken("token")
	}
	result, err := c.session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(result.Content)
	return string(text), err
}

func (c *goSDKPair) subscribe(ctx context.Context, uri string) error {
	return c.session.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
}

type mcpGoPair struct {
	client     *goclient.Client
	name       string
	modern     bool
	progressed atomic.Pointer[atomic.Int64]
	heard
}

func mcpGoClient() error {
	c := &mcpGoPair{name: os.Getenv("PAIR_CLIENT")}
	era, over, target := pairArgs()
	c.modern = era == "modern"
	options := []goclient.ClientOption{goclient.WithElicitationHandler(c), goclient.WithSamplingHandler(c), goclient.WithRootsHandler(c)}
	if !c.modern {
		options = append(options, goclient.WithLegacyProtocolOnly())
	}
	var transport gotransport.Interface
	if over == "stdio" {
		transport = gotransport.NewStdio(target[0], pairEnv(), target[1:]...)
	} else {
		var more []gotransport.StreamableHTTPCOption
		if !c.modern {
			more = append(more, gotransport.WithContinuousListening())
		}
		var err error
		if transport, err = gotransport.NewStreamableHTTP(target[0], more...); err != nil {
			return err
		}
	}
	c.client = goclient.NewClient(transport, options...)
	c.client.OnNotification(func(n gomcp.JSONRPCNotification) {
		switch n.Method {
		case "notifications/progress":
			if count := c.progressed.Load(); count != nil {
				count.Add(1)
			}
		case "notifications/resources/updated":
			uri, _ := n.Params.AdditionalFields["uri"].(string)
			c.add(uri)
		}
	})
	if err := c.client.Start(context.Background()); err != nil {
		return err
	}
	var hello gomcp.InitializeRequest
	hello.Params.ClientInfo = gomcp.Implementation{Name: c.name, Version: "1"}
	hello.Params.ProtocolVersion = gomcp.LATEST_PROTOCOL_VERSION
	if !c.modern {
		hello.Params.ProtocolVersion = gomcp.LATEST_LEGACY_PROTOCOL_VERSION
	}
	if _, err := c.client.Initialize(context.Background(), hello); err != nil {
		return err
	}
	defer c.client.Close()
	return pairRun(c)
}

// Elicit implements [goclient.ElicitationHandler].
func (c *mcpGoPair) Elicit(context.Context, gomcp.ElicitationRequest) (*gomcp.ElicitationResult, error) {
	return &gomcp.ElicitationResult{ElicitationResponse: gomcp.ElicitationResponse{Action: "accept", Content: map[string]any{"name": c.name}}}, nil
}

// CreateMessage implements [goclient.SamplingHandler].
func (c *mcpGoPair) CreateMessage(context.Context, gomcp.CreateMessageRequest) (*gomcp.CreateMessageResult, error) {
	return &gomcp.CreateMessageResult{Model: "m", SamplingMessage: gomcp.SamplingMessage{Role: "assistant", Content: gomcp.NewTextContent("sampled by " + c.name)}}, nil
}

// ListRoots implements [goclient.RootsHandler].
func (c *mcpGoPair) ListRoots(context.Context, gomcp.ListRootsRequest) (*gomcp.ListRootsResult, error) {
	return &gomcp.ListRootsResult{Roots: []gomcp.Root{{URI: "file:///home/" + c.name, Name: c.name}}}, nil
}

func (c *mcpGoPair) tools(ctx context.Context) (names []string, err error) {
	all, err := c.client.ListTools(ctx, gomcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	for _, tool := range all.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c *mcpGoPair) call(ctx context.Context, tool string, arguments any, progressed *atomic.Int64) (string, error) {
	var r gomcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, arguments
	if progressed != nil {
		c.progressed.Store(progressed)
		r.Params.Meta = &gomcp.Meta{ProgressToken: "token"}
	}
	result, err := c.client.CallTool(ctx, r)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(result.Content)
	return string(text), err
}

func (c *mcpGoPair) subscribe(ctx context.Context, uri string) error {
	if !c.modern {
		var r gomcp.SubscribeRequest
		r.Params.URI = uri
		return c.client.Subscribe(ctx, r)
	}
	failed := make(chan error, 1)
	go func() { // the goroutine ends with the process
		failed <- c.client.Listen(ctx, gomcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	}()
	select {
	case err := <-failed:
		return errors.Join(errors.New("listening ended"), err)
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}
