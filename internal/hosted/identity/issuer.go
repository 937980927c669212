package identity

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
)

const (
	// discoverTimeout is how long mcpx may take to find the URL of an issuer's keys. fetchTimeout is how long each download of the
	// keys may take.
	discoverTimeout = 10 * time.Second
	fetchTimeout    = 5 * time.Second
	// tryAgain is the time between two attempts to discover the keys of an issuer.
	tryAgain = 10 * time.Second
	// lookEvery is the time between two downloads that are made because a token has an unknown key ID. With this pause, forged
	// tokens do not burden the issuer. The first unknownKeys downloads are made without the pause, because the issuer may replace
	// several keys at once.
	lookEvery   = 2 * time.Second
	unknownKeys = 3
	// refreshEvery is the time between two regular downloads of the keys. So when the issuer has removed a key, mcpx accepts the
	// key for at most refreshEvery, and tokens of that key for at most keepVerified longer. This holds as long as the downloads
	// work.
	refreshEvery = 15 * time.Minute
)

// issuer verifies the tokens of an Issuer of the config. It fetches the keys when the first token arrives. All downloads stop when
// ctx ends.
type issuer struct {
	conf.Issuer
	audiences []string // in canonical form; nil means the URL of the endpoint or of the request
	web       *http.Client
	log       *slog.Logger
	ctx       context.Context
	revoke    context.CancelFunc

	mu    sync.Mutex // held during discovery
	keys  keyfunc.Keyfunc
	again time.Time // when the issuer may be contacted again
}

func newIssuer(of conf.Issuer, log *slog.Logger) *issuer {
	i := &issuer{Issuer: of, log: log}
	for _, audience := range of.Audiences {
		i.audiences = append(i.audiences, canonical(audience))
	}
	i.web = netguard.NewClient(netguard.Reach{Loopback: netguard.LoopbackURL(of.URL), Private: of.AllowPrivate, Key: "allow_private of the issuer"})
	i.ctx, i.revoke = context.WithCancel(context.Background())
	return i
}

// key returns the public key that the header of a token names. If the key is unknown, key waits for a download of the keys, at most
// until ctx ends.
func (i *issuer) key(ctx context.Context, t *jwt.Token) (any, error) {
	keys, err := i.reach()
	if err != nil {
		return nil, err
	}
	return keys.KeyfuncCtx(ctx)(t)
}

// reach returns the keys of the issuer. It discovers them when they are first needed, so that mcpx can start while the issuer is
// down. Requests that arrive at the same time share one attempt, which goes on even if one of them is cancelled. After an error,
// the next attempt is made tryAgain later.
func (i *issuer) reach() (keyfunc.Keyfunc, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	if time.Now().Before(i.again) {
		return nil, ErrUnavailable
	}
	keys, err := i.discover()
	if err != nil {
		i.again = time.Now().Add(tryAgain)
		i.log.Error("cannot read the keys of an issuer; its tokens are refused", "issuer", i.URL, "err", err)
		return nil, ErrUnavailable
	}
	i.keys = keys
	return keys, nil
}

func (i *issuer) discover() (keyfunc.Keyfunc, error) {
	ctx, cancel := context.WithTimeout(i.ctx, discoverTimeout)
	defer cancel()
	at, err := i.keysURL(ctx)
	if err != nil {
		return nil, err
	}
	keys := &keySet{MemoryJWKSet: jwkset.NewMemoryStorage(), issuer: i, at: at}
	if err := keys.download(); err != nil {
		return nil, err
	}
	go keys.refresh() // ends with i.ctx
	looked := &lookedUp{keySet: keys, rate: rate.NewLimiter(rate.Every(lookEvery), unknownKeys)}
	return keyfunc.New(keyfunc.Options{Ctx: i.ctx, Storage: looked, UseWhitelist: []jwkset.USE{"", jwkset.UseSig}})
}

// keysURL reads the URL of the keys from the issuer's metadata. It tries three addresses: the one of RFC 8414, and two of OpenID
// Connect Discovery, with the well-known part before or after the path of the issuer.
func (i *issuer) keysURL(ctx context.Context) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(i.URL, "/"))
	if err != nil {
		return "", err
	}
	origin := u.Scheme + "://" + u.Host
	var first error
	for _, place := range []string{
		origin + "/.well-known/oauth-authorization-server" + u.EscapedPath(),
		origin + "/.well-known/openid-configuration" + u.EscapedPath(),
		origin + u.EscapedPath() + "/.well-known/openid-configuration",
	} {
		keys, err := i.metadata(ctx, place)
		if err == nil {
			return keys, nil
		}
		first = cmp.Or(first, err)
	}
	return "", first
}

func (i *issuer) metadata(ctx context.Context, place string) (keys string, err error) {
	var metadata struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := netguard.Get(ctx, i.web, place, "", &metadata); err != nil {
		return "", fmt.Errorf("%s: %w", place, netguard.Cause(err))
	}
	switch {
	case metadata.Issuer != i.URL:
		return "", fmt.Errorf("%s: the issuer there is %.200q", place, metadata.Issuer)
	case !netguard.Safe(metadata.Keys):
		return "", fmt.Errorf("%s: has no jwks_uri with https", place)
	}
	return metadata.Keys, nil
}
