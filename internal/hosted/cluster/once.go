package cluster

import (
	"context"
	"encoding/json"
	"time"

	"mcpx/internal/base/state"
)

// once implements [state.Once] with the shared records.
type once struct {
	records *records
	prefix  string
}

// thing is the record of one name.
type thing struct {
	Name  string `json:"name"`
	Next  int    `json:"next"` // always 1, which tells a replica of an earlier version that the name was used
	Until int64  `json:"until"`
}

// Once returns the [state.Once] for one purpose.
func (c *Cluster) Once(purpose string) state.Once { return &once{c.records, "once." + purpose + "."} }

// Redeem uses up a name in the shared records.
func (o *once) Redeem(ctx context.Context, name string, until time.Time) (fresh bool, err error) {
	err = o.records.Change(ctx, o.prefix+hashed(name), func(old []byte) (value []byte, _ time.Time, err error) {
		one := thing{Name: name, Next: 1}
		if old != nil {
			if err := json.Unmarshal(old, &one); err != nil {
				return nil, time.Time{}, err
			}
		}
		fresh = old == nil
		one.Until = max(one.Until, until.Unix())
		value, err = json.Marshal(one)
		return value, time.Unix(one.Until+1, 0), err
	})
	if err != nil {
		return false, state.ErrAway // errors of all kinds: the name may be used up or not
	}
	return fresh, nil
}
