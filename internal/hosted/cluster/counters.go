package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/state"
)

// kindTakes is the kind of the messages that say how many tokens were taken from buckets. With a question of the kind kindTaken, a
// replica that has just started asks the others how many tokens are missing from their buckets.
const kindTakes, kindTaken = "takes", "taken"

// takesEvery is how long a replica collects what was taken from its buckets before it tells the others.
const takesEvery = 20 * time.Millisecond

// maxTakes is the largest number of buckets in one message. maxTaken is the largest size, in bytes, of an answer to the question
// kindTaken.
const maxTakes, maxTaken = 1000, 64 << 20

// counters implement [state.Counters] for all replicas together. Each replica has all buckets. It takes from its own buckets
// without waiting, and tells the others within 20 ms what it took. The others then take the same from their buckets, even if a
// bucket has too few tokens.
//
// So over a longer time all replicas together keep to the Rate of a [state.Flow]. They exceed its Burst by at most the calls that
// the others admit before a message arrives: about 30 ms of calls at each, if messages need up to 10 ms. After that the buckets are
// in debt, and the next calls wait longer. While NATS cannot be reached, each of the n replicas takes n times the usual tokens for
// each call, so that it admits 1/n of Rate and Burst. A replica that starts asks the other replicas how many tokens are missing
// from their buckets. Until they answer, its own buckets are full.
type counters struct {
	state.Counters
	c *Cluster

	mu      sync.Mutex
	pending map[bucketName]*take
	timer   *time.Timer
}

type bucketName struct{ what, whose string }

// take says how many tokens were taken from a bucket.
type take struct {
	What   string     `json:"k"`
	Whose  string     `json:"w"`
	Flow   state.Flow `json:"f"`
	Tokens float64    `json:"t"`
}

// NewCounters returns counters that keep their buckets in local. What other replicas take is also taken from these buckets.
func (c *Cluster) NewCounters(local state.Counters) state.Counters {
	s := &counters{Counters: local, c: c, pending: make(map[bucketName]*take)}
	s.timer = time.AfterFunc(time.Hour, s.send)
	s.timer.Stop()
	c.Hear(kindTakes, s.hear)
	c.Answer(kindTaken, func(_ context.Context, _ string, _ []byte, write func([]byte) error) error {
		data, err := json.Marshal(takesOf(local.Taken()))
		if err != nil {
			return err
		}
		return write(data)
	})
	c.closed.Go(s.catchUp) // ends when the other replicas have answered or ended, after deadAfter without others, or with Close
	return s
}

// catchUp asks the other replicas what is missing from their buckets, and takes the same from the buckets of this replica. Tokens
// that the others take while they answer may be taken twice at this replica.
func (s *counters) catchUp() {
	alone := time.NewTimer(deadAfter)
	defer alone.Stop()
	ticks := time.NewTicker(takesEvery)
	defer ticks.Stop()
	for s.c.replicas() == 1 {
		select {
		case <-ticks.C:
		case <-alone.C:
			return
		case <-s.c.life.Done():
			return
		}
	}
	lack := make(map[bucketName]*take) // the largest answer for each bucket: replicas that have just started know less
	for _, id := range s.c.Others() {
		var list []*take
		if json.Unmarshal(s.taken(id), &list) != nil || slices.Contains(list, nil) {
			continue
		}
		for _, one := range list {
			name := bucketName{one.What, one.Whose}
			if known := lack[name]; known == nil || known.Tokens < one.Tokens {
				lack[name] = one
			}
		}
	}
	s.Counters.Charge(drawsOf(slices.Collect(maps.Values(lack))))
}

// taken asks a replica how many tokens are missing from its buckets, and returns its answer. It returns nil after any error.
func (s *counters) taken(replica string) (all []byte) {
	for piece, err := range s.c.Ask(s.c.life, replica, kindTaken, nil) {
		if all = append(all, piece...); err != nil || len(all) > maxTaken {
			return nil
		}
	}
	return all
}

func takesOf(draws []state.Draw) []*take {
	list := make([]*take, len(draws))
	for i, d := range draws {
		list[i] = &take{d.What, d.Whose, d.Flow, d.Tokens}
	}
	return list
}

func drawsOf(list []*take) []state.Draw {
	draws := make([]state.Draw, len(list))
	for i, one := range list {
		draws[i] = state.Draw{What: one.What, Whose: one.Whose, Flow: one.Flow, Tokens: one.Tokens, Remote: true}
	}
	return draws
}

// Take implements [state.Counters]: it takes tokens from the buckets of this replica. If the buckets have enough tokens, Take soon
// tells the other replicas what it took. While NATS cannot be reached, it tells nobody, and takes more than usual (see [counters]).
func (s *counters) Take(from []state.Draw) (short int, wait time.Duration) {
	shares := s.shares()
	if shares > 1 {
		from = times(from, shares)
	}
	if short, wait = s.Counters.Take(from); short < 0 && shares == 1 {
		s.tell(from)
	}
	return short, wait
}

// Charge is like Take, but it also takes tokens from buckets that have too few.
func (s *counters) Charge(to []state.Draw) {
	shares := s.shares()
	if shares > 1 {
		to = times(to, shares)
	}
	if s.Counters.Charge(to); shares == 1 {
		s.tell(to)
	}
}

// shares returns the factor by which Take and Charge multiply the tokens: 1, or the number of replicas while they cannot tell each
// other what they take.
func (s *counters) shares() float64 {
	if s.c.Connected() {
		return 1
	}
	return float64(s.c.replicas())
}

func times(draws []state.Draw, shares float64) []state.Draw {
	draws = slices.Clone(draws)
	for i := range draws {
		draws[i].Tokens *= shares
	}
	return draws
}

// tell notes what was taken. The timer soon calls send, which tells the other replicas.
func (s *counters) tell(taken []state.Draw) {
	if s.c.replicas() == 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range taken {
		d := &taken[i]
		if d.Tokens == 0 || d.Flow.Rate <= 0 {
			continue
		}
		if len(s.pending) == 0 {
			s.timer.Reset(takesEvery)
		}
		name := bucketName{d.What, d.Whose}
		if one := s.pending[name]; one != nil {
			one.Tokens += d.Tokens
		} else {
			s.pending[name] = &take{d.What, d.Whose, d.Flow, d.Tokens}
		}
	}
}

func (s *counters) send() {
	s.mu.Lock()
	pending := s.pending
	s.pending = make(map[bucketName]*take)
	s.mu.Unlock()
	list := make([]*take, 0, len(pending))
	for _, one := range pending {
		list = append(list, one)
	}
	for part := range slices.Chunk(list, maxTakes) {
		if data, err := json.Marshal(part); err == nil {
			_ = s.c.Tell(kindTakes, data) // if NATS cannot be reached, the others multiply what they take (shares)
		}
	}
}

func (s *counters) hear(_ string, data []byte) {
	var list []*take
	if json.Unmarshal(data, &list) == nil && !slices.Contains(list, nil) {
		s.Counters.Charge(drawsOf(list))
	}
}
