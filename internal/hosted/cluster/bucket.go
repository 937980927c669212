package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// open opens the bucket, or creates it if NATS has no bucket with this name. It fails if the bucket was made by another program. It
// also sets r.stream.
func (r *records) open(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := r.js.KeyValue(ctx, r.bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		config := jetstream.KeyValueConfig{
			Bucket: r.bucket, Description: "what the replicas of mcpx share; sealed", LimitMarkerTTL: time.Hour,
			Storage: jetstream.FileStorage, Replicas: 1,
		}
		if r.c.conn.ConnectedClusterName() != "" {
			config.Replicas = 3
		}
		if kv, err = r.js.CreateKeyValue(ctx, config); err != nil && config.Replicas > 1 { // NATS has too few servers
			config.Replicas = 1
			kv, err = r.js.CreateKeyValue(ctx, config)
		}
		if errors.Is(err, jetstream.ErrBucketExists) { // another replica was faster
			kv, err = r.js.KeyValue(ctx, r.bucket)
		}
	}
	switch {
	case errors.Is(err, jetstream.ErrLimitMarkerTTLNotSupported):
		return nil, fmt.Errorf("the NATS server is %s; mcpx needs 2.11 or later", r.c.conn.ConnectedServerVersion())
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("the NATS server does not offer JetStream (start it with -js): %w", err)
	case err != nil:
		return nil, fmt.Errorf("opening the bucket %s: %w", r.bucket, err)
	}
	status, err := kv.Status(ctx)
	if err == nil && status.LimitMarkerTTL() == 0 {
		err = fmt.Errorf("the bucket %s exists, and was not made by mcpx: choose another cluster.bucket", r.bucket)
	}
	if err == nil {
		var stream jetstream.Stream
		if stream, err = r.js.Stream(ctx, "KV_"+r.bucket); err == nil {
			r.mu.Lock()
			r.stream = stream
			r.mu.Unlock()
		}
	}
	return kv, err
}

// lastUpdates is how long the goroutine of stop waits for the next update before it assumes that no more updates come.
const lastUpdates = 5 * time.Second

// following is a subscription to the changes of the bucket. It ends when stop is called.
type following struct {
	jetstream.KeyWatcher
	cancel context.CancelFunc
}

func (f *following) stop() {
	if f == nil {
		return
	}
	f.cancel()
	_ = f.Stop()
	go func() { // ends when Updates is closed, or silent for lastUpdates: after a lost connection, Updates may stay open
		for open := true; open; {
			select {
			case _, open = <-f.Updates():
			case <-time.After(lastUpdates):
				open = false
			}
		}
	}()
}

// load reads all records of the bucket, and returns a subscription to their later changes, which outlives ctx. load is called again
// whenever the whole bucket must be read again. round is the number of the call.
func (r *records) load(ctx context.Context, round int) (*following, error) {
	kv, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	lasting, cancel := context.WithCancel(context.Background())
	// The end of ctx must also end WatchAll, which waits for NATS. After load, ctx no longer matters.
	defer context.AfterFunc(ctx, cancel)()
	watcher, err := kv.WatchAll(lasting)
	if err != nil {
		cancel()
		return nil, err
	}
	watch := &following{watcher, cancel}
	for {
		select {
		case one, ok := <-watch.Updates():
			if !ok {
				watch.stop()
				return nil, errors.New("NATS ended the subscription")
			}
			if one != nil {
				if err := r.check(one); err != nil {
					watch.stop()
					return nil, err
				}
				r.receive(one.Key(), one.Value(), one.Revision(), round)
				continue
			}
			r.missing(round)
			return watch, nil
		case <-ctx.Done():
			watch.stop()
			return nil, ctx.Err()
		}
	}
}

// check returns an error if the record shows that the bucket belongs to a cluster with another key. Only the record that marks the
// bucket (ownerKey) can show it: this replica then cannot decrypt that record. For other records check returns nil.
func (r *records) check(one jetstream.KeyValueEntry) error {
	name := hashed(ownerKey)
	if one.Key() != name || len(one.Value()) == 0 {
		return nil
	}
	if _, _, _, err := r.c.box.open("record "+r.bucket+" "+name, one.Value()); err != nil {
		return fmt.Errorf("the bucket %s belongs to a cluster with another key: %w", r.bucket, err)
	}
	return nil
}

