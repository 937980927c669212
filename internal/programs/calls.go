package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/clock"
	"mcpx/internal/base/helper"
	"mcpx/internal/base/wire"
)

// Made is a call that a program has made. Outcome is empty while the call runs. If the program ended while the call was
// running, Outcome is Unfinished.
type Made struct {
	Server, Tool, Outcome string
}

// Unfinished is the outcome of a call that was cancelled because its program ended.
const Unfinished = "CANCELLED"

// running is a program that runs in a helper process, as this process sees it. It answers the requests of the helper.
type running struct {
	host   Host
	limits Limits
	clock  clock.Clock   // of the program; it is held while the user confirms a call
	timeUp chan struct{} // closed when the time of clock is over
	over   func()        // kills the helper process

	mu    sync.Mutex
	made  []Made
	done  int
	total int // how many calls the program has asked for
}

// reply returns the answer to one request of the helper process.
func (p *running) reply(ctx context.Context, request []byte) []byte {
	if len(request) == 0 {
		return encodeReply(nil, &Failure{CodeFailed, "empty request"})
	}
	body := request[1:]
	switch request[0] {
	case askClock:
		p.time(ctx)
		return nil
	case askCall:
		return encodeReply(p.call(ctx, body))
	case askResult:
		return encodeReply(p.fits(p.host.Result(ctx, string(body))))
	case askFile:
		text, failure := p.host.File(ctx, string(body))
		return encodeReply(p.fits(wire.Encode(text), failure))
	}
	return encodeReply(nil, &Failure{CodeFailed, "unknown request"})
}

// time starts the clock of the program, and returns when the program has run for as long as it may. The helper waits for this
// reply, and then ends the program. If the program still runs after the duration grace, time has the helper killed. time also
// returns when ctx ends, which means that the program has ended.
func (p *running) time(ctx context.Context) {
	p.clock.Start()
	select {
	case <-p.timeUp:
		time.AfterFunc(grace, p.over) // does nothing after the end of Run
	case <-ctx.Done():
	}
}

// call makes a call of the program.
func (p *running) call(ctx context.Context, body []byte) (json.RawMessage, *Failure) {
	var c sentCall
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, &Failure{CodeFailed, "the call is not valid JSON: " + err.Error()}
	}
	index, failure := p.begin(c)
	if failure != nil {
		return nil, failure
	}
	value, outcome, failure := p.host.Call(ctx, Call{Server: c.Server, Tool: c.Tool, Arguments: c.Arguments, Hold: p.clock.Hold})
	if ctx.Err() != nil {
		outcome = Unfinished
	}
	p.end(index, outcome)
	return p.fits(value, failure)
}

// fits returns value and failure unchanged, unless value is longer than half of the memory of the engine. In that case it
// returns a failure.
func (p *running) fits(value json.RawMessage, failure *Failure) (json.RawMessage, *Failure) {
	if failure == nil && int64(len(value)) > p.limits.Memory/2 {
		return nil, &Failure{CodeFailed, fmt.Sprintf("the result has %d bytes, too many for a program with %s of memory; ask for less", len(value), helper.Size(p.limits.Memory))}
	}
	return value, failure
}

// begin records a call and returns its index in made, or a failure if the program has made too many calls. The helper has checked
// the number already, but this process does not rely on it.
func (p *running) begin(c sentCall) (index int, failure *Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.made) >= p.limits.Calls {
		return 0, &Failure{CodeFailed, overCalls(p.limits.Calls, p.done)}
	}
	p.made = append(p.made, Made{Server: c.Server, Tool: c.Tool})
	p.total = min(max(p.total, len(p.made), c.Made), p.limits.Calls)
	return len(p.made) - 1, nil
}

// overCalls is the error of a call that a program makes after it has made as many as it may. most is this number, and ended is how
// many of these calls have ended.
func overCalls(most, ended int) string {
	return fmt.Sprintf("a program may make %d calls, of which %d have ended; this one was not made. Catch this error and return what you have, "+
		"and do the rest in another program, or with each of exec", most, ended)
}

func (p *running) end(index int, outcome string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[index].Outcome = outcome
	p.done++
	if p.host.Progress != nil {
		p.host.Progress(p.done, p.total)
	}
}

// calls returns the calls of the program. It is called after the last of these calls has ended.
func (p *running) calls() []Made {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

// maxListed bounds how many kinds of calls Summary lists. Calls of the same tool with the same outcome are one kind.
const maxListed = 20

// Summary lists the calls of a program on one line: which calls were made, and with which outcome. It is for a program that has
// failed, or that has returned and logged nothing.
func Summary(made []Made) string {
	type kind struct{ name, outcome string }
	counts := make(map[kind]int)
	var kinds []kind
	for _, one := range made {
		k := kind{one.Server + "." + one.Tool, one.Outcome}
		if counts[k] == 0 {
			kinds = append(kinds, k)
		}
		counts[k]++
	}
	var out strings.Builder
	for i, k := range kinds {
		if i == maxListed {
			fmt.Fprintf(&out, "; %d other kinds", len(kinds)-i)
			break
		}
		if i > 0 {
			out.WriteString("; ")
		}
		out.WriteString(k.name)
		if n := counts[k]; n > 1 {
			fmt.Fprintf(&out, " ×%d", n)
		}
		out.WriteString(" " + k.outcome)
	}
	return out.String()
}
