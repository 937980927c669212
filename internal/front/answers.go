package front

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"mcpx/internal/base/delay"
)

// The client's answer to a question of another replica may not reach that replica now, for example because NATS is away. It is then sent
// again every answerAgain, for answerTime: some clients end their session if their answer is refused.
const answerTime, answerAgain = 15 * time.Second, 250 * time.Millisecond

// errUnheard is the error of sendAnswer if the replica that asked is live and has not taken the answer.
var errUnheard = errors.New("the replica of mcpx that asked this cannot be reached now; send the answer again")

// sendAnswer does what send does, for the answer to a question. It may send the answer several times, since a question takes only one.
func (f *Front) sendAnswer(w http.ResponseWriter, r *http.Request, m *message, body []byte, replica string) error {
	ctx, open := f.stateless.begin(r.Context(), "answer", false)
	defer f.stateless.done(open)
	for until := time.Now().Add(answerTime); ; {
		err := f.send(w, r, m, body, replica)
		if err == nil || !f.options.Peers.IsLive(replica) {
			return err
		}
		if !time.Now().Before(until) || !delay.Sleep(ctx, answerAgain) {
			return fmt.Errorf("%w: %w", errUnheard, err)
		}
	}
}

// refused answers a POST of a message that is refused. If the message can only be the answer to an open question of its session, it ends
// the question.
func (f *Front) refused(e *exchange, m *message) {
	if name := headerOf(e.r, sessionHeader); name != "" && m.Method == "" {
		if s, err := f.find(e.r.Context(), name, e.who, e.r.Header, false); err == nil {
			e.held = s
			s.questions.spoilt(m)
		}
	}
	e.refuse(http.StatusBadRequest, m.ID, m.refusal)
}
