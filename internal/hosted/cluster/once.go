package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"mcpx/internal/base/state"
)

// once implements [state.Once]. The shared records decide. The copy in memory is only for Standing.
type once struct {
	records *records
	prefix  string
	copy    state.Once
}

// thing is the record of one name.
type thing struct {
	Name  string `json:"name"`
	Next  int    `json:"next"` // the lowest number that was not used
	Until int64  `json:"until"`
	Ended bool   `json:"ended,omitempty"`
}

// Once returns the [state.Once] for one purpose. limit is how many names the copy in memory remembers.
func (c *Cluster) Once(purpose string, limit int, log *slog.Logger) state.Once {
	o := &once{records: c.records, prefix: "once." + purpose + ".", copy: state.NewOnce(limit, log)}
	next := make(map[string]int) // thing.Next by name, as the copy has it; Watch calls the func for one value at a time
	o.records.Watch(o.prefix, func(value []byte) {
		var one thing
		if json.Unmarshal(value, &one) != nil {
			return
		}
		until := time.Unix(one.Until, 0)
		switch {
		case one.Ended:
			_ = o.copy.End(context.Background(), one.Name, until)
			delete(next, one.Name)
		case one.Next > next[one.Name]: // only newer numbers: redeeming a number a second time would end the name
			_, _ = o.copy.Redeem(context.Background(), one.Name, one.Next-1, until)
			next[one.Name] = one.Next
		}
		if len(next) > 2*limit {
			clear(next)
		}
	})
	return o
}

// Redeem uses up a number of a name in the shared records. It ends the name if this number, or a higher one, was used before.
func (o *once) Redeem(ctx context.Context, name string, number int, until time.Time) (fresh bool, err error) {
	err = o.change(ctx, name, until, func(one *thing) {
		if fresh = !one.Ended && number >= one.Next; fresh {
			one.Next = number + 1
		} else {
			one.Ended = true
		}
	})
	return fresh && err == nil, err
}

// End ends a name in the shared records, for all replicas.
func (o *once) End(ctx context.Context, name string, until time.Time) error {
	return o.change(ctx, name, until, func(one *thing) { one.Ended = true })
}

func (o *once) change(ctx context.Context, name string, until time.Time, change func(*thing)) error {
	err := o.records.Change(ctx, o.prefix+hashed(name), func(old []byte) (value []byte, _ time.Time, err error) {
		one := thing{Name: name}
		if old != nil {
			if err := json.Unmarshal(old, &one); err != nil {
				return nil, time.Time{}, err
			}
		}
		change(&one)
		one.Until = max(one.Until, until.Unix())
		value, err = json.Marshal(one)
		return value, time.Unix(one.Until+1, 0), err
	})
	if err != nil {
		return state.ErrAway // errors of all kinds: the number may be used up or not
	}
	return nil
}

// Standing returns a context that ends when ctx ends or when the copy learns that the name has ended.
func (o *once) Standing(ctx context.Context, name string) context.Context {
	return o.copy.Standing(ctx, name)
}
