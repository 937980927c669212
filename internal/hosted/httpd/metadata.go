package httpd

import (
	"net/http"
	"net/url"
	"strings"
)

// wellKnown is where the metadata of a protected resource lies, before its path (RFC 9728).
const wellKnown = "/.well-known/oauth-protected-resource"

func metadataURL(resource *url.URL) string {
	at := *resource
	at.Path, at.RawPath = wellKnown+at.Path, ""
	return at.String()
}

// metadata serves the metadata of a protected resource (RFC 9728), from which a client learns
// where to get a token. Each path has its own document, as clients refuse one about another URL
// than theirs; at the root is that of /mcp. Without an authorization server there is none.
func (o *Options) metadata(w http.ResponseWriter, r *http.Request) {
	asked := o.Identity.Options()
	if asked == nil || len(asked.AuthorizationServers) == 0 || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, wellKnown)
	if asked.Resource != nil { // a proxy may have put mcpx below a path
		if below, ok := strings.CutPrefix(path, strings.TrimSuffix(asked.Resource.Path, "/mcp")); ok {
			path = below
		}
	}
	if strings.Trim(path, "/") == "" {
		path = "/mcp"
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
