package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/state"
)

const (
	// changeTime is how long a change may take in NATS.
	changeTime = 3 * time.Second
	// maxTries is how often a change is tried if other replicas change the same record meanwhile.
	maxTries = 200
	// maxRecords limits the bytes of all records together, so that clients that send much about themselves cannot fill the memory
	// of all replicas. The less room is left, the smaller a new record must be. So these clients are refused first. A record of at
	// most smallRecord bytes is refused only if all records together have more than 2*maxRecords bytes.
	maxRecords, smallRecord = 256 << 20, 1 << 10
	// ownerKey is the key of a record that marks the bucket as this cluster's: replicas of a cluster with another key cannot
	// decrypt it.
	ownerKey = "cluster"
)

var (
	errRolledBack = errors.New("a record is older than the one that this replica knows")
	errRemoved    = errors.New("a record was removed before its time")
)

// records implement [state.Records] with a bucket of NATS (a key-value store). Each replica has a copy of all records. A records
// may be used by several goroutines at the same time.
//
// A replica never replaces a record by an older one. If the bucket has lost records or has gone back to older ones, the replicas
// write their newer records to it again.
type records struct {
	c      *Cluster
	bucket string
	stream jetstream.Stream // the bucket; set whenever the whole bucket is read, first by Join
	js     jetstream.JetStream
	again  chan struct{} // gets a value when all records must be read again
	seed   maphash.Seed
	making [64]sync.Mutex // held during Change; the key chooses the lock, so several keys share one

	mu     sync.RWMutex
	byKey  map[string]*record
	byHash map[string]*record // by the hash of the key, which is the key in NATS
	bytes  int
	heal   map[*record]bool // records that must be written to NATS again
	warned time.Time        // time of the last warning about a failed write
	watch  []*watcher
}

// watcher is one call of Watch: do is called with each new value of a key that begins with prefix. The values of one key come in
// the order in which they were stored.
type watcher struct {
	prefix string
	do     func(value []byte)
}

type record struct {
	recordHead
	value    []byte
	revision uint64 // the newest revision of the key in NATS; perhaps of a value that this replica has refused
	round    int    // number of the last load that found this record
}

// recordHead is the first line of a record before encryption. A replica ignores members that it does not know.
type recordHead struct {
	Key   string `json:"key"`
	N     uint64 `json:"n"`     // one more after each change
	Until int64  `json:"until"` // Unix time in milliseconds
}

func (r *record) over(now time.Time) bool { return now.UnixMilli() >= r.Until }

// hashed returns the hash of a key. NATS gets only the hash, which does not reveal the key.
func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func newRecords(c *Cluster, bucket string) (*records, error) {
	js, err := jetstream.New(c.conn)
	return &records{
		c: c, bucket: bucket, js: js, again: make(chan struct{}, 1), seed: maphash.MakeSeed(),
		byKey: make(map[string]*record), byHash: make(map[string]*record), heal: make(map[*record]bool),
	}, err
}

// Records returns the records that the replicas share. Its method Get reads this replica's copy, and does not ask NATS.
func (c *Cluster) Records() state.Followed { return c.records }

// Get returns the value of a key from this replica's copy. If there is no value, or if it has expired, the error is
// [state.ErrUnknown].
func (r *records) Get(key string) ([]byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if one := r.byKey[key]; one != nil && !one.over(time.Now()) {
		return one.value, nil
	}
	return nil, state.ErrUnknown
}

// Change replaces the value of a key in NATS. If another replica changes the value at the same time, Change tries again with the
// new value, so it may call change several times. If change returns an error, Change returns that error and stores nothing. If the
// value is too large, the error is [state.ErrLarge]. If NATS does not store the value, the error is [state.ErrAway].
func (r *records) Change(ctx context.Context, key string, change func(old []byte) ([]byte, time.Time, error)) error {
	making := &r.making[maphash.String(r.seed, key)%uint64(len(r.making))]
	making.Lock()
	defer making.Unlock()
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	newest := uint64(0) // newest revision in NATS; its value may have expired, or this replica may have refused it
	for try := range maxTries {
		r.mu.RLock()
		var known record
		if one := r.byKey[key]; one != nil {
			known = *one
		}
		r.mu.RUnlock()
		if known.over(time.Now()) {
			known.value = nil
		}
		value, until, err := change(known.value)
		if err != nil {
			return err
		}
		if err := r.fits(len(value)); err != nil {
			return err
		}
		head := recordHead{Key: key, N: known.N + 1, Until: until.UnixMilli()}
		next := &record{recordHead: head, value: value, revision: max(known.revision, newest)}
		switch err := r.put(ctx, next); {
		case err == nil:
			r.apply(hashed(key), next)
			return nil
		case wrongRevision(err):
			if newest, err = r.refresh(ctx, key, try); err == nil {
				continue
			}
			fallthrough
		default:
			if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
				return cause
			}
			r.unwritten(err)
			return state.ErrAway
		}
	}
	return state.ErrAway
}

func (r *records) fits(size int) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	room := (maxRecords - r.bytes) >> 11 // state.MaxRecord or more as long as at least half of maxRecords is free
	if size > state.MaxRecord || size > max(room, smallRecord) || r.bytes > 2*maxRecords {
		return state.ErrLarge
	}
	return nil
}

