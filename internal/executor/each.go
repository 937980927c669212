package executor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

const (
	// MaxEach is the largest number of calls in one request. At most eachAtOnce of them run at the same time.
	MaxEach    = 50
	eachAtOnce = 16
	// maxShared bounds the arguments that all calls of a request have in common, in bytes and counted for each call, which gets a
	// copy: without it, a request of 64 MB would make 3 GB of them.
	maxShared = 64 << 20
	// maxResults bounds the results of the calls of a request, in bytes, since they are held until the last call has ended.
	maxResults = 128 << 20
)

// errDropped is the error of a call that was made, and whose result was dropped because of maxResults.
var errDropped = fmt.Errorf("the call was made, but its result is not kept, as the results of these calls are over %d MB together; "+
	"make fewer calls at once", maxResults>>20)

// ReadEach splits the list of the argument "each" of exec. The list is an array, or a string that contains one. violation says what
// is wrong with the list; it is empty if the list is valid.
func ReadEach(list json.RawMessage) (each []json.RawMessage, violation string) {
	if text, ok := wire.Text(list); ok {
		list = json.RawMessage(text)
	}
	list = bytes.TrimSpace(list)
	if len(list) == 0 || list[0] != '[' {
		return nil, "/each: must be an array of objects, the arguments of one call each"
	}
	if wire.Elements(list, func(one []byte) bool { each = append(each, one); return true }) != nil {
		return nil, "/each: " + arguments.NotJSON(list)
	}
	switch {
	case len(each) == 0:
		return nil, "/each: has no arguments; for a single call leave it out"
	case len(each) > MaxEach:
		return nil, fmt.Sprintf("/each: has %d calls, at most %d are made at once; none was made", len(each), MaxEach)
	}
	return each, ""
}

// several runs a request that consists of several calls of one tool. Each call has its own event. If the tool is read-only, or
// is idempotent and not destructive, the calls run concurrently. Otherwise they run one after the other, and none begins after
// the first failure.
func (e *Executor) several(ctx context.Context, r Request) (*results.Result, error) {
	run, of := e.begin(), r
	of.began = time.Now()
	if of.Catalogue == nil {
		of.Catalogue = e.visible(&of)
	}
	calls, tool, found, err := run.checkEach(ctx, &of)
	if err == nil {
		err = e.confirmEach(ctx, calls)
	}
	if err != nil { // no call is made; the refusal is recorded once
		return e.recorded(ctx, of, found, err)
	}
	hints := tool.Hints
	at := 1
	if hints.IsReadOnly() || hints.IsIdempotent() && !hints.IsDestructive() {
		at = eachAtOnce
	}
	head := e.runEach(ctx, calls, at)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	all := joinEach(head, calls, r.Format.Always())
	if all.IsError {
		// No call has succeeded, so the client may repeat the whole request after it has opened the URL that the error names.
		for _, one := range calls {
			if rpc, ok := errors.AsType[*wire.RPCError](one.err); ok && r.Client.OpensURLsOf(rpc) {
				return nil, rpc
			}
		}
	}
	return all, nil
}

// recorded refuses a request before any of its calls is made. It records err, and returns the answer that tells the client why.
func (e *Executor) recorded(ctx context.Context, r Request, t target, err error) (*results.Result, error) {
	r, own := e.started(r)
	result, err := e.begin().finish(ctx, &r, t, nil, err)
	if own {
		e.journal.End(r.Event)
	}
	return result, err
}

// oneOf is one of the calls of a request with Each, from its check to its result.
type oneOf struct {
	r       Request
	message *request.Request // nil if the arguments are invalid
	result  *results.Result  // nil before the end of the call, and if the call was not made

	run    run
	raw    json.RawMessage
	target target
	err    error
}

// checkEach splits a request into its calls and checks them all. If the arguments of one call are invalid and the tool is
// read-only, only that call fails. Any other error makes the whole request fail: invalid arguments for a tool that is not
// read-only, no such tool, an invalid filter. The result found has the server and the tool of the calls; after an error, as far as
// they were found.
func (e run) checkEach(ctx context.Context, r *Request) (calls []*oneOf, tool *catalog.Tool, found target, err error) {
	if err := e.replaceInEach(ctx, r); err != nil {
		return nil, nil, found, err
	}
	if len(r.Each)*(len(r.Arguments)+len(r.Beside.Arguments)) > maxShared {
		return nil, nil, found, arguments.Invalid(fmt.Sprintf("/each: all calls together have more than %d MB of the same arguments; "+
			"make several requests", maxShared>>20))
	}
	bad := &arguments.ValidationError{}
	for i, own := range r.Each {
		one := &oneOf{r: *r}
		one.r.Each, one.r.Arguments, one.r.part = nil, own, 1
		one.r.Format.Wait = 0
		if one.r.Format.Structured != results.StructuredAlways {
			one.r.Format.Structured = results.StructuredNone // an answer can have only one structuredContent
		}
		one.r.Event = &request.Event{} // for the check only; the call gets its own event
		merged, err := arguments.Merged(r.Arguments, own)
		if err == nil {
			one.r.Arguments = merged
			one.message, found, err = e.prepare(ctx, &one.r)
		}
		var invalid *arguments.ValidationError
		switch {
		case err == nil:
			tool = found.tool
		case errors.As(err, &invalid):
			within(bad, invalid, i)
		default:
			return nil, nil, found, err
		}
		r.Catalogue = one.r.Catalogue // prepare may have waited for the server and renewed the catalogue
		calls = append(calls, one)
	}
	if found.tool != nil {
		tool = found.tool
	}
	if len(bad.Violations) > 0 && (tool == nil || !tool.Hints.IsReadOnly()) {
		return nil, nil, found, bad
	}
	return calls, tool, found, nil
}

