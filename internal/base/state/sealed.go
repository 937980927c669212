package state

import (
	"bytes"
	"context"
	"crypto/aes"
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
	// sessionLife is how long a session without an own end can be taken up after it was opened. While it is used, its
	// end is moved, once a day at most.
	sessionLife, renewBefore = 7 * 24 * time.Hour, 24 * time.Hour
	// renewAgain is the time until the next attempt if the end of a session could not be moved.
	renewAgain = time.Hour
	// idPrefix begins every id. The rest is the sealed record, or a random text of randomText characters if the record
	// is kept in Records.
	idPrefix   = "mcpx-"
	randomText = 26
	// longestID is the length of the longest id. A record that would need more is kept in Records.
	longestID = 1 << 10
	// sealVersion is the first byte of what is sealed in an id.
	sealVersion = 1
	// mostEnds is how many ends a process has kept each day for as long as the ids of the sessions could be used. Further ends are
	// kept for endKept, so that clients that open and end sessions all the time cannot fill the records. endKept is longer than
	// the clocks of processes may differ.
	mostEnds, endKept = 20_000, 2 * time.Minute
	// mostKnown is how many unsealed ids a process remembers, so that a request does not have to unseal its id again.
	mostKnown = 10_000
)

// sealed implement [Sessions] with ids that are sealed records, and with Records.
type sealed[S any] struct {
	keys    []cipher.AEAD // the first seals, all open; none means that all records are kept in Records
	purpose string
	records Records

	mu      sync.Mutex
	byID    *lru.Map[string, known[S]]
	ends    int       // how many sessions were ended since counted
	counted time.Time // at most a day ago
}

// content is what is sealed in an id, and the value in Records. A decoder ignores members that it does not know, so
// processes of two versions of mcpx can serve the same sessions.
type content[S any] struct {
	// Until is when the session ends, in Unix milliseconds.
	Until int64 `json:"until"`
	// Kept means that the session has no own end, so that its end moves while it is used.
	Kept   bool `json:"kept,omitempty"`
	Ended  bool `json:"ended,omitempty"`
	Record *S   `json:"record,omitempty"`
}

func (c *content[S]) over(now time.Time) bool { return c.Ended || now.UnixMilli() >= c.Until }

// known is what this process knows of an id.
type known[S any] struct {
	key    string                    // in Records
	sealed *content[S]               // nil if the record is kept in Records
	newest atomic.Pointer[recent[S]] // nil if there was nothing in Records
	renew  atomic.Int64              // no attempt to move the end before this time, in Unix milliseconds
}

// recent is a value of Records and what it contains.
type recent[S any] struct {
	value   []byte
	content *content[S]
}

// NewSealed returns Sessions whose ids contain the record, encrypted with keys that are derived from the secrets: the
// first secret seals, all of them open. So a process with one of these secrets can serve a session that it has never
// seen, as after a restart. Changes and ends, and records that are too large for an id, are kept in records.
//
// purpose has only the characters a-z. It separates the keys and the records from those of other Sessions.
//
// A session without an own end cannot be used any more when it was not used for 7 days. If records loses what it had,
// a session is again as it was when it was opened: also one that was ended or whose end was moved, for 7 days after
// it was opened. If a process ends more than 20,000 sessions a day, records are given the end of each further one for two minutes
// only: then a client that has ended its session could go on with it.
func NewSealed[S any](secrets []*Secret, purpose string, records Records) Sessions[S] {
	s := &sealed[S]{purpose: purpose, records: records, byID: lru.New[string, known[S]](mostKnown, nil)}
	for _, secret := range secrets {
		block, err := aes.NewCipher(secret.Key("mcpx sealed ids 1 " + purpose))
		if err != nil {
			panic(err) // impossible for 32 bytes
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			panic(err) // impossible for AES
		}
		s.keys = append(s.keys, aead)
	}
	return s
}

// NewStored returns Sessions that keep all records in records, so that an ended session stays ended as long as records
// are not lost. An id is random. See [NewSealed] for purpose.
func NewStored[S any](purpose string, records Records) Sessions[S] {
	return NewSealed[S](nil, purpose, records)
}

// Open implements [Sessions]. The error may also be ErrLarge.
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

// seal returns an id that contains data, and the key under which its changes are kept. The id is empty if it would be
// too long, or if s has no keys.
func (s *sealed[S]) seal(data []byte) (id, key string) {
	if len(s.keys) == 0 || len(data) > longestID {
		return "", ""
	}
	aead := s.keys[0]
	raw := make([]byte, 1+aead.NonceSize(), 1+aead.NonceSize()+len(data)+aead.Overhead())
	raw[0] = sealVersion
	nonce := raw[1:]
	_, _ = rand.Read(nonce) // it never fails
	id = idPrefix + base64.RawURLEncoding.EncodeToString(aead.Seal(raw, nonce, data, raw[:1]))
	if len(id) > longestID {
		return "", ""
	}
	return id, s.key(base64.RawURLEncoding.EncodeToString(nonce))
}

// unseal returns what an id contains, or nil if it was not sealed with one of the keys.
func (s *sealed[S]) unseal(text string) *known[S] {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	// A session has only one id: the encoding may have bits that are not used, and the decoder skips ends of lines.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text {
		return nil
	}
	for _, aead := range s.keys {
		size := aead.NonceSize()
		if len(raw) <= 1+size || raw[0] != sealVersion {
			return nil
		}
		data, err := aead.Open(nil, raw[1:1+size], raw[1+size:], raw[:1])
		if err != nil {
			continue
		}
		one := new(content[S])
		if json.Unmarshal(data, one) != nil || one.Record == nil {
			return nil
		}
		return &known[S]{key: s.key(base64.RawURLEncoding.EncodeToString(raw[1 : 1+size])), sealed: one}
	}
	return nil
}

// find returns what this process knows of an id. It returns nil for an id that mcpx has not made.
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
			return one // is not remembered: a caller can make up such ids
		}
	} else if one = s.unseal(text); one == nil {
		return nil
	}
	return s.remember(id, one)
}

// remember returns what find returns for this id from now on.
func (s *sealed[S]) remember(id string, one *known[S]) *known[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.byID.Find(id); before != nil {
		return before
	}
	s.byID.Put(strings.Clone(id), one)
	return one
}

// newest returns the session as it is now. The error is ErrUnknown or ErrAway.
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

// decode returns what a value of Records contains; nil is no value.
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

// Get implements [Sessions].
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
			_, _ = s.change(ctx, one, nil) // if that fails, the session goes on until its end
		}
	}
	return content.Record, nil
}

// Change implements [Sessions]. The error may also be ErrLarge.
func (s *sealed[S]) Change(ctx context.Context, id string, change func(*S)) (*S, error) {
	one := s.find(id)
	if one == nil {
		return nil, ErrUnknown
	}
	return s.change(ctx, one, change)
}

// change changes the record of a session, and moves the end of a session without an own end. change may be nil.
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

// update keeps a changed copy of the content of a session. The error is also ErrUnknown if the session has ended.
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

// End implements [Sessions]. A released session goes on in other processes, and in this one if it is used again.
func (s *sealed[S]) End(ctx context.Context, id string, why Ending) error {
	one := s.find(id)
	if one == nil || why == Released {
		return nil
	}
	// The value is kept as long as the id could be used, and has no record: it is small.
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

// endsMany counts an end. It reports whether there were mostEnds before, on the same day.
func (s *sealed[S]) endsMany() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.counted) > 24*time.Hour {
		s.ends, s.counted = 0, now
	}
	s.ends++
	return s.ends > mostEnds
}
