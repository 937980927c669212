package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
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
	// maxDocument is the maximum length of a document in bytes. It is the limit that draft-ietf-oauth-client-id-metadata-document
	// recommends (section 6.6).
	maxDocument   = 5 << 10
	maxDocuments  = 100 // the size of the cache ([lru.Map])
	documentTime  = 10 * time.Minute
	documentMost  = 24 * time.Hour
	documentFetch = 5 * time.Second
)

// documents fetches the client metadata documents of clients whose ID is a URL. Anyone can trigger a fetch. Therefore documents
// must be short, they must be on public servers (or on loopback, if mcpx itself is on loopback), and the cache keeps only a few of
// them.
type documents struct {
	web *http.Client
	ctx context.Context // cancelled when the server is closed; ends all fetches

	mu      sync.Mutex
	kept    *lru.Map[string, keptDocument]
	fetches []*fetch // oldest first
}

type keptDocument struct {
	client *client
	until  time.Time
}

func newDocuments(ctx context.Context, web *http.Client) *documents {
	web.Timeout = documentFetch
	// The draft forbids following redirects.
	web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &documents{web: web, ctx: ctx, kept: lru.New[string, keptDocument](maxDocuments, nil)}
}

// client returns the client that the document at the URL id describes. address is the IP address that the request comes from.
// Errors are not cached. They are all of type *fault.
func (d *documents) client(ctx context.Context, address netip.Addr, id string) (*client, error) {
	u, err := url.Parse(id)
	if err != nil || !documentURL(id, u) {
		return nil, &fault{"invalid_client", "a client_id that is a URL needs https and a path, and must not have a fragment, a user, or . or .. in its path"}
	}
	kept, f := d.join(id, address, u)
	if kept != nil {
		return kept, nil
	}
	select {
	case <-f.done:
		return f.client, f.err
	case <-ctx.Done():
		d.leave(f)
		return nil, &fault{"temporarily_unavailable", "the request has ended"}
	}
}

// documentURL reports whether a client ID that is a URL has the form that section 3 of the draft requires. u is the parsed id.
func documentURL(id string, u *url.URL) bool {
	if u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(id, "#\\ ") || len(id) > 1<<10 ||
		strings.Trim(u.Path, "/") == "" {
		return false
	}
	return !dotted(u)
}

// dotted reports whether the path of a URL contains . or .. as a segment, which browsers resolve.
func dotted(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." })
}

// read downloads and checks the document at the URL id. The duration says how long the client may be cached; 0 means not at all.
func (d *documents) read(ctx context.Context, id string) (*client, time.Duration, error) {
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
		return nil, 0, errors.New("its Content-Type is not JSON")
	}
	c, err := readDocument(id, data)
	return c, lifetime(resp.Header), err
}

func readDocument(id string, data []byte) (*client, error) {
	var doc struct {
		ID      string          `json:"client_id"`
		Secret  json.RawMessage `json:"client_secret"`
		Expires json.RawMessage `json:"client_secret_expires_at"`
		Method  string          `json:"token_endpoint_auth_method"`
		// Methods is a list that ChatGPT sends in addition to Method. Method is the one that ChatGPT prefers.
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
		return nil, errors.New("its client_id is not this URL")
	case doc.Secret != nil || doc.Expires != nil:
		return nil, errors.New("it contains a client secret")
	case doc.Method != "" && doc.Method != "none" && !slices.Contains(doc.Methods, "none"):
		return nil, fmt.Errorf("its token_endpoint_auth_method is %q, and only none is supported", sanitize.Line(doc.Method, 40))
	}
	c.ID = id
	return c, nil
}

// lifetime reads from Cache-Control how long a document may be cached (RFC 9111), but returns at most documentMost. If the header
// does not say how long, lifetime returns documentTime.
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
