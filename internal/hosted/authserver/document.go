package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/lru"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

const (
	// maxDocument is what the draft recommends (section 6.6), in bytes.
	maxDocument   = 5 << 10
	maxDocuments  = 100 // kept ([lru.Map])
	fetching      = 16  // at the same time
	documentTime  = 10 * time.Minute
	documentMost  = 24 * time.Hour
	documentFetch = 5 * time.Second
)

// documents fetches the documents of clients about themselves, when a client ID is the URL of
// one. Anybody can have them fetched, so they must be short and public, and few are kept.
type documents struct {
	web   *http.Client
	slots chan struct{}

	mu   sync.Mutex
	kept *lru.Map[string, keptDocument]
}

type keptDocument struct {
	client *client
	until  time.Time
}

func newDocuments(web *http.Client) *documents {
	web.Timeout = documentFetch
	web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the draft forbids to follow
	return &documents{web: web, slots: make(chan struct{}, fetching), kept: lru.New[string, keptDocument](maxDocuments, nil)}
}

// client is the client that the document at id describes. Errors are not kept.
func (d *documents) client(ctx context.Context, id string) (*client, error) {
	u, err := url.Parse(id)
	if err != nil || !documentURL(id, u) {
		return nil, &fault{"invalid_client", "a client_id that is a URL needs https and a path, and no fragment, user or dots as a part of its path"}
	}
	d.mu.Lock()
	kept := d.kept.Find(id)
	d.mu.Unlock()
	if kept != nil && time.Now().Before(kept.until) {
		return kept.client, nil
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		return nil, &fault{"temporarily_unavailable", "too many documents of clients are being fetched, try again"}
	}
	c, lasts, err := d.fetch(ctx, id)
	if err != nil {
		return nil, &fault{"invalid_client", fmt.Sprintf("reading the document of the client at %s: %s",
			sanitize.Line(u.Host, 100), sanitize.Line(err.Error(), 200))}
	}
	c.Host = u.Host
	if lasts > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.kept.Put(id, &keptDocument{c, time.Now().Add(lasts)})
	}
	return c, nil
}

// documentURL are the rules for a client ID that is a URL (section 3 of the draft).
func documentURL(id string, u *url.URL) bool {
	if u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(id, "#\\ ") || len(id) > 1<<10 ||
		strings.Trim(u.Path, "/") == "" {
		return false
	}
	return !dotted(u)
}

// dotted reports whether the path of a URL has a part "." or "..", which browsers resolve.
func dotted(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." })
}

// fetch reads a document, and how long it may be kept.
func (d *documents) fetch(ctx context.Context, id string) (*client, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := d.web.Do(req)
	if err != nil {
		return nil, 0, netguard.Cause(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return nil, 0, err
	case resp.StatusCode != http.StatusOK:
		return nil, 0, fmt.Errorf("it answers %s", resp.Status)
	case len(data) > maxDocument:
		return nil, 0, fmt.Errorf("it has more than %d bytes", maxDocument)
	case kind != "application/json" && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")):
		return nil, 0, errors.New("it is no JSON by its Content-Type")
	}
	c, err := readDocument(id, data)
	return c, lifetime(resp.Header), err
}

// readDocument reads a document that was fetched from id.
func readDocument(id string, data []byte) (*client, error) {
	var doc struct {
		ID      string          `json:"client_id"`
		Secret  json.RawMessage `json:"client_secret"`
		Expires json.RawMessage `json:"client_secret_expires_at"`
		Method  string          `json:"token_endpoint_auth_method"`
		// Methods is what ChatGPT lists beside the one that it prefers.
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	c, err := readClient(data)
	switch {
	case err != nil:
		return nil, err
	case doc.ID != id:
		return nil, errors.New("its client_id is another one")
	case doc.Secret != nil || doc.Expires != nil:
		return nil, errors.New("it has a secret in it")
	case doc.Method != "" && doc.Method != "none" && !slices.Contains(doc.Methods, "none"):
		return nil, fmt.Errorf("its token_endpoint_auth_method is %q, and only none is known here", sanitize.Line(doc.Method, 40))
	}
	c.ID = id
	return c, nil
}

// lifetime is how long a document may be kept by its Cache-Control (RFC 9111).
func lifetime(header http.Header) time.Duration {
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(header.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32)
			if err != nil {
				return 0
			}
			return min(time.Duration(max(seconds, 0))*time.Second, documentMost)
		}
	}
	return documentTime
}
