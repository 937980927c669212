package mcptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultTools are the definitions of the tools that the method run implements.
const defaultTools = `[
{"name":"echo","description":"Answers the text.","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What to answer."}},"required":["text"]}},
{"name":"add","description":"Adds two numbers and answers {\"sum\":…} as JSON text.","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}},
{"name":"slow","description":"Answers after ms milliseconds.","inputSchema":{"type":"object","properties":{"ms":{"type":"integer","minimum":0,"default":1000}}}},
{"name":"fail","description":"Fails, as a tool does: a result with isError.","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}}},
{"name":"rpc_error","description":"Fails, as a server does: the JSON-RPC error -32050 with data.","inputSchema":{"type":"object"}},
{"name":"content","description":"Answers one block of every kind, and what typed clients do not know.","inputSchema":{"type":"object","properties":{"known":{"type":"boolean","description":"Leave out what no revision of MCP has."}}}},
{"name":"bare","description":"Answers structuredContent and no content at all.","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"id":{"type":"integer"}}}},
{"name":"table","description":"Answers rows of a table as pretty-printed JSON.","inputSchema":{"type":"object","properties":{"rows":{"type":"integer","minimum":0,"default":10}}}},
{"name":"big","description":"Answers a text of so many bytes; below 0 without an end.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"}}}},
{"name":"progress","description":"Reports progress in steps, then answers.","inputSchema":{"type":"object","properties":{"steps":{"type":"integer","default":3},"ms":{"type":"integer","default":0,"description":"Between two steps."}}}},
{"name":"pid","description":"Answers the id of its process.","inputSchema":{"type":"object"}},
{"name":"crash","description":"Ends the server during the call.","inputSchema":{"type":"object","properties":{"partial":{"type":"boolean","description":"Write half an answer first."}}}},
{"name":"ask","description":"Asks the user for a word before it answers.","inputSchema":{"type":"object"}},
{"name":"notify","description":"Sends a notification so many times, then answers.","inputSchema":{"type":"object","properties":{"method":{"type":"string","default":"notifications/tools/list_changed"},"params":{"type":"object"},"times":{"type":"integer","default":1},"mine":{"type":"boolean","description":"On the stream of this call instead of to everybody."}}}},
{"name":"raw","description":"Answers the JSON in the string result as its result, byte for byte.","inputSchema":{"type":"object","properties":{"result":{"type":"string"}},"required":["result"]}},
{"name":"read_echo","description":"Answers the text; declared read-only.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"title":"Read echo","readOnlyHint":true,"x-custom":"kept"}},
{"name":"idempotent_echo","description":"Answers the text; declared idempotent.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":false,"idempotentHint":true}},
{"name":"destroy_echo","description":"Answers the text; declared destructive.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"destructiveHint":true}}
]`

// DefaultTools returns the tools of a fake whose Spec.Tools is nil, as a raw JSON array:
//
//   - echo {text} answers with the text. read_echo, idempotent_echo and destroy_echo do the same, but have other
//     annotations, and obey Spec.CrashFile.
//   - add {a, b} answers with the JSON text {"sum":…}. It is exact for integers of any size.
//   - slow {ms, while} answers after ms milliseconds, and after the file named by while is gone. If it is cancelled,
//     it does not answer.
//   - fail {message} answers with a result with isError. rpc_error answers with the error -32050 with data.
//   - content {known} answers with ContentResult or KnownContentResult.
//   - bare answers with structuredContent, without content.
//   - table {rows} answers with TableText as one text block.
//   - big {bytes} answers with one text of that many letters x.
//   - progress {steps, ms} sends that many notifications for the progress token of the request.
//   - pid answers with the process ID as text.
//   - crash {partial} ends the fake during the call.
//   - ask asks the user for a word by elicitation: in the legacy era with a request, in the modern era with an
//     input_required result.
//   - notify {method, params, times, mine} sends notifications.
//   - raw {result} answers with the JSON in that string as the result.
func DefaultTools() json.RawMessage { return json.RawMessage(defaultTools) }

