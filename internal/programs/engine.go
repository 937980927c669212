package programs

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/quickjs"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/pattern"
)

// role is the name of the job for which mcpx starts its own executable as a helper process: to run programs.
const role = "program"

func init() {
	helper.Play(role, func() { helper.Serve(func(helper.Limits) helper.Worker { return worker{} }) })
}

// worker runs programs in the helper process, each in a JavaScript engine of its own.
type worker struct{}

// Forget does nothing, because a worker keeps nothing from one program to the next.
func (worker) Forget() {}

// Do runs one program.
func (worker) Do(job *helper.Job) []byte {
	h, code := decodeJob(job.Body)
	e := &engine{
		header: h, ask: job.Ask, mark: newMark(), replies: make(chan settled), over: make(chan struct{}), ended: make(chan struct{}),
	}
	defer close(e.ended)
	out := e.run(code)
	out.Logs, out.Dropped = e.logs.String(), e.dropped
	data, err := json.Marshal(out)
	if err != nil { // the value is not valid JSON, or nested too deeply
		out.End, out.Value, out.Message = endError, nil, "the value cannot be returned: "+err.Error()
		data, _ = json.Marshal(out)
	}
	return data
}

//go:embed prelude.js
var prelude string

// maxLogs bounds all lines of console.log together, in bytes. maxLines bounds their number, because each line of a kept result
// needs memory in addition to its text.
const (
	maxLogs  = 256 << 10
	maxLines = 10_000
)

// engine runs one program. Only the goroutine that calls the method run uses it, with three exceptions: any goroutine may call
// expire, the goroutines of sendCall use ask, mark, replies and ended, and the goroutine that run starts uses ask.
type engine struct {
	header
	ask  func(request []byte) ([]byte, error)
	mark string
	vm   *quickjs.VM

	spent   time.Duration // how long the engine has run
	over    chan struct{} // closed when the time is over
	late    atomic.Bool   // the time is over; set by expire, which then closes over
	ended   chan struct{} // closed when the program has ended
	waiting []sendCall    // calls that the program has made and that were not sent yet
	made    int           // how many calls the program has asked for
	open    int           // calls that were sent and have no reply yet
	replies chan settled
	logs    strings.Builder
	lines   int           // number of lines in logs
	dropped int           // how many lines of console.log were left out
	settle  quickjs.Value // the function settle of the prelude (the JavaScript that runs before the program)
	out     *answer       // nil until the program's function has ended; set by done and fail, and by begin if Check is set
}

// sendCall sends a call to the main process and waits for the reply. made is how many calls the program has asked for
// so far.
type sendCall func(made int)

// settled is the reply to a call.
type settled struct {
	id         int
	code, text string
}

// expire ends the time of the program. Any goroutine may call it, more than once.
func (e *engine) expire() {
	if e.late.CompareAndSwap(false, true) {
		close(e.over)
		e.vm.Interrupt()
	}
}

func (e *engine) run(code string) (out *answer) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return &answer{End: endMemory}
	}
	e.vm = vm
	defer vm.Close()
	go func() { // ends with the job at the latest, because the method ask then fails
		if _, err := e.ask([]byte{askClock}); err == nil {
			e.expire()
		}
	}()
	vm.SetCanBlock(false)
	vm.SetMemoryLimit(uintptr(e.Memory))
	rejected, unwatch, err := watchRejections(vm)
	if err != nil {
		return e.failure(err)
	}
	defer unwatch()
	start, failed, err := e.prepare()
	if err != nil {
		return e.failure(err)
	}
	defer start.Free()
	defer failed.Free()
	defer e.settle.Free()
	if out := e.begin(start, code); out != nil {
		return out
	}
	if out := e.loop(); out != nil {
		return out
	}
	if index, found := rejected.first(); found && e.out.End == endValue {
		e.out = nil
		if err := e.js(func() error {
			reason, err := e.element(rejected.reasons, index)
			if err == nil {
				_, err = failed.Call(quickjs.UndefinedValue, reason)
				reason.Free()
			}
			return err
		}); err != nil {
			return e.failure(err)
		}
	}
	return e.out
}

func (e *engine) element(array quickjs.Value, index uint32) (quickjs.Value, error) {
	name, err := e.vm.NewAtom(fmt.Sprint(index))
	if err != nil {
		return quickjs.UndefinedValue, err
	}
	return array.GetPropertyValue(name)
}

