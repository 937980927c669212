package state

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
)

// once implements [Once] with a store of records.
type once struct {
	records Records
	prefix  string
}

// used is the record of one used name. All these records have the same length. So if the Records of [NewRecords] have no room left,
// they first remove the record that expires first.
type used struct {
	Until int64 `json:"until"` // Unix time in seconds
}

// NewOnce returns a Once that keeps the used names in the store records. The keys of its records depend on purpose, which has only the
// characters a-z.
func NewOnce(purpose string, records Records) Once { return &once{records, "once." + purpose + "."} }

// Redeem uses up a name.
func (o *once) Redeem(ctx context.Context, name string, until time.Time) (fresh bool, err error) {
	sum := sha256.Sum256([]byte(name)) // a name may have any characters
	key := o.prefix + base64.RawURLEncoding.EncodeToString(sum[:])
	err = o.records.Change(ctx, key, func(old []byte) (value []byte, _ time.Time, err error) {
		var one used
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
		return false, ErrAway // whatever the error is, it is not known whether the name was used up
	}
	return fresh, nil
}
