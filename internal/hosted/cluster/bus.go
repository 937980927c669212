package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"mcpx/internal/base/state"
)

// messageAge is the greatest age of a message that is accepted. It is also the greatest difference between the clocks of two
// replicas.
const messageAge = time.Minute

// maxPiece is the maximum length, in bytes, of the data in one message.
const maxPiece = 256 << 10

// head is the first line of each message before encryption. So that replicas of two versions can work together, a replica ignores
// JSON members that it does not know, and messages with an unknown Do.
type head struct {
	Do   string `json:"do"`
	From string `json:"from"`
	At   int64  `json:"at"` // Unix time of sending in milliseconds
	// Kind is the kind that Tell, Ask or Open got. In a beat, the message that says that a replica is running, it is the name of
	// the replica.
	Kind string `json:"kind,omitempty"`
	// Of is the number that the asker has given to an exchange (an Ask or a Stream). Asks means that the sender of this message is
	// the asker.
	Of   uint64 `json:"of,omitempty"`
	Asks bool   `json:"asks,omitempty"`
	// The meaning of N depends on Do: the number of a piece (doPiece), how many pieces were read (doTaken), or the epoch of a
	// replica (doBeat, see presence.lost).
	N    int  `json:"n,omitempty"`
	Last bool `json:"last,omitempty"`
	// Leaves is for doBeat: the replica has begun to shut down. Untaken is for doStop: the replica that was asked has done nothing
	// with the question.
	Leaves  bool   `json:"leaves,omitempty"`
	Untaken bool   `json:"untaken,omitempty"`
	Err     string `json:"err,omitempty"`
}

const (
	doBeat  = "beat"
	doBye   = "bye"
	doTell  = "tell"
	doPiece = "piece" // a part of a question or an answer; only the first piece of a question has a Kind
	doTaken = "taken" // the sender has read N more pieces, so the other side may send N more
	doStop  = "stop"  // the exchange ends, because the sender has failed (Err) or needs no more
)

var errOld = fmt.Errorf("it is more than %v old or new: compare the clocks of the replicas", messageAge)

// send sends a message to all replicas if address is "all", or to one replica if address is "to." and its id.
func (c *Cluster) send(address string, h *head, data []byte) error {
	if !c.Connected() {
		return state.ErrAway
	}
	h.From, h.At = c.self, time.Now().UnixMilli()
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	text = append(append(text, '\n'), data...)
	subject := c.prefix + address
	switch err := c.conn.Publish(subject, c.box.seal("message "+subject, text)); {
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return state.ErrAway
	default:
		return err
	}
}

func (c *Cluster) open(m *nats.Msg, received *windows) (*head, []byte, error) {
	text, by, number, err := c.box.open("message "+m.Subject, m.Data)
	if err != nil {
		return nil, nil, err
	}
	first, data, _ := bytes.Cut(text, []byte("\n"))
	h := new(head)
	if err := json.Unmarshal(first, h); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	if age := now.Sub(time.UnixMilli(h.At)); age > messageAge || age < -messageAge {
		return nil, nil, errOld
	}
	if !received.take(by, number, now) {
		return nil, nil, errTwice
	}
	return h, data, nil
}

// take handles a message of another replica. It does not block.
func (c *Cluster) take(h *head, data []byte) {
	switch h.Do {
	case doBeat:
		c.takeBeat(h)
	case doBye:
		c.presence.forget(h.From)
		c.gone(h.From, "it said goodbye")
	case doTell:
		c.mu.RLock()
		defer c.mu.RUnlock()
		if queue := c.hear[h.Kind]; queue != nil {
			select {
			case queue <- heard{h.From, data}:
			default:
				c.log.Warn("a message of another replica is lost: too many wait", "kind", h.Kind)
			}
		}
	case doPiece, doTaken, doStop:
		c.takeExchange(h, data)
	}
}

// Tell sends data, at most 256 KB, to all other replicas, and does not wait until they have received it. If NATS cannot be reached,
// the error is [state.ErrAway], and no replica gets the data.
func (c *Cluster) Tell(kind string, data []byte) error {
	if len(data) > maxPiece {
		return fmt.Errorf("%d bytes are too many for one message", len(data))
	}
	return c.send("all", &head{Do: doTell, Kind: kind}, data)
}

// Hear calls handle for each message that another replica sends with Tell under this kind, one message after the other, until
// Close. If 4096 messages wait, further ones are lost. Only the first call of Hear for a kind has an effect.
func (c *Cluster) Hear(kind string, handle func(from string, data []byte)) {
	queue := make(chan heard, 4096)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.hear[kind] != nil {
		return
	}
	c.hear[kind] = queue
	c.closed.Go(func() { // ends with Close, which closes the queue
		for one := range queue {
			handle(one.from, one.data)
		}
	})
}