// prepare runs the prelude, which defines the functions that programs can use. The results start and failed are functions of
// the prelude: start runs a program, and failed reports an error of it.
func (e *engine) prepare() (start, failed quickjs.Value, err error) {
	host := map[string]quickjs.HostFunc{"send": e.send, "fetch": e.fetch, "write": e.write, "done": e.done, "fail": e.fail}
	names := make([]string, 0, len(host))
	for name, f := range host {
		if err := e.vm.RegisterHostFunc("mcpx_"+name, f); err != nil {
			return start, failed, err
		}
		names = append(names, name+":mcpx_"+name)
	}
	// The prelude is put on one line, so that placeOf does not take its lines in a stack trace for lines of the
	// program.
	script := strings.ReplaceAll(prelude, "\n", " ") + "({" + strings.Join(names, ",") + `},"` + e.mark + `")`
	made, err := e.vm.EvalValue(script, quickjs.EvalGlobal)
	if err != nil {
		return start, failed, err
	}
	defer made.Free()
	for name, to := range map[string]*quickjs.Value{"settle": &e.settle, "start": &start, "failed": &failed} {
		atom, err := e.vm.NewAtom(name)
		if err != nil {
			return start, failed, err
		}
		if *to, err = made.GetPropertyValue(atom); err != nil {
			return start, failed, err
		}
	}
	return start, failed, nil
}

// begin compiles the program and runs it until it awaits something. With Check, it only compiles the program. If the program
// could not begin, the answer says why; otherwise it is nil.
func (e *engine) begin(start quickjs.Value, code string) *answer {
	err := e.js(func() error {
		program, err := e.vm.EvalValue("(async function("+e.Parameters+"){\n"+code+"\n})", quickjs.EvalGlobal)
		if err != nil {
			return err
		}
		defer program.Free()
		if e.Check {
			e.out = &answer{End: endValue}
			return nil
		}
		args, big := quoteBig(string(e.Arguments), e.mark)
		_, err = start.Call(quickjs.UndefinedValue, program, args, big)
		return err
	})
	if err == nil {
		return nil
	}
	out := e.failure(err)
	if last := strings.Count(code, "\n") + 1; out.Line > last { // behind the program, at the end of the function around it
		out.Line, out.Column = last, 0
		if aboutEnd.MatchString(out.Message) {
			out.Message = unbalanced
		}
	}
	return out
}

// unbalanced replaces the engine's own message if the engine finds a fault only after the end of the program, in the text that mcpx
// has put there. Such a message may name a bracket that is not in the program. aboutEnd matches these messages.
const unbalanced = "SyntaxError: the program ends within an expression, bracket, quote or comment, or closes a bracket too many"

var aboutEnd = pattern.New(`unexpected |expecting '|invalid property name`)

// loop runs the program until the program has ended and each call that was sent has its reply. It returns nil if the program
// ended by itself; otherwise it returns an answer that says why the program was ended.
func (e *engine) loop() *answer {
	for {
		n := 1
		for n > 0 && !e.late.Load() {
			if err := e.js(func() (err error) { n, err = e.vm.ExecutePendingJobs(); return err }); err != nil {
				return e.failure(err)
			}
		}
		if e.late.Load() {
			return &answer{End: endTime}
		}
		if e.out != nil && e.out.End != endValue {
			e.made, e.waiting = e.made-len(e.waiting), nil // a failed program makes no more calls
		}
		for ; len(e.waiting) > 0 && e.open < e.AtOnce; e.waiting = e.waiting[1:] {
			e.open++
			go e.waiting[0](e.made) // ends with its reply, or with the job
		}
		switch {
		case e.open > 0:
		case e.out != nil:
			return nil
		default:
			return &answer{End: endStuck}
		}
		select {
		case <-e.over:
			return &answer{End: endTime}
		case one := <-e.replies:
			e.open--
			if out := e.settled(one); out != nil {
				return out
			}
		}
	}
}

func (e *engine) settled(one settled) *answer {
	text, big := one.text, false
	if one.code == "" {
		text, big = quoteBig(text, e.mark)
	}
	err := e.js(func() error {
		_, err := e.settle.Call(quickjs.UndefinedValue, one.id, one.code, text, big)
		return err
	})
	if err != nil {
		return e.failure(err)
	}
	return nil
}

// js calls f, which lets the engine run, and adds the time that f takes to e.spent. It interrupts the engine when the program has
// used up its time.
func (e *engine) js(f func() error) error {
	began := time.Now()
	timer := time.AfterFunc(time.Duration(e.Nanoseconds)-e.spent, e.expire)
	err := f()
	timer.Stop()
	e.spent += time.Since(began)
	return err
}

// failure returns the answer for a program that ended because the engine returned the error err, for example because the
// program threw an exception or has used up its time.
func (e *engine) failure(err error) *answer {
	if e.late.Load() {
		line, column := placeOf(stackOf(err))
		return &answer{End: endTime, Line: line, Column: column}
	}
	out := &answer{End: endError, Message: err.Error()}
	if thrown, ok := errors.AsType[*quickjs.Error](err); ok && thrown.LineNumber > headLines {
		out.Line, out.Column = thrown.LineNumber-headLines, thrown.ColumnNumber
	} else {
		out.Line, out.Column = placeOf(stackOf(err))
	}
	// If the program throws null, the prelude calls the method fail. A null that comes here is from the engine itself, which had no
	// memory even for an error.
	if out.Message == "null" || exhausted(out.Message) {
		out.End = endMemory
	}
	return out
}

