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

// open opens the bucket, or creates it if NATS has none of this name. It fails if mcpx has not made the bucket. It sets
// r.stream.
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

// lastUpdates is how long stop waits for the next update before it assumes that no more updates come.
const lastUpdates = 5 * time.Second

// following is a subscription to the changes of the bucket. It ends with stop.
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
	go func() { // ends when Updates is closed, or after lastUpdates: a lost connection does not always close Updates
		for open := true; open; {
			select {
			case _, open = <-f.Updates():
			case <-time.After(lastUpdates):
				open = false
			}
		}
	}()
}

// load reads all records and then follows their changes, also after ctx has ended. round is the number of this reading of the whole
// bucket.
func (r *records) load(ctx context.Context, round int) (*following, error) {
	kv, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	lasting, cancel := context.WithCancel(context.Background())
	defer context.AfterFunc(ctx, cancel)() // WatchAll waits too, so the end of ctx must end it; after load, ctx no longer matters
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

// check returns an error if the bucket belongs to a cluster with another key.
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

// missing puts into heal the records that the read with the number round did not find although they have not expired: NATS has
// lost them. The method write writes them again.
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

// write writes the records in heal to NATS. After an error, the remaining ones are tried again at the next call.
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
		} else if wrongRevision(err) { // another replica may have written it
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

// unwritten logs, at most once a minute, that NATS can be reached but refuses a record.
func (r *records) unwritten(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.c.Connected() && !r.c.ended() && now.Sub(r.warned) >= time.Minute {
		r.c.log.Warn("NATS does not take a record: what clients change is refused meanwhile", "bucket", r.bucket, "error", err)
		r.warned = now
	}
}

// lost reports whether the bucket has lost records: it was deleted, created anew or purged. After a purge the record of the cluster
// itself (ownerKey) is missing, which no replica removes.
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
	if err != nil && connected.Err() != nil {
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

// read makes the method follow read all records again. It is called when changes may have been missed, and when a replica is
// new.
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