// missing puts into heal the records that have not expired, but that the load with the number round did not find: NATS has lost
// them. The method write then writes them to NATS again.
func (r *records) missing(round int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, one := range r.byHash {
		if one.round != round && !one.over(now) {
			one.revision = 0
			r.heal[one] = true
		}
	}
}

// write writes the records in heal to NATS. After an error it stops, and the next call tries the remaining records again.
func (r *records) write(ctx context.Context) {
	r.mu.RLock()
	list := slices.Collect(maps.Keys(r.heal))
	r.mu.RUnlock()
	for _, known := range list {
		r.mu.Lock()
		waits, one := r.heal[known], *known
		delete(r.heal, known)
		r.mu.Unlock()
		if !waits {
			continue
		}
		err := r.put(ctx, &one)
		if err == nil {
			r.apply(hashed(one.Key), &one)
		} else if wrongRevision(err) { // another replica may have written the record already
			_, err = r.refresh(ctx, one.Key, 0)
		}
		if err == nil {
			continue
		}
		r.mu.Lock()
		if r.byHash[hashed(one.Key)] == known {
			r.heal[known] = true
		}
		r.mu.Unlock()
		r.unwritten(err)
		return
	}
}

// unwritten logs that NATS refuses a record although it can be reached, at most once a minute.
func (r *records) unwritten(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.c.Connected() && !r.c.ended() && now.Sub(r.warned) >= time.Minute {
		r.c.log.Warn("NATS does not take a record: what clients change is refused meanwhile", "bucket", r.bucket, "error", err)
		r.warned = now
	}
}

// lost reports whether the bucket has lost records because it was deleted, made anew or purged. No replica ever removes the record
// that marks the bucket (ownerKey). So if the oldest message of the bucket is newer than this record, the bucket was purged.
func (r *records) lost(ctx context.Context) bool {
	r.mu.RLock()
	before, owner := r.stream, uint64(0)
	if one := r.byHash[hashed(ownerKey)]; one != nil {
		owner = one.revision
	}
	r.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	now, err := r.js.Stream(ctx, "KV_"+r.bucket)
	if err != nil {
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	info := now.CachedInfo()
	return !info.Created.Equal(before.CachedInfo().Created) || info.State.FirstSeq > owner
}

// start reads the bucket, writes the record that marks it as this cluster's (ownerKey), and follows the bucket until Close.
func (r *records) start(ctx context.Context) error {
	connected, done := r.c.whileConnected(time.Minute)
	defer done()
	defer context.AfterFunc(ctx, done)()
	watch, err := r.load(connected, 1)
	if err != nil && connected.Err() != nil || errors.Is(err, nats.ErrReconnectBufExceeded) { // nats.go may return it first
		return fmt.Errorf("the connection to NATS broke, or NATS does not answer: %w", err)
	}
	if err != nil {
		return err
	}
	err = r.Change(ctx, ownerKey, func([]byte) ([]byte, time.Time, error) {
		return []byte("mcpx"), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), nil
	})
	if err != nil {
		watch.stop()
		return fmt.Errorf("writing into the bucket %s: %w", r.bucket, err)
	}
	r.c.closed.Go(func() { r.follow(watch) }) // ends with Close
	return nil
}

// read makes the goroutine of follow read all records again. It is called when changes may have been missed, and when a new replica
// has appeared.
func (r *records) read() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *records) follow(watch *following) {
	ctx := r.c.life
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for round, cleaned := 1, time.Now(); ; {
		var updates <-chan jetstream.KeyValueEntry
		if watch != nil {
			updates = watch.Updates()
		}
		select {
		case <-ctx.Done():
			watch.stop()
			return
		case one, ok := <-updates:
			if !ok {
				watch.stop() // NATS has closed Updates, but a goroutine of nats.go waits for stop
				watch = nil
			} else if one != nil {
				r.receive(one.Key(), one.Value(), one.Revision(), round)
			}
			continue
		case <-r.again:
			watch.stop()
			watch = nil
		case now := <-ticks.C:
			if now.Sub(cleaned) > time.Minute {
				r.expire(now)
				cleaned = now
			}
			if watch != nil && r.c.Connected() && r.lost(ctx) {
				watch.stop()
				watch = nil
			}
		}
		connected, done := r.c.whileConnected(time.Minute)
		if watch == nil && r.c.Connected() {
			round++
			var err error
			if watch, err = r.load(connected, round); err != nil && ctx.Err() == nil && r.c.Connected() {
				r.c.log.Warn("the records of the cluster cannot be read again", "error", err)
			}
		}
		r.write(connected)
		done()
	}
}