// args has the arguments of all default tools.
type args struct {
	Text    *string         `json:"text"`
	A       json.Number     `json:"a"`
	B       json.Number     `json:"b"`
	MS      int             `json:"ms"`
	While   string          `json:"while"`
	Message string          `json:"message"`
	Known   bool            `json:"known"`
	Rows    *int            `json:"rows"`
	Bytes   *int64          `json:"bytes"`
	Steps   *int            `json:"steps"`
	Partial bool            `json:"partial"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Times   *int            `json:"times"`
	Mine    bool            `json:"mine"`
	Result  string          `json:"result"`
}

// callTool answers a tools/call: with what the Spec says for the tool, or by executing the tool.
func (s *server) callTool(c *call) answer {
	name := c.params.Name
	if slices.Contains(s.spec.HangTools, name) { // even if the tool is not in tools/list
		s.executed(c)
		<-c.ctx.Done()
		return answer{silent: true}
	}
	if offered, err := s.definitions(); err != nil || !offered.names[name] {
		return fails(-32602, "Unknown tool: "+name)
	}
	var a args
	raw := c.params.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return fails(-32602, "Invalid arguments: "+err.Error())
	}
	s.executed(c)
	if r, ok := s.spec.Results[name]; ok {
		return result(string(oneLine(r)))
	}
	return s.run(c, name, a, raw)
}

func (s *server) executed(c *call) {
	s.rec.add(Entry{Event: EventCall, Session: c.ses.id, ID: json.RawMessage(c.id), Tool: c.params.Name, Message: keptArguments(c.params.Arguments)})
}

func keptArguments(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxMessage {
		return nil
	}
	return raw
}

// run runs one tool. It contains the code of every tool.
func (s *server) run(c *call, name string, a args, raw json.RawMessage) answer {
	switch name {
	case "echo":
		return echo(a)
	case "read_echo", "idempotent_echo", "destroy_echo":
		if s.spec.CrashFile != "" && os.Remove(s.spec.CrashFile) == nil {
			s.leave(s.spec.ExitCode)
			return answer{silent: true}
		}
		return echo(a)
	case "add":
		return textResult(`{"sum":` + sum(a.A, a.B) + `}`)
	case "slow":
		c.pause(time.Duration(a.MS) * time.Millisecond)
		for a.While != "" && c.ctx.Err() == nil {
			if _, err := os.Stat(a.While); err != nil {
				break
			}
			c.pause(5 * time.Millisecond)
		}
		return textResult(fmt.Sprintf("slept %d ms", a.MS))
	case "fail":
		if a.Message == "" {
			a.Message = "this tool always fails"
		}
		return toolError(a.Message)
	case "rpc_error":
		return answer{err: &rpcError{code: -32050, message: "told to fail", data: `{"reason":"test","limit":9007199254740993}`}}
	case "content":
		if a.Known {
			return result(KnownContentResult)
		}
		return result(ContentResult)
	case "bare":
		return result(`{"structuredContent":{"id":9007199254740993,"rate":1.10}}`)
	case "table":
		return textResult(TableText(or(a.Rows, 10)))
	case "big":
		size := or(a.Bytes, s.spec.HugeLine)
		if size == 0 {
			size = 1 << 20
		}
		return answer{result: message{head: []byte(`{"content":[{"type":"text","text":"`), fill: size, tail: []byte(`"}]}`)}}
	case "progress":
		return s.steps(c, a)
	case "pid":
		return textResult(strconv.Itoa(os.Getpid()))
	case "crash":
		return s.crash(c, a)
	case "ask":
		return s.ask(c)
	case "notify":
		return s.notifyTool(c, a)
	case "raw":
		return result(string(oneLine(json.RawMessage(a.Result))))
	}
	return textResult(string(raw))
}

func or[T any](p *T, d T) T {
	if p == nil {
		return d
	}
	return *p
}

func echo(a args) answer {
	if a.Text == nil {
		return fails(-32602, "Invalid arguments: text is required")
	}
	return textResult(*a.Text)
}

// sum adds two numbers. The result is exact if both are integers.
func sum(a, b json.Number) string {
	x, okX := new(big.Int).SetString(a.String(), 10)
	y, okY := new(big.Int).SetString(b.String(), 10)
	if okX && okY {
		return x.Add(x, y).String()
	}
	f, _ := a.Float64()
	g, _ := b.Float64()
	return strconv.FormatFloat(f+g, 'g', -1, 64)
}

func progress(token json.RawMessage, n float64, total string) message {
	p := `{"progressToken":` + string(token) + `,"progress":` + strconv.FormatFloat(n, 'g', -1, 64)
	if total != "" {
		p += `,"total":` + total
	}
	return notification("notifications/progress", p+`,"message":`+quote(fmt.Sprintf("step %g", n))+`}`)
}

func (s *server) steps(c *call, a args) answer {
	steps := or(a.Steps, 3)
	for n := 1; n <= steps; n++ {
		if !c.pause(time.Duration(a.MS) * time.Millisecond) {
			return answer{silent: true}
		}
		if token := c.params.Meta.ProgressToken; len(token) > 0 {
			if c.note(progress(token, float64(n), strconv.Itoa(steps))) != nil {
				return answer{silent: true}
			}
		}
	}
	return textResult(fmt.Sprintf("did %d steps", steps))
}

func (s *server) crash(c *call, a args) answer {
	if a.Partial {
		whole := textResult("never complete").with(c.id)
		c.note(message{head: whole.head[:len(whole.head)/2], cut: true}) // an error does not matter, since the fake ends now
	}
	s.leave(s.spec.ExitCode)
	return answer{silent: true}
}

func (s *server) notifyTool(c *call, a args) answer {
	if a.Method == "" {
		a.Method = "notifications/tools/list_changed"
	}
	if len(a.Params) == 0 {
		a.Params = json.RawMessage(`{}`)
	}
	times := or(a.Times, 1)
	for range times {
		if c.ctx.Err() != nil {
			return answer{silent: true}
		}
		if a.Mine {
			c.note(notification(a.Method, string(oneLine(a.Params))))
			continue
		}
		s.notify(a.Method, string(oneLine(a.Params)))
	}
	return textResult(fmt.Sprintf("sent %d", times))
}

const elicitation = `{"message":"Which word?","requestedSchema":{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}}`

// ask asks the user for a word: in the legacy era with a request of its own, in the modern era with an input_required
// result.
func (s *server) ask(c *call) answer {
	switch {
	case c.modern && s.spec.AskEra == EraLegacy:
		return toolError("server-initiated requests are unavailable on 2026-07-28 connections") // the error of FastMCP 4
	case c.modern:
		return s.askModern(c)
	case s.spec.AskEra == EraModern:
		return fails(-32603, "Handler returned an invalid result") // the error of the Python SDK 2
	}
	c.ses.mu.Lock()
	elicits := c.ses.elicits
	c.ses.mu.Unlock()
	if !elicits {
		return toolError("the client does not elicit")
	}
	s.mu.Lock()
	s.asks++
	id := quote("ask-" + strconv.Itoa(s.asks))
	s.mu.Unlock()
	answers := make(chan envelope, 1)
	c.ses.mu.Lock()
	c.ses.asked[id] = answers
	c.ses.mu.Unlock()
	if err := c.note(text(`{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":` + elicitation + `}`)); err != nil {
		return toolError("asking: " + err.Error())
	}
	select {
	case env := <-answers:
		if len(env.Error) > 0 {
			return toolError("refused: " + string(env.Error))
		}
		return textResult("answered: " + string(env.Result))
	case <-c.ctx.Done():
		return answer{silent: true}
	}
}

