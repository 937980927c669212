package request

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// Consent describes how the user confirms a request.
type Consent struct {
	// Given is an approval that the user gave before. For example, the user may have approved several requests with one answer.
	Given Approval
	// Ask shows the question to the user and reports whether the user agrees. It is set by callers that are not MCP clients, such
	// as the page of mcpx. If it is nil, mcpx asks the client.
	Ask func(question string) bool

	// Hold is called before mcpx asks the user, and may wait until other questions are answered. If it returns an error, mcpx does
	// not ask. Otherwise mcpx calls release when the user has answered or asking has failed. Hold may be nil.
	Hold func(ctx context.Context) (release func(), err error)

	asked bool // true if the user was asked during this request
}

// Approval is the user's consent to the requests that one question showed. It also covers exactly the same requests if they are
// sent again, but no others. The zero value approves nothing.
type Approval struct{ digests [][sha256.Size]byte }

// Covers reports whether the user has approved exactly this request.
func (a Approval) Covers(r *Request) bool { return slices.Contains(a.digests, r.digest()) }

// digest returns a hash that identifies a request: by the principal of its sender, its server, method, params and, for a call, the
// tool's definition.
func (r *Request) digest() [sha256.Size]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q %d\n", r.Client.On().Key(), r.To.Name, r.Method, len(r.Params))
	hash.Write(r.Params)
	if r.Tool != nil {
		hash.Write(r.Tool.Raw)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// RefusedError says that mcpx did not send a request. There are two reasons: the request needs a confirmation and has none, or the
// caller permits only tools that are declared read-only and this one is not. The text is for the model.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// answerWithin is how long the user may take to confirm a request.
const answerWithin = 15 * time.Minute

// Confirmed asks the user before it passes on a request that needs confirmation, unless the user has approved exactly this request
// before (Consent.Given). It refuses a notification that needs confirmation, because a notification has no answer. keyFor returns
// the config key that demands the confirmation, or an empty string if the request needs none. The time that the user takes does not
// count as time of the call.
func Confirmed(keyFor func(r *Request) (key string)) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			key := keyFor(r)
			if key == "" {
				return next(ctx, r)
			}
			if r.Notification {
				return nil, &RefusedError{r.named() + " needs the user's confirmation, and a notification has no answer. It was not sent"}
			}
			// Relay is off, because a new request would need a new confirmation. So if the server needs input from the client, mcpx
			// asks for it within this call.
			r.Relay = false
			if !r.Consent.Given.Covers(r) {
				release := func() {}
				if r.Consent.Hold != nil {
					var err error
					if release, err = r.Consent.Hold(ctx); err != nil {
						return nil, err
					}
				}
				asked := time.Now()
				given, err := Ask(ctx, key, r)
				release()
				r.Event.Confirming += time.Since(asked)
				if err != nil {
					return nil, err
				}
				r.Consent.asked, r.Consent.Given = true, given
			}
			return next(ctx, r)
		}
	}
}

// named returns the name of what the request calls, for use in a text.
func (r *Request) named() string {
	if r.Tool != nil {
		return r.To.Name + "." + r.Tool.Name
	}
	return r.To.Name + " " + sanitize.Line(r.Method, 80)
}

// Ask asks the user with one question to confirm several requests that differ only in their params. key is the config key that
// demands the confirmation. The error is a [RefusedError] or the error of ctx.
func Ask(ctx context.Context, key string, all ...*Request) (Approval, error) {
	if err := ask(ctx, key, all); err != nil {
		return Approval{}, err
	}
	given := Approval{}
	for _, r := range all {
		given.digests = append(given.digests, r.digest())
	}
	return given, nil
}

// ask does what Ask does, but returns only the error, which is nil if the user consents.
func ask(ctx context.Context, key string, all []*Request) error {
	r := all[0]
	name := r.named()
	question, whyNot := question(all)
	if whyNot != "" {
		return &RefusedError{name + " needs the user's confirmation. The call was not made, as its arguments cannot be shown to the user: " + whyNot}
	}
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	ask := r.Client.Ask
	if r.Consent.Ask != nil {
		ask = r.Consent.ask
	}
	answer, err := ask(bounded, "elicitation/create", question)
	run := string(wire.Member(wire.Member(answer, "content"), "run"))
	rpc, refused := errors.AsType[*wire.RPCError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && wire.MemberText(answer, "action") == "accept" && run == "true":
		return nil
	case err == nil && wire.MemberText(answer, "action") == "accept" && run != "false":
		return &RefusedError{"the client accepted the call of " + name + " without the user's answer: its content lacks \"run\": true. " +
			"It was not made. " + key + " says which calls are asked about"}
	case err == nil && (run == "false" || wire.MemberText(answer, "action") == "decline"):
		return &RefusedError{"the user declined the call of " + name + "; it was not made. Ask what to do instead"}
	case err == nil: // the user has not agreed, or the client has no user and answers "cancel" by itself
		return &RefusedError{"the user declined the call of " + name + ", or was not there to be asked: the client gave no answer. " +
			"It was not made. " + key + " says which calls are asked about"}
	case bounded.Err() != nil:
		return &RefusedError{fmt.Sprintf("the user did not confirm the call of %s within %s; it was not made", name, answerWithin)}
	case refused:
		const text = "%s needs the user's confirmation, and the user could not be asked: %s. The call was not made; the user can make it, " +
			"use a client with elicitation, or change %s"
		return &RefusedError{fmt.Sprintf(text, name, sanitize.Line(rpc.Message, 300), key)}
	}
	return &RefusedError{fmt.Sprintf("%s needs the user's confirmation, and asking failed: %s. The call was not made", name, sanitize.Line(err.Error(), 300))}
}

// ask shows the question with c.Ask, and returns the user's answer in the form of the result of an elicitation.
func (c *Consent) ask(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	if c.Ask(wire.MemberText(params, "message")) {
		return json.RawMessage(`{"action":"accept","content":{"run":true}}`), nil
	}
	return json.RawMessage(`{"action":"decline"}`), nil
}

// asksToRun is the schema of the form in the question. It has a required field without a default, because some clients accept an
// empty form, or a form with defaults, without asking their user.
const asksToRun = `{"type":"object","properties":{"run":{"type":"boolean","title":"Run it"}},"required":["run"]}`

// question returns the params of the elicitation that asks the user. The question names the server and the tool that will be
// called, but quotes none of the server's descriptions. If the arguments cannot be shown, whyNot says why; otherwise it is empty.
func question(all []*Request) (params json.RawMessage, whyNot string) {
	r := all[0]
	what, changes := r.Method, true
	if r.Tool != nil {
		what, changes = r.Tool.OwnName(), !r.Tool.Hints.IsReadOnly()
	}
	text := "Run " + sanitize.Line(r.To.Name, 0) + "." + sanitize.Line(what, 0)
	if len(all) > 1 {
		text += fmt.Sprintf(" %d times", len(all))
	}
	text += "?"
	if changes {
		text += " It may change something."
	}
	sent := make([]json.RawMessage, len(all))
	for i, r := range all {
		if sent[i] = r.Params; r.Tool != nil {
			sent[i] = wire.Member(r.Params, "arguments")
		}
	}
	whole := sent[0]
	if len(all) > 1 {
		whole = wire.Encode(sent)
	}
	shown, whyNot := show(whole)
	if shown != "" && shown != "{}" {
		text += "\n" + shown
	}
	params = wire.AppendQuoted([]byte(`{"message":`), text)
	return append(params, `,"requestedSchema":`+asksToRun+`}`...), whyNot
}
