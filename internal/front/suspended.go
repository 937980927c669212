package front

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// A modern client cannot be asked anything during a request. If a legacy upstream, or mcpx itself, has a
// question during a call, mcpx suspends the call: the call continues in its own goroutine, and the client gets
// an input_required result with the question. The client's next request has the answers, and resumes the call
// (SEP-2322).

const (
	// suspendedTime is how long a suspended call waits for its client's next request.
	suspendedTime = 30 * time.Minute
	// maxSuspended is the highest number of suspended calls. One principal may have at most a tenth of that number; calls
	// without a principal have no limit of their own.
	maxSuspended = 1000
	// maxKept bounds the log messages that one suspended call keeps for its client's next request, in bytes, and its progress too.
	maxKept = 32 << 10
	// suspendedState is the beginning of the requestState of a suspended call. The name of the process and a
	// secret that identifies the call follow.
	suspendedState = "mcpx.suspended."
)

var (
	errNoAnswer = errors.New("the client did not answer within 30 minutes")
	errCrowded  = errors.New("too many calls wait for answers of their clients")
)

// suspendedCalls holds the modern calls of a front during which the client can be asked questions. Some of them are running; the
// others are suspended, that is, they wait for their client's next request. The calls exist only in this process, and the method
// end cancels them all. Each requestState can resume a call only once.
type suspendedCalls struct {
	process  string // distinguishes the requestStates of this front from those of other processes and fronts
	once     state.Once
	identity json.RawMessage
	journal  *request.Journal

	mu    sync.Mutex
	ended error
	calls map[string]*suspendedCall   // the suspended calls, by secret
	open  map[*suspendedCall]struct{} // all calls that have not ended
	all   sync.WaitGroup
}

// NewOnce returns a store of the requestStates that have been used, in the memory of this process. The store may forget old
// requestStates, because this process resumes each suspended call only once anyway.
func NewOnce() state.Once { return state.NewOnce("call", state.NewRecords(maxSuspended, 1<<20)) }

// suspendedCall is one call during which the client can be asked questions. It may extend over several
// requests.
type suspendedCall struct {
	principal *caller.Principal
	params    [sha256.Size]byte
	cancel    context.CancelCauseFunc
	event     *request.Event // may outlast the request that began the call; ended before done is closed
	done      chan struct{}  // closed when result and err are set
	result    []byte
	err       *rpcError

	mu        sync.Mutex
	now       *incoming            // the request that waits for the result; nil while the call is suspended
	kept      []note               // log messages of the time while the call is suspended, for the request that resumes it
	keptBytes int                  // their bytes
	progress  json.RawMessage      // the newest progress of that time; nil if there was none
	asked     chan struct{}        // has a buffer of one: a value means that there may be open questions
	questions map[string]*question // by key
	last      int
	expiry    *time.Timer
}

type question struct {
	method string
	params json.RawMessage
	answer chan json.RawMessage // has a buffer of one
}

// answer runs the method of a request whose client can be asked questions, or which has a requestState. But if the requestState is
// that of a suspended call, answer resumes the call instead. To decide this, it looks only at written, the requestState as the
// client sent it. It must not look at the upstream's own state, which unbind has stored in r: if the upstream is another mcpx, that
// state may belong to a call that is suspended there.
func (k *suspendedCalls) answer(
	ctx context.Context, r *incoming, written string, run func(context.Context, *incoming) ([]byte, *rpcError),
) ([]byte, *rpcError) {
	var p *suspendedCall
	if secret, ours := strings.CutPrefix(written, suspendedState); ours {
		var err *rpcError
		if p, err = k.resume(ctx, r, secret); err != nil {
			return nil, err
		}
		p.take(r.input.Responses)
	} else {
		p = k.begin(ctx, r, run)
	}
	for {
		select {
		case <-p.done:
			return p.over(r)
		case <-p.asked:
			if requests := p.requests(); requests != nil {
				return k.suspend(p, requests)
			}
		case <-ctx.Done():
			p.cancel(context.Cause(ctx))
			<-p.done
			return p.over(r)
		}
	}
}

// over returns the result of a call that has ended, as the answer to the request r.
func (p *suspendedCall) over(r *incoming) ([]byte, *rpcError) {
	r.event.Outcome = p.event.Outcome
	return p.result, p.err
}

