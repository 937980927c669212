package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// keySet has the keys of an issuer, as they were downloaded last.
type keySet struct {
	*jwkset.MemoryJWKSet
	issuer *issuer

	mu      sync.Mutex // held during a download
	at      string     // the URL of the keys
	skipped string     // which keys the last download skipped, and why; logged whenever this changes
}

// refresh downloads the keys regularly, until the context of the issuer ends.
func (k *keySet) refresh() {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			k.again()
		case <-k.issuer.ctx.Done():
			return
		}
	}
}

// again downloads the keys once more, from another URL if the issuer has moved them. If that fails, again logs the error, and the
// old keys stay in use.
func (k *keySet) again() {
	err := k.download()
	if err != nil && k.moved() {
		err = k.download()
	}
	if err != nil && k.issuer.ctx.Err() == nil {
		k.issuer.log.Warn("cannot refresh the keys of an issuer; the earlier keys stay in use", "issuer", k.issuer.URL, "err", err)
	}
}

// moved reads the metadata of the issuer. It returns true if the URL of the keys has changed there; the next download then uses the
// new URL.
func (k *keySet) moved() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx, cancel := context.WithTimeout(k.issuer.ctx, discoverTimeout)
	defer cancel()
	at, err := k.issuer.keysURL(ctx)
	if err != nil || at == k.at {
		return false
	}
	k.issuer.log.Info("an issuer has moved its keys", "issuer", k.issuer.URL, "keys", at)
	k.at = at
	return true
}

// download replaces the keys by those that the issuer has now. It skips keys that it cannot read, such as those of a kind that mcpx
// does not know. If there is no key that it can read, the issuer has made a mistake: download then returns an error, and the old
// keys stay.
func (k *keySet) download() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx, cancel := context.WithTimeout(k.issuer.ctx, fetchTimeout)
	defer cancel()
	var set struct{ Keys []json.RawMessage }
	if err := netguard.Get(ctx, k.issuer.web, k.at, "", &set); err != nil {
		return netguard.Cause(err)
	}
	var keys []jwkset.JWK
	var skipped []string
	for _, one := range set.Keys {
		key, err := readKey(one)
		if err == nil {
			keys = append(keys, key)
			continue
		}
		var named struct{ KID any }
		_ = json.Unmarshal(one, &named) // a key without a name is logged with the reason alone
		kid, _ := named.KID.(string)
		skipped = append(skipped, cmp.Or(sanitize.Line(kid, 80), "(no kid)")+": "+sanitize.Line(err.Error(), 200))
	}
	if said := strings.Join(skipped, "; "); said != k.skipped {
		if k.skipped = said; said != "" {
			k.issuer.log.Warn("keys of an issuer cannot be read and are skipped", "issuer", k.issuer.URL, "keys", said)
		}
	}
	if len(keys) == 0 {
		return errors.New("the set has no key that mcpx can read")
	}
	return k.KeyReplaceAll(ctx, keys)
}

// readKey reads one key. Members that mcpx does not use, such as the certificate of the key, may be invalid.
func readKey(one json.RawMessage) (jwkset.JWK, error) {
	var key jwkset.JWKMarshal
	if err := json.Unmarshal(one, &key); err != nil {
		return jwkset.JWK{}, err
	}
	key.X5C = nil
	return jwkset.NewJWKFromMarshal(key, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
}