// askState is the requestState of the tool ask. It contains the process ID, so another process does not accept it.
var askState = fmt.Sprintf("state of ask \u00e9 \"%d\"", os.Getpid())

func (s *server) askModern(c *call) answer {
	if _, ok := c.params.Meta.Capabilities["elicitation"]; !ok {
		a := fails(-32021, "Missing required client capability")
		a.err.data = `{"requiredCapabilities":{"elicitation":{}}}`
		return a
	}
	if len(c.params.InputResponses) == 0 {
		return result(`{"resultType":"input_required","inputRequests":{"word":{"method":"elicitation/create","params":` +
			elicitation + `}},"requestState":` + quote(askState) + `}`)
	}
	if c.params.RequestState != askState {
		return fails(-32602, "Invalid requestState")
	}
	return textResult("answered: " + string(c.params.InputResponses))
}

// TableText returns the result of the tool table: a pretty-printed JSON array of objects with the same keys.
func TableText(rows int) string {
	var b strings.Builder
	b.WriteString("[")
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n  {\n    \"id\": %d,\n    \"name\": \"row %d\",\n    \"price\": %d.10,\n    \"active\": %t\n  }",
			9007199254740993+i, i, i, i%2 == 0)
	}
	if rows > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("]")
	return b.String()
}

// oneLine returns JSON without line breaks, so that it fits into a line of the stdio transport. Text that is not JSON
// is returned unchanged.
func oneLine(raw json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