// maxViolations is the largest number of violations that the failure of a request with several calls lists.
const maxViolations = 5

// within adds to total the violations found in the call with index i. Their paths get the prefix /each/i. If total already
// lists maxViolations, the others are only counted.
func within(total, found *arguments.ValidationError, i int) {
	total.More += found.More
	for n, violation := range found.Violations {
		if len(total.Violations) == maxViolations {
			total.More += len(found.Violations) - n
			return
		}
		total.Violations = append(total.Violations, "/each/"+strconv.Itoa(i)+strings.Replace(violation, "/:", ":", 1))
		total.Places = append(total.Places, found.Places[n])
	}
}

// confirmEach asks the user once to confirm all calls with valid arguments. It does not ask if the config requires no
// confirmation, or if the user has confirmed all these calls already.
func (e *Executor) confirmEach(ctx context.Context, calls []*oneOf) error {
	var all []*request.Request
	for _, one := range calls {
		if one.message != nil {
			all = append(all, one.message)
		}
	}
	if len(all) == 0 {
		return nil
	}
	key := e.Confirms(all[0]) // the same key for all, because they are calls of one tool
	covered := func(q *request.Request) bool { return q.Consent.Given.Covers(q) }
	if key == "" || !slices.ContainsFunc(all, func(q *request.Request) bool { return !covered(q) }) {
		return nil
	}
	allowed := request.Rights(e.Sees)(func(context.Context, *request.Request) (json.RawMessage, error) { return nil, nil })
	if _, err := allowed(ctx, all[0]); err != nil {
		return err
	}
	given, err := request.Ask(ctx, key, all...)
	if err != nil {
		return err
	}
	for _, one := range calls {
		one.r.Consent.Given = given
	}
	return nil
}

// runEach makes the calls and sets their results. At most maximum calls run at the same time. No further call begins when ctx
// has ended or, if maximum is 1, after the first failure; calls that were not made have no result. The text head declares values
// that several results have in common (see the func share); it may be empty.
//
// If a call is refused because the caller is over a limit ([request.LimitError]), runEach repeats this call later, and from
// then on runs one call fewer at a time. When only one call runs at a time, such a call is not repeated: it has failed.
func (e *Executor) runEach(ctx context.Context, calls []*oneOf, maximum int) (head string) {
	var (
		mu      sync.Mutex
		waiting = slices.Clone(calls)
		workers sync.WaitGroup
		working = min(maximum, len(calls))
		ended   int
		held    int // bytes of results
	)
	next := func() (one *oneOf) {
		mu.Lock()
		defer mu.Unlock()
		if len(waiting) == 0 || ctx.Err() != nil {
			working--
			return nil
		}
		one, waiting = waiting[0], waiting[1:]
		return one
	}
	// over is called after each call. It returns true if the worker that made the call should stop.
	over := func(one *oneOf) bool {
		mu.Lock()
		defer mu.Unlock()
		var limit *request.LimitError
		if errors.As(one.err, &limit) && working > 1 {
			finishOne(ctx, one)
			e.journal.End(one.r.Event)
			one.err, one.result, waiting = nil, nil, append(waiting, one)
			working--
			return true
		}
		if held += len(one.raw); held > maxResults && one.err == nil {
			held -= len(one.raw)
			one.raw, one.err = nil, errDropped
		}
		if ended++; one.r.Sink.Progress != nil {
			one.r.Sink.Progress(fmt.Appendf(nil, `{"progress":%d,"total":%d,"message":"%d of %d calls"}`, ended, len(calls), ended, len(calls)))
		}
		if maximum == 1 && (one.err != nil || isError(one.raw)) {
			waiting = nil
		}
		return false
	}
	for range working {
		workers.Go(func() { // ends after the last call, when ctx ends, or when over says so
			for one := next(); one != nil; one = next() {
				e.call(ctx, one)
				if over(one) {
					return
				}
			}
		})
	}
	workers.Wait()
	return e.finishEach(ctx, calls)
}

// finishEach makes the answers of those calls that were made, and ends their events. The text head declares values that several
// answers have in common (see the func share); it may be empty.
func (e *Executor) finishEach(ctx context.Context, calls []*oneOf) (head string) {
	defer func() {
		for _, one := range calls {
			if one.r.Event.Attempted {
				e.journal.End(one.r.Event)
			}
		}
	}()
	part := partOf(calls, e.current().ResultTokens)
	for _, one := range calls {
		if one.r.Event.Attempted {
			one.r.part = part
			finishOne(ctx, one)
		}
	}
	return share(calls)
}

