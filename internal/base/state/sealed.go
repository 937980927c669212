package state

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/lru"
)

const (
	// If Open is given no end for a session, the session ends after sessionLife. Each Change moves the end to sessionLife after the
	// Change. A Get moves the end in the same way, but only if less than renewBefore is left. So the Gets of a session store a
	// value at most once a day, and the session lives at least 7 days after its last use.
	sessionLife, renewBefore = 8 * 24 * time.Hour, 7 * 24 * time.Hour
	// If a Get fails to move the end of a session, the next Get tries it only after renewAgain.
	renewAgain = time.Hour
	// idPrefix begins every id. The rest is the sealed record, or a random text of randomText characters if the record
	// is kept in Records.
	idPrefix   = "mcpx-"
	randomText = 26
	// longestID is the length of the longest id. A record that would need more is kept in Records.
	longestID = 1 << 10
	// sealVersion is the first byte of the data that an id contains.
	sealVersion = 1
	// nonceSize is the length of the nonce, which follows the version.
	nonceSize = 12
	// When a session ends, Records gets a small value that says so. The first maxEnds such values of a process in a day are kept
	// for as long as the id of the session could be used. All further values are kept only for endKept, so that clients cannot fill
	// Records by opening and ending sessions all the time. The clocks of processes must differ by less than endKept.
	maxEnds, endKept = 20_000, 2 * time.Minute
	// maxKnown is how many decrypted ids a process remembers, so that it need not decrypt the id of each request again.
	maxKnown = 10_000
)

// sealed implements [Sessions]. An id contains the record of the session, encrypted ("sealed"). The store records has what does not fit
// into ids.
type sealed[S any] struct {
	keys    []cipher.AEAD // the first encrypts, and any of them decrypts; if there are none, all records are kept in Records
	purpose string
	records Records

	mu      sync.Mutex
	byID    *lru.Map[string, known[S]]
	ends    int       // how many sessions have ended since the time counted
	counted time.Time // when the counting began; the first end after a day begins it again
}

// content is the data in an id, and also the value in Records. A decoder ignores members that it does not know, so processes of two
// versions of mcpx can serve the same sessions.
type content[S any] struct {
	// Until is when the session ends, in Unix milliseconds.
	Until int64 `json:"until"`
	// Kept means that Open was given no end, so that Until moves while the session is used.
	Kept   bool `json:"kept,omitempty"`
	Ended  bool `json:"ended,omitempty"`
	Record *S   `json:"record,omitempty"`
}

func (c *content[S]) over(now time.Time) bool { return c.Ended || now.UnixMilli() >= c.Until }

// known is what this process knows about an id.
type known[S any] struct {
	key    string                    // key of the session in Records
	sealed *content[S]               // content of the id; nil if the record is kept in Records
	newest atomic.Pointer[recent[S]] // the last value of Records that was decoded; nil if there was none
	renew  atomic.Int64              // Get does not try again to move Until before this time, in Unix milliseconds
}

// recent is a value of Records together with its decoded content.
type recent[S any] struct {
	value   []byte
	content *content[S]
}

// NewSealed returns Sessions whose ids contain the record, encrypted with keys that are derived from the secrets: the first secret
// encrypts, and any of them decrypts. So a process with one of these secrets can serve a session that it has never seen, as after a
// restart. The store records keeps changes, ends of sessions, and data that is too large for an id.
//
// purpose has only the characters a-z. It must be different for each Sessions: keys and records depend on it.
//
// If Open is given no end, a session ends after 8 days. Each Change moves the end to 8 days after the Change, and so does a Get in
// the last 7 days of the session. If records loses its values, a session whose id contains the record goes back to the state and
// the end that it had when it was opened. So a session that was closed before can be used again. The other sessions are lost. If a
// process ends more than 20,000 sessions a day, records keeps each further end for two minutes only: after that, the client could
// use the ended session again.
func NewSealed[S any](secrets []*Secret, purpose string, records Records) Sessions[S] {
	s := &sealed[S]{purpose: purpose, records: records, byID: lru.New[string, known[S]](maxKnown, nil)}
	for _, secret := range secrets {
		s.keys = append(s.keys, secret.Cipher("mcpx sealed ids 1 "+purpose))
	}
	return s
}

