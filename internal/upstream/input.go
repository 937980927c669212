package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

const (
	// maxInputRounds bounds how often one request is answered with input_required.
	maxInputRounds = 20
	// roundPause is the pause before the next round of a server that asks for nothing but
	// to come again.
	roundPause = time.Second
)

// rounds asks the client what the server wants to know in its result, and sends the request again, until the result is
// another one.
func (u *Upstream) rounds(ctx context.Context, r *call, w *waits, result json.RawMessage) (json.RawMessage, error) {
	for range maxInputRounds {
		requests, state, wants := inputWanted(result)
		if !wants {
			return result, nil
		}
		r.Input = request.Input{State: bytes.Clone(state)}
		var err error
		if r.Input.Responses, err = r.ask(ctx, requests); err != nil {
			return nil, err
		}
		if r.Input.Responses == nil && !delay.Sleep(ctx, roundPause) {
			return nil, ctx.Err()
		}
		if result, err = u.attempts(ctx, r, w); err != nil {
			return nil, err
		}
	}
	return nil, &request.InputError{Reason: "again and again"}
}

// inputWanted reads an input_required result: the requests by their keys, and the state
// that belongs to them. Both may be nil.
func inputWanted(result json.RawMessage) (requests, state json.RawMessage, wants bool) {
	if !bytes.Contains(result, []byte(`"input_required"`)) {
		return nil, nil, false
	}
	_ = wire.Fields(result, func(key string, value []byte) bool {
		switch {
		case key == "resultType":
			wants = string(value) == `"input_required"`
		case key == "inputRequests" && value[0] == '{':
			requests = value
		case key == "requestState" && value[0] == '"':
			state = value
		}
		return true
	})
	return requests, state, wants
}

// ask asks the client everything that the server wants to know, at once, and returns the
// answers by their keys; nil if nothing was asked. The clock of the call stands still.
func (r *call) ask(ctx context.Context, requests json.RawMessage) (json.RawMessage, error) {
	type question struct {
		key            json.RawMessage
		method         string
		params, answer json.RawMessage
		err            error
	}
	var all []*question
	_ = wire.Members(requests, func(_ string, written, value []byte) bool {
		var one struct {
			Method string
			Params json.RawMessage
		}
		_ = json.Unmarshal(value, &one) // without a method it is refused below
		all = append(all, &question{key: written, method: one.Method, params: one.Params})
		return true
	})
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > maxQuestions:
		return nil, &request.InputError{Reason: "too many questions at once"}
	}
	r.clock.hold()
	defer r.clock.release()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var asking sync.WaitGroup
	for _, one := range all {
		asking.Go(func() { // ends with the answer, or with ctx
			if one.answer, one.err = r.Client.Ask(ctx, one.method, one.params); one.err != nil {
				cancel() // the others are of no use any more
			}
		})
	}
	asking.Wait()
	out := []byte{'{'}
	var failed error
	for _, one := range all {
		if one.err != nil && (failed == nil || errors.Is(failed, context.Canceled)) {
			failed = one.err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, one.key...), ':'), one.answer...)
	}
	if failed != nil {
		return nil, &request.InputError{Reason: failed.Error()}
	}
	return append(out, '}'), nil
}
