package authserver

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto 0;padding:0 1.25rem;color:#1b1f24;background:#fff}
h1{font-size:1.35rem;overflow-wrap:anywhere}
dl{margin:1.5rem 0}
dt{color:#57606a;font-size:.875rem}
dd{margin:0 0 .75rem;overflow-wrap:anywhere}
.note{border-left:3px solid #bf8700;padding-left:.75rem}
button{font:inherit;padding:.5rem 1.25rem;margin-right:.5rem;border-radius:.375rem;border:1px solid #6e7781}
button{background:#fff;color:#1b1f24;cursor:pointer}
button[value=allow]{background:#0b57d0;border-color:#0b57d0;color:#fff}
button:focus-visible{outline:3px solid #e3742f;outline-offset:2px}
@media(prefers-color-scheme:dark){
body{background:#15191e;color:#e6edf3}
dt{color:#9198a1}
button{background:#21262d;color:#e6edf3}
button[value=allow]{background:#2f6fdf;border-color:#2f6fdf}
}`

var pages = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>mcpx</title>
<style>` + style + `</style></head><body>
{{if .Fault}}<h1>This did not work</h1>
<p>{{.Fault}}</p>
{{else}}<h1>Connect {{.Name}} to mcpx?</h1>
<p>It could then do in your name whatever you may do at <strong>{{.Resource}}</strong>.</p>
<dl>
<dt>Who asks</dt><dd>
{{- if .Host}}<strong>{{.Host}}</strong>, which calls itself {{.Name}}
{{- else}}A program that calls itself {{.Name}}; nobody has checked that name
{{- end}}</dd>
<dt>Where you are sent back to</dt><dd><strong>{{.Redirect}}</strong></dd>
<dt>Where you log in first</dt><dd>{{.Issuer}}</dd>
</dl>
{{if .Loopback}}<p class="note">The access goes to a program on this computer. Go on only if you have just asked for it there.</p>
{{else}}<p class="note">Go on only if you have just asked for it at {{.Redirect}}.</p>
{{end}}<form method="post"><input type="hidden" name="page" value="{{.Page}}">
<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Cancel</button></form>
{{end}}</body></html>
`))

// policy allows the page to use its own style and nothing else. It does not set form-action: browsers would apply it
// also to the redirects that follow the form, which lead to the issuer and the client.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	digest := base64.StdEncoding.EncodeToString(sum[:])
	return "default-src 'none'; style-src 'sha256-" + digest + "'; base-uri 'none'; frame-ancestors 'none'"
}()

func (s *Server) consentPage(w http.ResponseWriter, c *client, a *authorization, proof string) {
	u, _ := redirect(a.Redirect) // valid: authorizationRequest has checked it
	to := u.Host
	if u.Scheme != "https" && u.Scheme != "http" {
		to = u.Scheme + "://" + u.Host
	}
	name := c.Name
	if name == "" {
		name = "a client without a name"
	}
	s.page(w, http.StatusOK, map[string]any{
		"Name": name, "Host": c.Host, "Resource": s.o.Resource, "Redirect": to, "Issuer": s.o.Issuer,
		"Loopback": netguard.Loopback(u.Hostname()), "Page": proof,
	})
}

// faultPage shows the user an error that cannot be sent back to a client.
func (s *Server) faultPage(w http.ResponseWriter, status int, text string) {
	s.page(w, status, map[string]any{"Fault": sanitize.Line(text, 500)})
}

func (s *Server) page(w http.ResponseWriter, status int, data map[string]any) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_ = pages.Execute(w, data)
}
