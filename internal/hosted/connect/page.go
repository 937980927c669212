package connect

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"

	"mcpx/internal/base/sanitize"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto 0;padding:0 1.25rem;color:#1b1f24;background:#fff}
h1{font-size:1.35rem;overflow-wrap:anywhere}
p,strong,code{overflow-wrap:anywhere}
.note{border-left:3px solid #bf8700;padding-left:.75rem}
form{margin:1.25rem 0}
button,input{font:inherit;padding:.5rem 1rem;border-radius:.375rem;border:1px solid #6e7781;background:#fff;color:#1b1f24;max-width:100%}
button{cursor:pointer}
button[value=go],button[value=prove]{background:#0b57d0;border-color:#0b57d0;color:#fff}
button:focus-visible,input:focus-visible{outline:3px solid #e3742f;outline-offset:2px}
@media(prefers-color-scheme:dark){
body{background:#15191e;color:#e6edf3}
button,input{background:#21262d;color:#e6edf3}
button[value=go],button[value=prove]{background:#2f6fdf;border-color:#2f6fdf}
}`

var pages = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>mcpx</title>
<style>` + style + `</style></head><body>
{{if .Fault}}<h1>This did not work</h1>
<p>{{.Fault}}</p>
{{else if .Done}}<h1>{{.Done}}</h1>
<p>{{.Text}}</p>
{{else if .Prove}}<h1>Who are you?</h1>
{{if .Other}}<p class="note">This browser is signed in as <strong>{{.Other}}</strong>. The link is for somebody else, and only
they can use it.</p>
{{else}}<p>This link connects an account at <strong>{{.Server}}</strong> ({{.Address}}) to the person whose agent has shown it,
and to nobody else. Go on only if it was your agent.</p>
{{end}}{{if .SignIn}}<form method="post"><button name="answer" value="prove">Sign in as yourself</button></form>
{{end}}<form method="post"><p>{{if .SignIn}}Or run{{else}}Run{{end}} <code>mcpx login {{.Server}} --for me --url {{.Base}}</code> with the token of your agent, and type the code that it prints:</p>
<p class="note">Never type a code that somebody has sent you.</p>
<label>Code <input name="code" autocomplete="off" spellcheck="false" required></label>
<button name="answer" value="code">Use the code</button></form>
{{else}}<h1>Connect {{.Server}}?</h1>
<p>You are <strong>{{.Who}}</strong>. The account with which you log in to <strong>{{.Server}}</strong> ({{.Address}}) next will be used
for every call of <strong>{{.Who}}</strong>, and for nobody else.</p>
<p class="note">Go on only if you have just asked for it, and that is you.</p>
<form method="post"><button name="answer" value="go">{{if .Connected}}Log in again{{else}}Go on{{end}}</button>
{{if .Connected}}<button name="answer" value="disconnect">Disconnect</button>{{end}}</form>
{{end}}</body></html>
`))

// policy allows the page to use its own style and nothing else. It does not set form-action: browsers would apply it also to
// the redirects that follow the form, which lead to login pages.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; frame-ancestors 'none'"
}()

func (p *Pages) fault(w http.ResponseWriter, status int, text string) {
	p.show(w, status, map[string]any{"Fault": sanitize.Line(text, 500)})
}

func (p *Pages) done(w http.ResponseWriter, title, text string) {
	p.show(w, http.StatusOK, map[string]any{"Done": title, "Text": text})
}

func (p *Pages) show(w http.ResponseWriter, status int, data map[string]any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_ = pages.Execute(w, data)
}