// NewStored returns Sessions that keep everything in the store records, under random ids. If records loses a value, its session
// has ended; an ended session can never be used again. See [NewSealed] for purpose, and for when a session ends.
func NewStored[S any](purpose string, records Records) Sessions[S] {
	return NewSealed[S](nil, purpose, records)
}

// Open puts the record into the id. If s has no keys, or the id would be too long, it puts the record into Records. The error may be
// ErrAway or ErrLarge.
func (s *sealed[S]) Open(ctx context.Context, record *S, until time.Time) (id string, err error) {
	one := &content[S]{Until: until.UnixMilli(), Record: record}
	if until.IsZero() {
		one.Kept, one.Until = true, time.Now().Add(sessionLife).UnixMilli()
	}
	data, err := json.Marshal(one)
	if err != nil {
		return "", err
	}
	if id, key := s.seal(data); id != "" {
		s.remember(id, &known[S]{key: key, sealed: one})
		return id, nil
	}
	text := rand.Text()
	if err := s.records.Change(ctx, s.key(text), func([]byte) ([]byte, time.Time, error) {
		return data, time.UnixMilli(one.Until), nil
	}); err != nil {
		return "", err
	}
	return idPrefix + text, nil
}

func (s *sealed[S]) key(text string) string { return s.purpose + "." + text }

// sealedKey returns the key in Records of a session whose id contains raw. The key is made from the nonce in raw.
func (s *sealed[S]) sealedKey(raw []byte) string {
	return s.key(base64.RawURLEncoding.EncodeToString(raw[1 : 1+nonceSize]))
}

// seal returns an id that contains data in encrypted form, and the key of the session in Records. id is empty if it would be too long, or
// if s has no keys.
func (s *sealed[S]) seal(data []byte) (id, key string) {
	if len(s.keys) == 0 || len(data) > longestID {
		return "", ""
	}
	raw := s.keys[0].Seal([]byte{sealVersion}, nil, data, []byte{sealVersion})
	if id = idPrefix + base64.RawURLEncoding.EncodeToString(raw); len(id) > longestID {
		return "", ""
	}
	return id, s.sealedKey(raw)
}

// unseal decrypts an id. It returns nil if the id was not encrypted with one of the keys.
func (s *sealed[S]) unseal(text string) *known[S] {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	// Only one spelling of an id is accepted: the decoder ignores unused bits and line ends.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text {
		return nil
	}
	if len(raw) <= 1+nonceSize || raw[0] != sealVersion {
		return nil
	}
	for _, aead := range s.keys {
		data, err := aead.Open(nil, nil, raw[1:], raw[:1])
		if err != nil {
			continue
		}
		one := new(content[S])
		if json.Unmarshal(data, one) != nil || one.Record == nil {
			return nil
		}
		return &known[S]{key: s.sealedKey(raw), sealed: one}
	}
	return nil
}

// find returns what this process knows about an id, or nil if mcpx cannot have made the id.
func (s *sealed[S]) find(id string) *known[S] {
	s.mu.Lock()
	one := s.byID.Find(id)
	s.mu.Unlock()
	if one != nil {
		return one
	}
	text, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(id) > longestID {
		return nil
	}
	if len(text) == randomText {
		if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			return nil
		}
		one = &known[S]{key: s.key(text)}
		if _, err := s.records.Get(one.key); err != nil {
			return one // an id that Records does not have is not remembered, since callers can make up any number of ids
		}
	} else if one = s.unseal(text); one == nil {
		return nil
	}
	return s.remember(id, one)
}

// remember stores one as the result of later calls of find for this id, and returns it. If another caller has already stored a result for
// the id, remember keeps and returns that result.
func (s *sealed[S]) remember(id string, one *known[S]) *known[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.byID.Find(id); before != nil {
		return before
	}
	s.byID.Put(strings.Clone(id), one)
	return one
}