// call makes one of several calls. The progress that the tool reports is dropped, because the client has only one progress
// token for all the calls.
func (e *Executor) call(ctx context.Context, one *oneOf) {
	progress := one.r.Sink.Progress
	defer func() {
		one.r.Sink.Progress = progress
		one.r.Event.Stop()
		if what := recover(); what != nil {
			one.result = Panicked(e.log, one.r.Event, one.r.Tool, what).Result(one.r.Format.Always())
		}
	}()
	if progress != nil {
		one.r.Sink.Progress = func(json.RawMessage) {}
	}
	one.r.Event = nil
	one.r, _ = e.started(one.r)
	one.run = e.begin()
	one.raw, one.target, one.err = one.run.call(ctx, &one.r)
}

// finishOne builds the answer of one of several calls and completes its event.
func finishOne(ctx context.Context, one *oneOf) {
	if one.result == nil {
		one.result, _ = one.run.finish(ctx, &one.r, one.target, one.raw, one.err) // the caller of runEach handles the error of ctx
	}
}

func isError(raw json.RawMessage) bool { return string(wire.Member(raw, "isError")) == "true" }

// partOf returns which part of an answer's limits each result may use, as a factor from 0 to 1, so that all results fit into one
// answer. Small results are not cut; the others share what the small ones do not need. The limit of the answer is the parameter
// tokens (0 means none) or the client's own limit, Format.Bytes, whichever is lower.
func partOf(calls []*oneOf, tokens int) float64 {
	room := 3 * tokens // in bytes: hardly any text has fewer than 3 bytes per token
	if most := calls[0].r.Format.Bytes; most > 0 && (room == 0 || most < room) {
		room = most
	}
	if room == 0 {
		return 1
	}
	sizes := make([]int, 0, len(calls))
	for _, one := range calls {
		sizes = append(sizes, len(one.raw))
	}
	slices.Sort(sizes)
	left := room
	for i, size := range sizes {
		if level := left / (len(sizes) - i); size > level {
			return float64(level) / float64(room)
		}
		left -= size
	}
	return 1
}

// joinEach makes one answer from the results of several calls. Each text of call n begins with "#n". If a line in one of the
// texts could be taken for such a beginning, the number is followed by a random mark. If head is not empty, it becomes a text
// block before the results.
func joinEach(head string, calls []*oneOf, structured bool) *results.Result {
	out := &results.Result{IsError: true}
	if head != "" {
		out.Content = append(out.Content, wire.TextBlock(head))
	}
	mark := ""
	if slices.ContainsFunc(calls, imitates) {
		mark = "-" + rand.Text()[:6]
	}
	var data, metas []json.RawMessage
	meta := false
	for i, one := range calls {
		head := "#" + strconv.Itoa(i+1) + mark
		result := one.result
		if result == nil {
			result = &results.Result{IsError: true, Content: []json.RawMessage{wire.TextBlock("not called, because an earlier call failed")}}
		}
		out.Content = append(out.Content, headed(head, result)...)
		out.Received, out.Sent = out.Received+result.Received, out.Sent+result.Sent+2
		out.IsError = out.IsError && result.IsError
		metas, meta = append(metas, orNull(result.Meta)), meta || result.Meta != nil
		if structured && result.Structured != nil {
			data = append(data, result.Structured)
		} else if structured { // no null, which would hide what the texts say
			data = append(data, result.Raw())
		}
	}
	if structured {
		out.Structured = wire.Encode(results.Object{{Name: "result", Value: data}})
	}
	if meta {
		out.Meta = wire.Encode(results.Object{{Name: "mcpx/each", Value: metas}})
	}
	return out
}

// imitates reports whether a line in the texts of a call begins with # and a digit, so that it could be taken for a line that
// joinEach adds.
func imitates(one *oneOf) bool {
	if one.result == nil {
		return false
	}
	for _, raw := range one.result.Content {
		block := wire.ReadBlock(raw)
		for line := range strings.Lines(block.Text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				return true
			}
		}
	}
	return false
}

// headed puts head, the number of the call, before each text of the call's result: on a line of its own if the text has several
// lines. If the first block is not a text, head becomes a text block before it. A result without content becomes one text.
func headed(head string, result *results.Result) (content []json.RawMessage) {
	if result.IsError && result.Code == "" {
		head += " (error)"
	}
	for i, raw := range result.Content {
		block := wire.ReadBlock(raw)
		switch {
		case block.IsText && strings.Contains(block.Text, "\n"):
			raw = block.WithText(head + "\n" + block.Text)
		case block.IsText:
			raw = block.WithText(head + " " + block.Text)
		case i == 0:
			content = append(content, wire.TextBlock(head))
		}
		content = append(content, raw)
	}
	if len(content) == 0 {
		content = append(content, wire.TextBlock(head+" (no content)"))
	}
	return content
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