func stackOf(err error) string {
	if thrown, ok := errors.AsType[*quickjs.Error](err); ok {
		return thrown.Stack
	}
	return ""
}

// exhausted reports whether the text of an error says that the memory of the engine is used up. The error of a server that ran
// out of memory has another beginning.
func exhausted(text string) bool {
	return text == "InternalError: out of memory" || text == "SyntaxError: out of memory" // the second comes from regular expressions
}

// The prelude (the JavaScript that runs before the program) calls the functions below. They return an error if they get arguments
// that the prelude never passes. fetch also returns an error if the job has ended.

var errArguments = errors.New("called with other arguments")

// send receives a call that the program makes. It returns why the call is refused, or an empty string.
func (e *engine) send(args []any) (any, error) {
	if len(args) != 4 {
		return nil, errArguments
	}
	id, ok := args[0].(int)
	server, _ := args[1].(string)
	tool, _ := args[2].(string)
	arguments, _ := args[3].(string)
	switch {
	case !ok:
		return nil, errArguments
	case e.out != nil:
		return "the program has already ended; await what makes calls before you return", nil
	case len(arguments) > maxArguments:
		return fmt.Sprintf("the arguments have %d bytes, over the limit of %s; the call was not made", len(arguments), helper.Size(maxArguments)), nil
	case e.made >= e.Calls:
		return overCalls(e.Calls, e.made-e.open-len(e.waiting)), nil
	}
	e.made++
	e.waiting = append(e.waiting, func(made int) {
		body, _ := json.Marshal(sentCall{server, tool, unquoteBig(arguments, e.mark), made})
		reply, err := e.ask(append([]byte{askCall}, body...))
		if err != nil {
			return // the job has ended
		}
		one := settled{id: id}
		one.code, one.text = decodeReply(reply)
		select {
		case e.replies <- one:
		case <-e.ended:
		}
	})
	return "", nil
}

// fetch gets a kept result or a file, while the program waits. It returns a list of three values to the prelude: a code, which is
// empty unless there is an error; the text of the result, file or error; and true if quoteBig has replaced integers in the text.
func (e *engine) fetch(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errArguments
	}
	kind, _ := args[0].(string)
	what, _ := args[1].(string)
	ask := byte(askResult)
	if kind == "file" {
		ask = askFile
	}
	reply, err := e.ask(append([]byte{ask}, what...))
	if err != nil {
		return nil, err
	}
	code, text := decodeReply(reply)
	big := false
	if code == "" {
		text, big = quoteBig(text, e.mark)
	}
	return []any{code, text, big}, nil
}

// write receives the text of a console.log of the program, which may have several lines.
func (e *engine) write(args []any) (any, error) {
	if len(args) != 1 {
		return nil, errArguments
	}
	line, _ := args[0].(string)
	if strings.Contains(line, e.mark) {
		line = string(unquoteBig(line, e.mark))
	}
	lines := 1 + strings.Count(line, "\n")
	if e.dropped > 0 || e.logs.Len()+len(line) >= maxLogs || e.lines+lines > maxLines {
		e.dropped += lines
		return nil, nil
	}
	e.lines += lines
	e.logs.WriteString(line + "\n")
	return nil, nil
}

// done receives the value that the program returns, as JSON; empty for undefined.
func (e *engine) done(args []any) (any, error) {
	if len(args) != 1 {
		return nil, errArguments
	}
	text, _ := args[0].(string)
	switch {
	case len(text) > e.Output:
		e.out = &answer{End: endOutput, Message: fmt.Sprint(len(text))}
	case text == "":
		e.out = &answer{End: endValue}
	default:
		e.out = &answer{End: endValue, Value: unquoteBig(text, e.mark)}
	}
	return nil, nil
}

// maxMessage bounds the text of an error that the program threw, in bytes.
const maxMessage = 4 << 10

// fail receives three values: the text and the stack trace of what the program threw, and whether it threw null.
func (e *engine) fail(args []any) (any, error) {
	if len(args) != 3 {
		return nil, errArguments
	}
	text, _ := args[0].(string)
	stack, _ := args[1].(string)
	null, _ := args[2].(bool)
	out := &answer{End: endError, Message: string(unquoteBig(text, e.mark))}
	if len(out.Message) > maxMessage {
		out.Message = strings.ToValidUTF8(out.Message[:maxMessage], "") + "..."
	}
	out.Line, out.Column = placeOf(stack)
	switch {
	case null:
		out.End = endNull
	case exhausted(out.Message):
		out.End = endMemory
	}
	e.out = out
	return nil, nil
}