// newest returns the present content of a session. The error is ErrUnknown or ErrAway.
func (s *sealed[S]) newest(one *known[S]) (*content[S], error) {
	value, err := s.records.Get(one.key)
	if errors.Is(err, ErrUnknown) && one.sealed != nil {
		return one.sealed, nil
	}
	if err != nil {
		return nil, err
	}
	if before := one.newest.Load(); before != nil && bytes.Equal(before.value, value) {
		return before.content, nil
	}
	now, err := one.decode(value)
	if err == nil {
		one.newest.Store(&recent[S]{value, now})
	}
	return now, err
}

// decode returns the content in a value of Records. A nil value means that Records has none: then the content in the id is valid.
func (k *known[S]) decode(value []byte) (*content[S], error) {
	if value == nil {
		if k.sealed == nil {
			return nil, ErrUnknown
		}
		return k.sealed, nil
	}
	now := new(content[S])
	if json.Unmarshal(value, now) != nil || now.Record == nil && !now.Ended {
		return nil, ErrUnknown
	}
	return now, nil
}

// Get returns the newest record of a session. If Open was given no end and less than renewBefore is left, Get also moves
// the end.
func (s *sealed[S]) Get(ctx context.Context, id string) (*S, error) {
	one := s.find(id)
	if one == nil {
		return nil, ErrUnknown
	}
	content, err := s.newest(one)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if content.over(now) {
		return nil, ErrUnknown
	}
	if at := now.UnixMilli(); content.Kept && at > content.Until-renewBefore.Milliseconds() {
		if next := one.renew.Load(); at >= next && one.renew.CompareAndSwap(next, at+renewAgain.Milliseconds()) {
			_, _ = s.change(ctx, one, nil) // if this fails, the session still ends at Until
		}
	}
	return content.Record, nil
}

// Change stores the changed record in Records. The error may be ErrUnknown, ErrAway or ErrLarge.
func (s *sealed[S]) Change(ctx context.Context, id string, change func(*S)) (*S, error) {
	one := s.find(id)
	if one == nil {
		return nil, ErrUnknown
	}
	return s.change(ctx, one, change)
}

// change changes the record of a session. If Open was given no end, it also moves Until. change may be nil.
func (s *sealed[S]) change(ctx context.Context, one *known[S], change func(*S)) (*S, error) {
	var record *S
	err := s.update(ctx, one, func(now *content[S]) {
		next := *now.Record
		if change != nil {
			change(&next)
		}
		record, now.Record = &next, &next
		if now.Kept {
			now.Until = time.Now().Add(sessionLife).UnixMilli()
		}
	})
	return record, err
}

// update stores a changed copy of a session's content. The error is ErrUnknown also if the session has ended.
func (s *sealed[S]) update(ctx context.Context, one *known[S], change func(*content[S])) error {
	return s.records.Change(ctx, one.key, func(old []byte) ([]byte, time.Time, error) {
		before, err := one.decode(old)
		if err == nil && before.over(time.Now()) {
			err = ErrUnknown
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		next := *before
		change(&next)
		data, err := json.Marshal(&next)
		return data, time.UnixMilli(next.Until), err
	})
}

// End stores in Records that a session has ended.
func (s *sealed[S]) End(ctx context.Context, id string) error {
	one := s.find(id)
	if one == nil {
		return nil
	}
	// If the id contains the record, the id would be valid until the session expires, so Records keeps the end until then,
	// unless there are too many ends. If the id does not contain the record, Records keeps the end only briefly: after that
	// Records has no value for the id, so the id is unknown.
	brief := s.endsMany() || one.sealed == nil
	err := s.update(ctx, one, func(now *content[S]) {
		now.Ended, now.Record = true, nil
		if brief {
			now.Until = min(now.Until, time.Now().Add(endKept).UnixMilli())
		}
	})
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}

// endsMany counts an ended session. It reports whether more than maxEnds were counted within a day.
func (s *sealed[S]) endsMany() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.counted) > 24*time.Hour {
		s.ends, s.counted = 0, now
	}
	s.ends++
	return s.ends > maxEnds
}
