package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

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

// desk serves one program: in the main process, it answers what the program in the helper process asks for.
type desk struct {
	host   Host
	limits Limits
	clock  *clock
	over   func() // kills the helper process

	mu    sync.Mutex
	made  []Made
	done  int
	total int // how many calls the program has asked for
}

// reply returns the answer to one request of the helper process.
func (d *desk) reply(ctx context.Context, request []byte) []byte {
	if len(request) == 0 {
		return encodeReply(nil, &Failure{CodeFailed, "empty request"})
	}
	body := request[1:]
	switch request[0] {
	case askClock:
		d.time(ctx)
		return nil
	case askCall:
		return encodeReply(d.call(ctx, body))
	case askResult:
		return encodeReply(d.fits(d.host.Result(ctx, string(body))))
	case askFile:
		text, failure := d.host.File(ctx, string(body))
		return encodeReply(d.fits(wire.Encode(text), failure))
	}
	return encodeReply(nil, &Failure{CodeFailed, "unknown request"})
}

// time returns when the program has run for as long as it may, or has ended. In the first case, its return tells the helper to
// end the program. If the program has still not ended after the duration grace, the helper is killed.
func (d *desk) time(ctx context.Context) {
	d.clock.start()
	select {
	case <-d.clock.over:
		time.AfterFunc(grace, d.over) // does nothing after the end of Run
	case <-ctx.Done():
	}
}

// call makes a call of the program.
func (d *desk) call(ctx context.Context, body []byte) (json.RawMessage, *Failure) {
	var c sentCall
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, &Failure{CodeFailed, "the call is not valid JSON: " + err.Error()}
	}
	index, failure := d.begin(c)
	if failure != nil {
		return nil, failure
	}
	value, outcome, failure := d.host.Call(ctx, Call{Server: c.Server, Tool: c.Tool, Arguments: c.Arguments, Hold: d.clock.hold})
	if ctx.Err() != nil {
		outcome = Unfinished
	}
	d.end(index, outcome)
	return d.fits(value, failure)
}

// fits returns value and failure unchanged, unless value is longer than half of the memory of the engine. In that case it
// returns a failure.
func (d *desk) fits(value json.RawMessage, failure *Failure) (json.RawMessage, *Failure) {
	if failure == nil && int64(len(value)) > d.limits.Memory/2 {
		return nil, &Failure{CodeFailed, fmt.Sprintf("the result has %d bytes, too many for a program with %s of memory; ask for less", len(value), helper.Size(d.limits.Memory))}
	}
	return value, failure
}

// begin records a call, and refuses it if the program has made too many. The helper has checked that already, but
// this process does not rely on it.
func (d *desk) begin(c sentCall) (index int, failure *Failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.made) >= d.limits.Calls {
		return 0, &Failure{CodeFailed, fmt.Sprintf("a program may make %d calls; this one was not made", d.limits.Calls)}
	}
	d.made = append(d.made, Made{Server: c.Server, Tool: c.Tool})
	d.total = min(max(d.total, len(d.made), c.Made), d.limits.Calls)
	return len(d.made) - 1, nil
}

func (d *desk) end(index int, outcome string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made[index].Outcome = outcome
	d.done++
	if d.host.Progress != nil {
		d.host.Progress(d.done, d.total)
	}
}

// calls returns the calls of the program. It is called after the last of these calls has ended.
func (d *desk) calls() []Made {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made
}

// maxListed bounds how many kinds of calls Summary lists. Calls of the same tool with the same outcome are one kind.
const maxListed = 20

// Summary lists the calls of a program that was ended early, on one line: which calls were made, and with which
// outcome.
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