// begin runs a request in a goroutine that ends with the answer. The method end cancels the request. When the goroutine ends, it
// calls the request's func release.
func (k *suspendedCalls) begin(ctx context.Context, r *incoming, run func(context.Context, *incoming) ([]byte, *rpcError)) *suspendedCall {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &suspendedCall{
		principal: r.client.Principal, params: paramsOf(r.message), cancel: cancel,
		event: k.journal.Begin(r.Method, r.client),
		done:  make(chan struct{}), asked: make(chan struct{}, 1), questions: make(map[string]*question), now: r,
	}
	own := *r
	own.client, own.event = r.client.Asked(p.ask), p.event
	if r.out != nil {
		own.out = p
	}
	release := r.release
	r.release = nil
	k.mu.Lock()
	if k.ended != nil {
		cancel(k.ended)
	}
	if k.open == nil {
		k.open, k.calls = make(map[*suspendedCall]struct{}), make(map[string]*suspendedCall)
	}
	k.open[p] = struct{}{}
	k.all.Add(1)
	k.mu.Unlock()
	go func() {
		defer k.all.Done()
		defer caller.OnRevoked(ctx, func() { cancel(caller.ErrRevoked) })()
		p.result, p.err = run(ctx, &own)
		code := 0
		if p.err != nil {
			code = p.err.code
		}
		answeredWith(p.event, code, len(p.result))
		k.journal.End(p.event)
		close(p.done)
		cancel(nil)
		k.mu.Lock()
		delete(k.open, p)
		k.mu.Unlock()
		if release != nil {
			release()
		}
	}()
	return p
}

// suspend keeps the call open until the client's next request, and returns an input_required result with the questions. If too many
// calls are suspended, it cancels the call and returns an error.
func (k *suspendedCalls) suspend(p *suspendedCall, requests []byte) ([]byte, *rpcError) {
	secret := rand.Text()
	p.mu.Lock()
	p.now = nil
	p.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.calls) >= maxSuspended || p.principal != nil && k.count(p.principal) >= maxSuspended/10 {
		p.cancel(errCrowded)
		return nil, &rpcError{code: mcp.INTERNAL_ERROR, message: errCrowded.Error()}
	}
	k.calls[secret] = p
	p.expiry = time.AfterFunc(suspendedTime, func() {
		p.cancel(errNoAnswer)
		k.mu.Lock()
		delete(k.calls, secret)
		k.mu.Unlock()
	})
	out := append([]byte(`{"resultType":"input_required","inputRequests":`), requests...)
	return fmt.Appendf(out, `,"requestState":"%s%s.%s","_meta":%s}`, suspendedState, k.process, secret, k.identity), nil
}

// count returns the number of suspended calls of a principal. The caller holds the lock.
func (k *suspendedCalls) count(principal *caller.Principal) (n int) {
	for _, p := range k.calls {
		if p.principal.Key() == principal.Key() {
			n++
		}
	}
	return n
}

// resume finds the suspended call that a request answers. From then on the call belongs to this request. written is the part of the
// requestState after suspendedState. If no such call can be resumed, resume returns the error for the client.
func (k *suspendedCalls) resume(ctx context.Context, r *incoming, written string) (*suspendedCall, *rpcError) {
	refuse := func(why string) (*suspendedCall, *rpcError) {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "requestState: " + why}
	}
	process, secret, _ := strings.Cut(written, ".")
	if process != k.process {
		return refuse("the call was made through another process or endpoint of mcpx, or before a restart, and can only be resumed there. Send the call again without requestState and inputResponses")
	}
	const noCall = "no call waits for this answer: it was answered already, or has waited for more than 30 minutes. Send the call again without requestState and inputResponses"
	k.mu.Lock()
	p := k.calls[secret]
	k.mu.Unlock()
	switch {
	case p == nil || p.principal.Key() != r.client.Principal.Key():
		return refuse(noCall)
	case p.params != paramsOf(r.message):
		return refuse("it belongs to a call with other params")
	}
	fresh, err := k.once.Redeem(ctx, "suspended "+written, time.Now().Add(suspendedTime))
	if err != nil {
		return nil, &rpcError{code: codeRefused, message: err.Error()}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !fresh || k.calls[secret] != p { // in the meantime the call has expired, or another request has resumed it
		return refuse(noCall)
	}
	delete(k.calls, secret)
	p.expiry.Stop()
	p.goOn(r)
	return p, nil
}

// end cancels all open calls, and all calls that begin later.
func (k *suspendedCalls) end(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = why
	for p := range k.open {
		p.cancel(why)
	}
	for secret, p := range k.calls {
		p.expiry.Stop()
		delete(k.calls, secret)
	}
}

