package authserver

import (
	"net/http"

	"mcpx/internal/base/netguard"
	"mcpx/internal/hosted/formpage"
)

var pages = formpage.New(`<h1>Connect {{.Name}} to mcpx?</h1>
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
<button class="go" name="answer" value="allow">Allow</button><button name="answer" value="deny">Cancel</button></form>
`)

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
	pages.Show(w, http.StatusOK, map[string]any{
		"Name": name, "Host": c.Host, "Resource": s.o.Resource, "Redirect": to, "Issuer": s.o.Issuer,
		"Loopback": netguard.Loopback(u.Hostname()), "Page": proof,
	})
}