// put writes a record to NATS and sets its revision. It fails if NATS has a revision of the key that is newer than one.revision.
func (r *records) put(ctx context.Context, one *record) error {
	if !r.c.Connected() {
		return state.ErrAway
	}
	text, err := json.Marshal(one.recordHead)
	if err != nil {
		return err
	}
	name := hashed(one.Key)
	m := nats.NewMsg("$KV." + r.bucket + "." + name)
	m.Data = r.c.box.seal("record "+r.bucket+" "+name, append(append(text, '\n'), one.value...))
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(one.revision)}
	if left := time.Until(time.UnixMilli(one.Until)); left < 10*365*24*time.Hour {
		options = append(options, jetstream.WithMsgTTL(max(left, 0).Truncate(time.Second)+2*time.Second))
	}
	ack, err := r.js.PublishMsg(ctx, m, options...)
	if err == nil {
		one.revision = ack.Sequence
	}
	return err
}

func wrongRevision(err error) bool {
	api := new(jetstream.APIError)
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// refresh reads the newest value of a key after another replica has changed it, and returns its revision. try counts the tries from
// 0. From the fifth on, refresh first waits for a short random time, so that the replicas do not disturb each other again.
func (r *records) refresh(ctx context.Context, key string, try int) (revision uint64, err error) {
	if try > 3 {
		if !delay.Sleep(ctx, rand.N(time.Duration(try)*time.Millisecond)) {
			return 0, ctx.Err()
		}
	}
	r.mu.RLock()
	stream := r.stream
	r.mu.RUnlock()
	name := hashed(key)
	m, err := stream.GetLastMsgForSubject(ctx, "$KV."+r.bucket+"."+name)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		m, err = &jetstream.RawStreamMsg{}, nil
	}
	if err != nil {
		return 0, err
	}
	r.receive(name, m.Data, m.Sequence, 0)
	return m.Sequence, nil
}

// receive handles the value that NATS has for a key: an encrypted record, or nothing if the record has expired or was removed. name
// is the hashed key. round is the number of the load that found the value, or 0 if refresh found it.
func (r *records) receive(name string, data []byte, revision uint64, round int) {
	if len(data) == 0 {
		r.refuse(name, revision, errRemoved)
		return
	}
	text, _, _, err := r.c.box.open("record "+r.bucket+" "+name, data)
	one := &record{revision: revision, round: round}
	if err == nil {
		first, value, _ := bytes.Cut(text, []byte("\n"))
		one.value = value
		err = json.Unmarshal(first, &one.recordHead)
	}
	switch {
	case err != nil:
	case hashed(one.Key) != name:
		err = errSeal
	case !r.apply(name, one):
		err = errRolledBack
	}
	if err != nil {
		r.refuse(name, revision, err)
	}
}

// apply puts a record into this replica's copy, unless the copy has a newer one. It returns false if the record proves that NATS
// was rolled back: an older record with a newer revision.
func (r *records) apply(name string, one *record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byHash[name]
	if known != nil {
		if one.N < known.N {
			// An older value that arrives late is harmless: NATS already has a newer one.
			return one.revision < known.revision
		}
		r.bytes -= len(known.Key) + len(known.value)
		delete(r.heal, known)
	}
	r.byHash[name], r.byKey[one.Key] = one, one
	r.bytes += len(one.Key) + len(one.value)
	if known == nil || one.N > known.N || !bytes.Equal(one.value, known.value) {
		for _, w := range r.watch {
			if strings.HasPrefix(one.Key, w.prefix) {
				w.do(one.value)
			}
		}
	}
	return true
}

// refuse counts and logs a value that should not be in NATS. If this replica knows the right value, refuse puts it into heal, from
// which the method write writes it to NATS again. If an expired record was removed, this is no fault, and is not counted.
func (r *records) refuse(name string, revision uint64, err error) {
	r.mu.Lock()
	known := r.byHash[name]
	bad := known != nil && revision >= known.revision && !known.over(time.Now())
	if known != nil {
		known.revision = max(known.revision, revision)
		if revision == 0 {
			known.revision = 0
		}
	}
	if bad || known != nil && revision == 0 && !known.over(time.Now()) {
		r.heal[known] = true
	}
	r.mu.Unlock()
	if bad || !errors.Is(err, errRemoved) {
		r.c.refusals.add(r.c.log, "record", err)
	}
}

// expire removes expired records from this replica's copy. NATS removes its own after their TTL.
func (r *records) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, one := range r.byHash {
		if one.over(now.Add(-time.Minute)) {
			delete(r.byHash, name)
			delete(r.byKey, one.Key)
			delete(r.heal, one)
			r.bytes -= len(one.Key) + len(one.value)
		}
	}
}

// Watch implements [state.Followed]. It calls handle with each value that this replica has for a key that begins with prefix. Then,
// until stop is called, it calls handle with each new value that this replica writes or receives.
func (r *records) Watch(prefix string, handle func(value []byte)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &watcher{prefix, handle}
	r.watch = append(r.watch, w)
	for key, one := range r.byKey {
		if strings.HasPrefix(key, prefix) {
			handle(one.value)
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watch = slices.DeleteFunc(slices.Clone(r.watch), func(one *watcher) bool { return one == w })
	}
}
