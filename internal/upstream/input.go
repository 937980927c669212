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
	// If the server requires input for the same request more than maxInputRounds times, the request fails.
	maxInputRounds = 20
	// roundPause is the pause before mcpx sends the request again, if the server's input_required contains no
	// questions.
	roundPause = time.Second
)

// rounds asks the client for the input that the server requires, and sends the request again with the answers. It repeats this
// until the server requires no more input, and then returns the server's result. It fails after maxInputRounds repetitions.
func (u *Upstream) rounds(ctx context.Context, r *call, w *waits, result json.RawMessage) (json.RawMessage, error) {
	for round := 0; ; round++ {
		requests, state, wants := inputWanted(result)
		if !wants {
			return result, nil
		}
		if round == maxInputRounds {
			return nil, &request.InputError{Reason: "again and again"}
		}
		if err := u.mayAsk(r, requests); err != nil {
			return nil, err
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
			return nil, request.Begun(err)
		}
	}
}

// mayAsk returns nil if the server may ask the client all these questions; otherwise a [request.InputError]. A client gets no
// question whose capability it has not declared, even if mcpx only passes an input_required result on to it. In the legacy era
// there are no such results: a request has no place for the answers, so the server would only ask for them again.
func (u *Upstream) mayAsk(r *call, requests json.RawMessage) error {
	switch {
	case r.legacy:
		return &request.InputError{Reason: "with a result that only protocol revision " + modernVersion + " has, in a session of an earlier one"}
	case u.spec.NoQuestions && requests != nil:
		return &request.InputError{Reason: "although it may not ask clients anything"}
	}
	for _, one := range questionsIn(requests) {
		if why := r.Client.Undeclared(one.method, one.params); why != "" {
			return &request.InputError{Reason: why}
		}
	}
	return nil
}

// inputWanted reads an input_required result: the server's requests by their keys, and the state that the server wants
// back. Each of the two may be nil. required is false for any other result.
func inputWanted(result json.RawMessage) (requests, state json.RawMessage, required bool) {
	// The text to find begins with '_'. This byte is rarer than a quote, so the search goes through a large result quickly.
	if !bytes.Contains(result, []byte(`_required"`)) {
		return nil, nil, false
	}
	_ = wire.Fields(result, func(key string, value []byte) bool {
		switch {
		case key == "resultType":
			required = string(value) == `"input_required"`
		case key == "inputRequests" && value[0] == '{':
			requests = value
		case key == "requestState" && value[0] == '"':
			state = value
		}
		return true
	})
	return requests, state, required
}

// inputQuestion is a question in an input_required result. The method ask sets answer or err.
type inputQuestion struct {
	key            json.RawMessage
	method         string
	params, answer json.RawMessage
	err            error
}

// questionsIn reads the questions of an input_required result.
func questionsIn(requests json.RawMessage) (all []*inputQuestion) {
	_ = wire.Members(requests, func(_ string, written, value []byte) bool {
		var one struct {
			Method string
			Params json.RawMessage
		}
		_ = json.Unmarshal(value, &one) // if the value is invalid, the method stays empty, which no client has declared
		all = append(all, &inputQuestion{key: written, method: one.Method, params: one.Params})
		return true
	})
	return all
}

// ask sends all the server's questions to the client at once, and returns the answers by key, or nil if there are no
// questions. It stops the clock of the call while it waits for the answers.
func (r *call) ask(ctx context.Context, requests json.RawMessage) (json.RawMessage, error) {
	all := questionsIn(requests)
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > maxQuestions:
		return nil, &request.InputError{Reason: "too many questions at once"}
	}
	defer r.clock.Hold()()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client := r.Client // the goroutines do not use r itself, which would then be on the heap in every call
	var asking sync.WaitGroup
	for _, one := range all {
		asking.Go(func() { // the goroutine ends with the answer, or with ctx
			if one.answer, one.err = client.Ask(ctx, one.method, one.params); one.err != nil {
				cancel() // if one question fails, the whole request fails
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
		out = wire.AppendMember(out, one.key, one.answer)
	}
	if failed != nil {
		return nil, &request.InputError{Reason: failed.Error()}
	}
	return append(out, '}'), nil
}
