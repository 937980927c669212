package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/policy"
	"mcpx/internal/upstream"
)

// notAllowedError says that a call was not made, as it needs a consent that it does not
// have. Its text is for the model.
type notAllowedError struct{ text string }

func (e *notAllowedError) Error() string { return e.text }

// answerWithin bounds the time that a person has to confirm a call.
const answerWithin = 15 * time.Minute

// allow lets a call pass, if its tool is one that the request may call, and if it needs
// no person's consent or gets it. The time that a person takes is no time of the call.
func (e run) allow(ctx context.Context, r *Request, t *target) error {
	if r.ReadOnly && !t.tool.Hints.IsReadOnly() {
		return &notAllowedError{r.Server + "." + r.Tool + " is not declared read-only; call it with exec"}
	}
	key := e.confirmedBy(r, t)
	if key == "" {
		return nil
	}
	name, asked := r.Server+"."+r.Tool, time.Now()
	defer func() { r.began = r.began.Add(time.Since(asked)) }()
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	ask := r.Client.Ask
	if r.Confirm != nil {
		ask = r.confirm
	}
	answer, err := ask(bounded, "elicitation/create", question(r, t))
	rpc, refused := errors.AsType[*upstream.RPCError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && wire.MemberText(answer, "action") == "accept":
		t.confirmed = true
		return nil
	case err == nil && wire.MemberText(answer, "action") == "decline":
		return &notAllowedError{"the user declined the call of " + name + "; it was not made. Ask what to do instead"}
	case err == nil: // a client without a user cancels too
		return &notAllowedError{"the user declined the call of " + name + ", or was not there to be asked: the client gave no answer. It was not made. " + key + " says which calls are asked about"}
	case bounded.Err() != nil:
		return &notAllowedError{fmt.Sprintf("the user did not confirm the call of %s within %s; it was not made", name, answerWithin)}
	case refused:
		return &notAllowedError{fmt.Sprintf("%s needs the user's confirmation, and nobody could be asked: %s. The call was not made; the user can make it, use a client with elicitation, or change %s", name, sanitize.Line(rpc.Message, 300), key)}
	}
	return &notAllowedError{fmt.Sprintf("%s needs the user's confirmation, and asking failed: %s. The call was not made", name, sanitize.Line(err.Error(), 300))}
}

// confirm is [upstream.Client.Ask] for a request with Confirm.
func (r *Request) confirm(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	if r.Confirm(wire.MemberText(params, "message")) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	return json.RawMessage(`{"action":"decline"}`), nil
}

// confirmedBy is the key of the config by which a person must confirm a call, empty if
// nobody must: that of the strictest level.
func (e run) confirmedBy(r *Request, t *target) (key string) {
	strictest, snap := policy.ConfirmNone, e.registry.Snapshot() // with the rules of one config
	for _, by := range []struct {
		level policy.Confirm
		key   string
	}{
		{policy.ConfirmOf(snap, r.Server), "confirm in the config of mcpx"},
		{r.Part.Confirms(), "confirm of the group in the config of mcpx"},
		{grant(snap, r.Client).Confirms(t.server, t.tool), "confirm of auth.rights in the config of mcpx"},
	} {
		if by.level > strictest && by.level.Asks(t.tool) {
			strictest, key = by.level, by.key
		}
	}
	return key
}

// shownArguments bounds the arguments in a question, in characters: a person must be able
// to read what they confirm.
const shownArguments = 4000

// question is the question whether the call may be made. It names what will be called,
// not what somebody says of it.
func question(r *Request, t *target) json.RawMessage {
	text := "Run " + sanitize.Line(r.Server, 0) + "." + sanitize.Line(t.tool.OwnName(), 0) + "?"
	if !t.tool.Hints.IsReadOnly() {
		text += " It may change something."
	}
	var indented bytes.Buffer
	_ = json.Indent(&indented, t.arguments, "", "  ") // the arguments were checked
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
