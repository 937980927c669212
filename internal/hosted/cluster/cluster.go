// Package cluster joins several processes of mcpx, the replicas, into one endpoint. The replicas find each other through NATS, and
// share the state of clients through it. Everything that a replica sends or stores is sealed with a key of the cluster, so neither
// NATS nor its other users can read or forge it. But they can delay it or throw it away.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"mcpx/internal/base/state"
)

// Options say how a process joins a cluster.
type Options struct {
	// URLs are addresses of NATS servers. At least one must be reachable when the process starts.
	URLs []string
	// Credentials is the path or the content of a NATS credentials file, or empty.
	Credentials string
	TLS         *tls.Config // nil: TLS if a URL asks for it, with the certificates of the system
	// Keys are the secrets of the cluster. The first one encrypts, and all of them decrypt. There is at least one.
	Keys []*state.Secret
	// Name is what people call this replica. Bucket is the name that the cluster has in NATS: all its replicas have the same.
	Name, Bucket string
	Log          *slog.Logger

	// patience is set only by tests; 0 means deadAfter. It is how long the other replicas and NATS may be silent before this
	// replica assumes that they have ended.
	patience time.Duration
}

// errGone means that the other replica has ended or does not exist.
var errGone = errors.New("the replica that had this has ended")

// ErrUntaken means that the other replica has done nothing for a call of [Cluster.Ask] or [Cluster.Open]: either it has not
// received the data, or it accepts no more questions and streams.
var ErrUntaken = errors.New("that replica takes no requests any more")

// joinTime is how long Join waits, at most, until NATS can be reached.
const joinTime = 10 * time.Second

// Cluster is this process as a replica. It may be used by several goroutines at the same time.
type Cluster struct {
	self, name, prefix string
	log                *slog.Logger
	box                *box
	conn               *nats.Conn
	connected          atomic.Bool     // a copy, because conn.IsConnected blocks while conn reconnects
	life               context.Context // cancelled by Close
	end                context.CancelFunc
	closed             sync.WaitGroup

	presence presence
	calls    exchanges
	refusals refusals
	records  *records

	mu      sync.RWMutex
	hear    map[string]chan<- heard
	answer  map[string]answerer
	done    bool // Finish was called: new questions are refused
	stopped bool
	cut     context.CancelFunc // ends the context that whileConnected has returned last
}

type heard struct {
	from string
	data []byte
}

// Join connects to NATS. It returns when this replica can send and receive and has a copy of the records. It fails, for example, if
// NATS cannot be reached within ten seconds, or if the bucket belongs to a cluster with another key. If the connection is lost
// later, the Cluster connects again by itself.
func Join(ctx context.Context, o Options) (*Cluster, error) {
	if len(o.Keys) == 0 || len(o.URLs) == 0 {
		return nil, errors.New("a cluster needs a key and the address of a NATS server")
	}
	c := &Cluster{
		self: strings.ToLower(rand.Text()[:8]), name: o.Name, prefix: "mcpx." + o.Bucket + ".", log: o.Log,
		box:  newBox(o.Keys),
		hear: make(map[string]chan<- heard), answer: make(map[string]answerer),
	}
	c.life, c.end = context.WithCancel(context.Background())
	o.patience = cmp.Or(o.patience, deadAfter)
	c.presence.peers, c.presence.patience = make(map[string]*peer), o.patience
	c.calls.open = make(map[callID]*exchange)
	ctx, cancel := context.WithTimeout(ctx, max(joinTime, o.patience))
	defer cancel()
	if err := c.connect(ctx, &o); err != nil {
		return nil, fmt.Errorf("joining the cluster: %w", err)
	}
	c.closed.Go(c.beat)
	err := c.records.start(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("joining the cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) connect(ctx context.Context, o *Options) error {
	options := []nats.Option{
		nats.Name("mcpx " + o.Name), nats.NoEcho(), nats.CustomInboxPrefix(c.prefix + "inbox"), nats.Timeout(2 * time.Second),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond),
		// A message that cannot be sent at once fails at once: callers decide what to do while NATS cannot be reached.
		nats.ReconnectBufSize(-1), nats.PingInterval(o.patience / 2), nats.MaxPingsOutstanding(2),
		// nats.go runs these handlers one after the other.
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.away(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.back() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.trouble(err) }),
	}
	switch {
	case strings.HasPrefix(strings.TrimSpace(o.Credentials), "-----"):
		options = append(options, nats.UserCredentialBytes([]byte(o.Credentials)))
	case o.Credentials != "":
		if _, err := os.Stat(o.Credentials); err != nil {
			return err
		}
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	c.connected.Store(true) // set before Connect, because away may be called as soon as Connect has returned
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := nats.Connect(strings.Join(o.URLs, ","), options...)
		if err == nil {
			c.conn = conn
			break
		}
		untrusted := new(tls.CertificateVerificationError)
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.As(err, &untrusted) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("NATS cannot be reached: %w", err)
		}
	}
	records, err := newRecords(c, o.Bucket)
	if err == nil {
		c.records = records
		err = c.listen(ctx)
	}
	if err != nil {
		c.conn.Close()
	}
	return err
}

