package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/wire"
)

// serverSpec describes one of the servers that all gateways get. Such a server does as little as possible, so that only the
// gateway takes time. internal/mcptest has fakes with more faults; they write a log and are slower, and only tests may import
// them.
type serverSpec struct {
	Name, Instructions string
	Tools              []json.RawMessage          // in addition to echo and pid
	Results            map[string]json.RawMessage // raw results of tools, by the name of the tool
	Noise              bool                       // whether to write lines to stdout that are not messages
	// Storm is how many notifications of a changed list the server sends each second, after the tool storm was called.
	Storm int
}

// common are the tools of every server.
var common = []string{
	`{"name":"echo","description":"Returns its text.",` +
		`"inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`,
	`{"name":"pid","description":"Returns the id of the process.","inputSchema":{"type":"object","properties":{}}}`,
}

const protocolVersion = "2025-06-18"

// server answers the messages of one client over stdio, or of all clients over HTTP.
type server struct {
	spec  serverSpec
	list  []byte            // result of tools/list
	push  func(line []byte) // writes a line over stdio; nil over HTTP
	storm sync.Once
}

// serve makes this process a server, whose serverSpec is in file. It serves over HTTP if address is not empty, otherwise over
// stdio. It ends when stdin is closed.
func serve(file, address string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s := &server{}
	if err := json.Unmarshal(data, &s.spec); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.list = toolList(s.spec)
	if address == "" {
		return s.stdio(os.Stdin, os.Stdout)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, s)
}

func toolList(spec serverSpec) []byte {
	all := slices.Clone(common)
	for _, tool := range spec.Tools {
		all = append(all, string(tool))
	}
	var out bytes.Buffer
	_ = json.Compact(&out, []byte(`{"tools":[`+strings.Join(all, ",")+`]}`)) // the code that makes a spec checks its JSON
	return out.Bytes()
}

func (s *server) stdio(in io.Reader, out io.Writer) error {
	var lock sync.Mutex
	s.push = func(line []byte) {
		lock.Lock()
		defer lock.Unlock()
		if s.spec.Noise {
			_, _ = io.WriteString(out, "Listening...\n\n{\"level\":\"info\",\"msg\":\"ready\"}\n{broken\n")
		}
		_, _ = out.Write(line)
	}
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if answer := s.answer(line); answer != nil {
			s.push(append(answer, '\n'))
		}
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer := s.answer(body)
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
}

// answer returns the response to a message, or nil if the message gets none.
func (s *server) answer(line []byte) []byte {
	m, err := wire.Parse(line)
	if err != nil || m.ID == nil || m.Method == "" {
		return nil
	}
	reply := func(kind, value string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"` + kind + `":` + value + `}`)
	}
	switch m.Method {
	case "initialize":
		return reply("result",
			`{"protocolVersion":"`+protocolVersion+`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":`+
				string(wire.Encode(s.spec.Name))+`,"version":"1.0.0"},"instructions":`+string(wire.Encode(s.spec.Instructions))+`}`)
	case "ping":
		return reply("result", `{}`)
	case "tools/list":
		return reply("result", string(s.list))
	case "tools/call":
		if result := s.call(wire.MemberText(m.Params, "name"), wire.Member(m.Params, "arguments")); result != "" {
			return reply("result", result)
		}
		return nil
	}
	return reply("error", `{"code":-32601,"message":"Method not found"}`)
}

// call returns the result of a tool. "" means that the server never answers.
func (s *server) call(name string, args json.RawMessage) string {
	if result, ok := s.spec.Results[name]; ok {
		return string(result)
	}
	switch name {
	case "echo":
		return textResult(wire.MemberText(args, "text"))
	case "pid":
		return textResult(strconv.Itoa(os.Getpid()))
	case "hang":
		return ""
	case "huge":
		return textResult(strings.Repeat("x", 100<<20))
	case "storm":
		s.storm.Do(func() { go s.announce() })
		return textResult("it begins")
	}
	return textResult("called " + name)
}

// announce sends notifications of changed lists until the process ends. Over HTTP, where push is nil, it does nothing.
func (s *server) announce() {
	for s.push != nil {
		s.push([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"))
		time.Sleep(time.Second / time.Duration(max(1, s.spec.Storm)))
	}
}

func textResult(text string) string {
	return `{"content":[` + string(wire.TextBlock(text)) + `]}`
}
