package request

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// Consent is how the user confirms a request.
type Consent struct {
	// Given is an earlier approval by the user, with the first of several requests for example.
	Given Approval
	// Ask shows the question and returns the answer, for a client that cannot be asked. Nil = the client is asked.
	Ask func(question string) bool

	asked bool // the user was asked during this request
}

// Approval is the user's consent to exactly the requests that one question showed. The zero value approves nothing.
type Approval struct{ digests [][sha256.Size]byte }

// Covers reports whether the question showed this request.
func (a Approval) Covers(r *Request) bool { return slices.Contains(a.digests, r.digest()) }

// digest identifies a request by its sender, server, method, params and, for a call, the tool's definition.
func (r *Request) digest() [sha256.Size]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q %d\n", r.Client.On().Key(), r.To.Name, r.Method, len(r.Params))
	hash.Write(r.Params)
	if r.Tool != nil {
		hash.Write(r.Tool.Raw)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// RefusedError says that a request was not sent because it lacks the consent that it needs. Its text is for the model.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// answerWithin bounds the time that the user has to confirm a request.
const answerWithin = 15 * time.Minute

// Confirmed asks the user before a request that needs confirmation by the config. needs returns the config key that
// demands it; empty = no confirmation. The user's time is not counted as the call's.
func Confirmed(needs func(r *Request) (key string)) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			key := needs(r)
			if key == "" {
				return next(ctx, r)
			}
			if r.Notification {
				return nil, &RefusedError{r.named() + " needs the user's confirmation, and a notification has no answer. It was not sent"}
			}
			// What the server asks now is asked within this call: a call that begins anew would have to be confirmed again.
			r.Relay = false
			if !r.Consent.Given.Covers(r) {
				asked := time.Now()
				err := r.ask(ctx, key)
				r.Event.Confirming += time.Since(asked)
				if err != nil {
					return nil, err
				}
				r.Consent.asked, r.Consent.Given = true, Approval{[][sha256.Size]byte{r.digest()}}
			}
			return next(ctx, r)
		}
	}
}

// named returns the request's name for a text.
func (r *Request) named() string {
	if r.Tool != nil {
		return r.To.Name + "." + r.Tool.Name
	}
	return r.To.Name + " " + sanitize.Line(r.Method, 80)
}

// ask asks the user. A nil error is consent.
func (r *Request) ask(ctx context.Context, key string) error {
	name := r.named()
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	ask := r.Client.Ask
	if r.Consent.Ask != nil {
		ask = r.Consent.ask
	}
	answer, err := ask(bounded, "elicitation/create", r.question())
	rpc, refused := errors.AsType[*wire.RPCError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && wire.MemberText(answer, "action") == "accept":
		return nil
	case err == nil && wire.MemberText(answer, "action") == "decline":
		return &RefusedError{"the user declined the call of " + name + "; it was not made. Ask what to do instead"}
	case err == nil: // a client without a user cancels too
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

// ask answers like [caller.Client.Ask], with the func.
func (c *Consent) ask(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	if c.Ask(wire.MemberText(params, "message")) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	return json.RawMessage(`{"action":"decline"}`), nil
}

// shownArguments bounds the arguments in a question, in characters: the user must be able to read what they confirm.
const shownArguments = 4000

// question returns the params of the elicitation. It names what will be called, not what the server says about it.
func (r *Request) question() json.RawMessage {
	what, shown, changes := r.Method, r.Params, true
	if r.Tool != nil {
		what, shown, changes = r.Tool.OwnName(), wire.Member(r.Params, "arguments"), !r.Tool.Hints.IsReadOnly()
	}
	text := "Run " + sanitize.Line(r.To.Name, 0) + "." + sanitize.Line(what, 0) + "?"
	if changes {
		text += " It may change something."
	}
	var indented bytes.Buffer
	_ = json.Indent(&indented, shown, "", "  ") // the arguments were checked
	arguments := sanitize.Lines(indented.String())
	if n := utf8.RuneCountInString(arguments); n > shownArguments {
		arguments = fmt.Sprintf("%s\n(%d more characters)", string([]rune(arguments)[:shownArguments]), n-shownArguments)
	}
	if arguments != "" && arguments != "{}" {
		text += "\n" + arguments
	}
	params := wire.AppendQuoted([]byte(`{"message":`), text)
	return append(params, `,"requestedSchema":{"type":"object","properties":{}}}`...)
}
