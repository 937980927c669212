package front

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/view"
)

// peerAway are Peers with one other replica. It cannot be reached for the first errors calls of Forward.
type peerAway struct {
	peersHere
	errors, calls int
	ended         bool // the other replica ends with the first call
	gone          bool
	stops         int    // the call of Forward with this number ends the calls of the front
	stop          func() // ends the calls of the front
}

func (p *peerAway) IsLive(string) bool { return !p.gone }

func (p *peerAway) Forward(w http.ResponseWriter, _ *http.Request, _ []byte, _ string) error {
	p.calls++
	p.gone = p.ended
	if p.calls == p.stops {
		p.stop()
	}
	if p.calls <= p.errors {
		return fmt.Errorf("%w: %w", ErrUntaken, state.ErrAway)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// TestAnswers_Away: an answer to a question of another replica waits while that replica cannot be reached. If this takes too long,
// the client gets an error, and not 202 for an answer that nobody has got. If the other replica ends, nobody waits for the answer.
func TestAnswers_Away(t *testing.T) {
	for name, test := range map[string]struct {
		peer peerAway
		want int
		took time.Duration
	}{
		"reached at once": {peerAway{}, http.StatusAccepted, 0},
		"back in time":    {peerAway{errors: 8}, http.StatusAccepted, 2 * time.Second},
		"away for long":   {peerAway{errors: 1000}, http.StatusServiceUnavailable, answerTime},
		"shutting down":   {peerAway{errors: 1000, stops: 5}, http.StatusServiceUnavailable, 4 * answerAgain},
		"ended":           {peerAway{errors: 1000, ended: true}, http.StatusAccepted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := connectWith(t, Options{Peers: &test.peer}, view.Options{})
				test.peer.gone, test.peer.stop = true, f.EndCalls
				session := opened(f)
				test.peer.gone = false
				r := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":"q-replica2-1","result":{"action":"accept"}}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Mcp-Session-Id", session)
				w, began := httptest.NewRecorder(), time.Now()
				f.ServeHTTP(w, r)
				if took := time.Since(began); w.Code != test.want || took != test.took {
					t.Errorf("%d %s after %v, want %d after %v", w.Code, w.Body, took, test.want, test.took)
				}
			})
		})
	}
}

// TestAnswers_Spoilt: a message without result and error, or an invalid one, that has the id of a question of another replica goes to
// that replica, which must end the question. A message with another id does not.
func TestAnswers_Spoilt(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":"q-replica2-1"}`
	for body, want := range map[string]int{
		answer: 1, "[" + answer + "]": 1, `{"jsonrpc":"2.0","id":"q-replica2-1","result":{"a":}}`: 1,
		`{"jsonrpc":"2.0","id":"q-replica2-1","result":"` + "\xff" + `"}`: 1,
		`{"jsonrpc":"2.0","id":1}`:                                        0,
		`{"jsonrpc":"2.0","id":"q-replica2-1","method":"tools/list",}`:    0,
	} {
		peer := peerAway{gone: true}
		f := connectWith(t, Options{Peers: &peer}, view.Options{})
		session := opened(f)
		peer.gone = false
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Session-Id", session)
		f.ServeHTTP(httptest.NewRecorder(), r)
		if peer.calls != want {
			t.Errorf("%s was forwarded %d times, want %d", body, peer.calls, want)
		}
	}
}
