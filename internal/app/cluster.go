package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/front"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/hosted/page"
	"mcpx/internal/registry"
)

// join connects to the cluster. From then on, the state that all replicas share, such as sessions and logins, is in the cluster. Each
// replica keeps its own counters and results in memory, and sends the others what they need.
func (s *clientState) join(to *conf.Cluster, log *slog.Logger) error {
	config, err := clientTLS(&to.TLS)
	if err != nil {
		return fmt.Errorf("cluster.tls: %w", err)
	}
	host, _ := os.Hostname()
	options := cluster.Options{
		URLs: to.NATS, Credentials: to.Credentials, TLS: config, Name: cmp.Or(to.Name, host, "mcpx"), Bucket: to.Bucket, Log: log,
	}
	for _, key := range to.Keys {
		options.Keys = append(options.Keys, state.SecretOf([]byte(key)))
	}
	c, err := cluster.Join(context.Background(), options)
	if err != nil {
		return err
	}
	s.cluster, s.secrets = c, options.Keys
	s.sessions = state.NewSealed[front.Session](options.Keys, "session", c.Records())
	s.browsers = state.NewStored[page.Session]("browser", c.Records())
	s.once = state.NewOnce("call", c.Records())
	s.frontLogins.store = c.Records()
	s.counters = c.NewCounters(s.counters)
	s.results = cluster.NewResults(c, s.results)
	s.catalogues = cataloguesOf(c)
	s.approvals = &approvals{all: make(Lock)}
	log.Info("joined the cluster", "replica", options.Name, "id", c.Self(), "bucket", to.Bucket)
	return nil
}

// askCatalogue is the kind of message with which a replica asks another one for the catalogue of a server (its tools, resources and
// prompts). The message contains only the server's cache key.
const askCatalogue = "catalogue"

// maxCatalogue bounds the catalogue of one server that another replica sends, in bytes.
const maxCatalogue = 32 << 20

// cataloguesOf returns a function that asks the other replicas, one after the other, for the catalogue of a server. The function returns
// the first answer, or nil if there is none.
func cataloguesOf(c *cluster.Cluster) registry.Peers {
	return func(ctx context.Context, key string) []byte {
		for _, id := range c.Others() {
			var saved []byte
			for piece, err := range c.Ask(ctx, id, askCatalogue, []byte(key)) {
				if saved = append(saved, piece...); err != nil || len(saved) > maxCatalogue {
					saved = nil
					break
				}
			}
			if saved != nil {
				return saved
			}
		}
		return nil
	}
}

// leaves waits in the background for the end of ctx, and then tells the other replicas that this one shuts down. The caller calls finish
// when it no longer serves clients. finish waits until the requests that other replicas have forwarded to this one are answered, but not
// longer than limit after the end of ctx.
func (s *clientState) leaves(ctx context.Context, limit time.Duration) (finish func()) {
	if s.cluster == nil {
		return func() {}
	}
	open, expire := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, func() {
		s.cluster.Leave()
		time.AfterFunc(limit, expire)
	})
	return func() {
		defer expire()
		if !stop() { // stop returns false if ctx has ended, so the shutdown has begun; otherwise serving has failed
			s.cluster.Finish(open)
		}
	}
}

// close leaves the cluster; without a cluster it does nothing.
func (s *clientState) close() {
	if s.cluster != nil {
		s.cluster.Close()
	}
}

// clientTLS returns the TLS settings for the connections to the cluster. If the config names no TLS files, it returns nil; then the scheme
// of each URL decides whether TLS is used.
func clientTLS(files *conf.ClientTLS) (*tls.Config, error) {
	if *files == (conf.ClientTLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if files.CA != "" {
		pem, err := os.ReadFile(files.CA)
		if err != nil {
			return nil, err
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", files.CA)
		}
	}
	if files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