// endOf cancels the open calls of principals for which the func isKnown returns false. None of them can be resumed after that.
func (k *suspendedCalls) endOf(isKnown func(*caller.Principal) bool, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.open {
		if !isKnown(p.principal) {
			p.cancel(why)
		}
	}
	for secret, p := range k.calls {
		if !isKnown(p.principal) {
			p.expiry.Stop()
			delete(k.calls, secret)
		}
	}
}

// paramsOf identifies what a request asks for: it returns a hash of the method, and of the params without the members that
// differ from request to request. The order of members and white space do not matter, because clients encode the params again.
func paramsOf(m *message) [sha256.Size]byte {
	asked := wire.Without(m.Params, "_meta", "inputResponses", "requestState")
	return sha256.Sum256(wire.AppendCanonical([]byte(m.Method+" "), asked))
}

// ask asks the client a question during the call, and returns the answer. It does not use its last parameter, the receiver of
// progress notifications, because modern clients report no progress.
func (p *suspendedCall) ask(ctx context.Context, method string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
	q := &question{method: method, params: params, answer: make(chan json.RawMessage, 1)}
	p.mu.Lock()
	p.last++
	key := "q" + strconv.Itoa(p.last)
	p.questions[key] = q
	p.mu.Unlock()
	p.signal()
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-p.done: // the call has ended; a later call of the same client has used this func
		return nil, errors.New("the call that was to ask is over")
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.questions, key)
		p.mu.Unlock()
		return nil, ctx.Err()
	}
}

func (p *suspendedCall) signal() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// requests encodes the open questions as inputRequests; it returns nil if there are none.
func (p *suspendedCall) requests() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.questions) == 0 {
		return nil
	}
	out := []byte{'{'}
	for n := range p.last {
		key := "q" + strconv.Itoa(n+1)
		q := p.questions[key]
		if q == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		// The Go SDK 1.8 refuses a request without params.
		out = fmt.Appendf(out, `"%s":{"method":%s,"params":%s}`, key, wire.Encode(q.method), orEmpty(q.params))
	}
	return append(out, '}')
}

// take passes the client's answers on to the questions. Questions without an answer are asked again.
func (p *suspendedCall) take(responses json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = wire.Fields(responses, func(key string, value []byte) bool {
		if q := p.questions[key]; q != nil {
			delete(p.questions, key)
			q.answer <- value
		}
		return true
	})
	if len(p.questions) > 0 {
		p.signal()
	}
}

// goOn makes r the request that waits for the result, and sends it the notifications that were kept.
func (p *suspendedCall) goOn(r *incoming) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = r
	for _, n := range p.kept {
		p.tell(n.method, n.params)
	}
	if p.progress != nil {
		p.tell(methodProgress, p.progress)
	}
	p.kept, p.keptBytes, p.progress = nil, 0, nil
}

// current returns the client's request that waits for the result; nil while the call is suspended.
func (p *suspendedCall) current() *incoming {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// notify sends a notification to the client, on the stream of the request that waits for the result. While the call is suspended, it
// keeps the notification: of progress only the newest, of the others no more than maxKept. It keeps copies, as params is a part of what
// the server has sent, which may be larger.
func (p *suspendedCall) notify(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch size := len(method) + len(params); {
	case p.now != nil:
		p.tell(method, params)
	case method == methodProgress && size <= maxKept:
		p.progress = bytes.Clone(params)
	case method != methodProgress && p.keptBytes+size <= maxKept:
		p.kept = append(p.kept, note{method: method, params: bytes.Clone(params)})
		p.keptBytes += size
	}
}

const methodProgress = "notifications/progress"

// tell sends a notification on the stream of the request that waits for the result. A progress notification gets the progress token
// of that request. The caller holds the lock.
func (p *suspendedCall) tell(method string, params json.RawMessage) {
	switch r := p.now; {
	case r.out == nil:
	case method != methodProgress:
		r.out.notify(method, params)
	case r.token != nil:
		r.out.notify(method, wire.Set(params, "progressToken", r.token))
	}
}

// send always returns false: modern clients accept no requests.
func (*suspendedCall) send([]byte) bool { return false }

// alive sends a keep-alive on the stream of the request that waits for the result.
func (p *suspendedCall) alive() {
	if r := p.current(); r != nil && r.out != nil {
		r.out.alive()
	}
}
