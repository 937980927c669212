// Package formpage shows web pages that ask a person one question, or say how something ended.
package formpage

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"sync"

	"mcpx/internal/base/sanitize"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto 0;padding:0 1.25rem;color:#1b1f24;background:#fff}
h1{font-size:1.35rem;overflow-wrap:anywhere}
p,strong,code{overflow-wrap:anywhere}
dl{margin:1.5rem 0}
dt{color:#57606a;font-size:.875rem}
dd{margin:0 0 .75rem;overflow-wrap:anywhere}
.note{border-left:3px solid #bf8700;padding-left:.75rem}
form{margin:1.25rem 0}
button,input{font:inherit;padding:.5rem 1rem;border-radius:.375rem;border:1px solid #6e7781;background:#fff;color:#1b1f24;max-width:100%}
button{cursor:pointer;margin-right:.5rem}
.go{background:#0b57d0;border-color:#0b57d0;color:#fff}
button:focus-visible,input:focus-visible{outline:3px solid #e3742f;outline-offset:2px}
@media(prefers-color-scheme:dark){
body{background:#15191e;color:#e6edf3}
dt{color:#9198a1}
button,input{background:#21262d;color:#e6edf3}
.go{background:#2f6fdf;border-color:#2f6fdf}
}`

// policy allows the page to use its own style and nothing else. It does not set form-action: browsers would apply it also to
// the redirects that follow the form, which lead to login pages and to clients.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; frame-ancestors 'none'"
}()

// Page is a page whose text depends on data. Its template is parsed at the first use: few processes of mcpx show pages.
type Page struct{ text func() *template.Template }

// New makes a page. body is an HTML template for the body of the page. If Fault is called, the page shows the fault instead of
// body. The main button in body has the class go.
func New(body string) Page {
	return Page{sync.OnceValue(func() *template.Template {
		return template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>mcpx</title>
<style>` + style + `</style></head><body>
{{if .Fault}}<h1>This did not work</h1>
<p>{{.Fault}}</p>
{{else}}` + body + `{{end}}</body></html>
`))
	})}
}

// Show answers a request with the page. data is what the template is executed with.
func (p Page) Show(w http.ResponseWriter, status int, data map[string]any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_ = p.text().Execute(w, data)
}

// Fault answers a request with a page that says what did not work.
func (p Page) Fault(w http.ResponseWriter, status int, text string) {
	p.Show(w, status, map[string]any{"Fault": sanitize.Line(text, 500)})
}