func (c *Cluster) listen(ctx context.Context) error {
	if most := c.conn.MaxPayload(); most < 2*maxPiece {
		return fmt.Errorf("NATS takes messages of %d bytes; mcpx needs a max_payload of at least %d", most, 2*maxPiece)
	}
	for _, subject := range []string{c.prefix + "all", c.prefix + "to." + c.self} {
		received := windows{of: make(map[salt]*window)}
		_, err := c.conn.Subscribe(subject, func(m *nats.Msg) { // NATS calls it for one message after the other
			h, data, err := c.open(m, &received)
			if err != nil {
				c.refusals.add(c.log, "message", err)
				return
			}
			if h.From != c.self {
				c.take(h, data)
			}
		})
		if err != nil {
			return err
		}
	}
	return c.conn.FlushWithContext(ctx)
}

// Close tells the other replicas that this one ends, and ends all exchanges and subscriptions with them.
func (c *Cluster) Close() {
	c.mu.Lock()
	stopped := c.stopped
	c.stopped = true
	c.mu.Unlock()
	if stopped {
		return
	}
	c.end()
	// The goodbye is not sent to "all": NATS keeps messages in order only within one subject, and the goodbye must come after the
	// last answers, which go to "to." and the id.
	for _, id := range c.Others() {
		_ = c.send("to."+id, &head{Do: doBye}, nil)
	}
	_ = c.conn.FlushTimeout(time.Second)
	c.calls.fail(func(*exchange) bool { return true }, errGone)
	c.conn.Close()
	c.mu.Lock()
	for kind, queue := range c.hear {
		close(queue)
		delete(c.hear, kind)
	}
	c.mu.Unlock()
	c.closed.Wait()
}

// away is called when the connection to NATS is lost. It ends all exchanges: messages may have been lost with the connection, and
// an exchange would wait for a lost message forever.
func (c *Cluster) away(err error) {
	c.connected.Store(false)
	c.mu.RLock()
	if c.cut != nil {
		c.cut()
	}
	c.mu.RUnlock()
	if c.ended() {
		return
	}
	c.log.Warn("the connection to NATS is lost; this replica goes on with what it knows", "error", err)
	c.presence.lost(time.Now())
	c.calls.fail(func(*exchange) bool { return true }, state.ErrAway)
}

func (c *Cluster) back() {
	c.connected.Store(true)
	c.log.Info("the connection to NATS is back", "server", c.conn.ConnectedUrlRedacted())
	c.presence.touch(time.Now())
	c.sendBeat("all")
	c.records.read()
}

// whileConnected returns a context that ends when the connection is lost, after limit, or with Close. Requests to NATS need it: if
// the connection is lost, their answer never comes. Only one goroutine may call whileConnected at a time: first the one of Join,
// later the one that follows the records.
func (c *Cluster) whileConnected(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(c.life, limit)
	c.mu.Lock()
	c.cut = cancel
	c.mu.Unlock()
	if !c.Connected() {
		cancel()
	}
	return ctx, cancel
}

func (c *Cluster) trouble(err error) {
	if c.ended() {
		return
	}
	if errors.Is(err, nats.ErrSlowConsumer) { // messages were lost
		c.presence.lost(time.Now())
		c.calls.fail(func(*exchange) bool { return true }, state.ErrAway)
		c.sendBeat("all")
		c.records.read()
	}
	c.log.Warn("NATS", "error", err)
}

func (c *Cluster) ended() bool { return c.life.Err() != nil }

// Connected reports whether NATS can be reached. It does not wait.
func (c *Cluster) Connected() bool { return c.connected.Load() }

// Self returns the id of this replica, which is random for each process.
func (c *Cluster) Self() string { return c.self }

// Refused returns how many messages and records were refused. Mostly they were not encrypted by this cluster, were too old, were
// received before, or were older than what this replica knows.
func (c *Cluster) Refused() int { return int(c.refusals.count.Load()) }

// refusals counts refused messages and records, and logs them at most once a minute.
type refusals struct {
	count  atomic.Int64
	mu     sync.Mutex
	logged time.Time
	before int64 // count when the last line was logged
}

func (r *refusals) add(log *slog.Logger, what string, why error) {
	count := r.count.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.logged) >= time.Minute {
		log.Warn("refused what came through NATS", "what", what, "reason", why, "times", count-r.before)
		r.logged, r.before = now, count
	}
}
