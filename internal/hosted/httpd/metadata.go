package httpd

import (
	"net/http"
	"net/url"
	"strings"
)

// wellKnown is the beginning of the paths of protected resource metadata (RFC 9728).
const wellKnown = "/.well-known/oauth-protected-resource"

func metadataURL(resource *url.URL) string {
	at := *resource
	at.Path, at.RawPath = wellKnown+at.Path, ""
	return at.String()
}

// metadata serves the protected resource metadata (RFC 9728), which tells a client where to get a token. Each path of mcpx has its
// own document, because clients refuse metadata about any URL but the one they use. The document at the root is about the endpoint.
// Without an authorization server there are no documents.
func (o *Options) metadata(w http.ResponseWriter, r *http.Request) {
	asked := o.Identity.Options()
	if asked == nil || len(asked.AuthorizationServers) == 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, wellKnown)
	if below, ok := strings.CutPrefix(path, asked.Folder()); ok { // a proxy serves mcpx below this folder
		path = below
	}
	if strings.Trim(path, "/") == "" {
		path = o.path()
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	document := map[string]any{
		"resource":                 asked.ResourceAt(r, strings.TrimSuffix(path, "/")).String(),
		"authorization_servers":    asked.AuthorizationServers,
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "mcpx",
	}
	if len(asked.Scopes) > 0 {
		document["scopes_supported"] = asked.Scopes
	}
	WriteJSON(w, http.StatusOK, document)
}
