package connect

import (
	"net/http"

	"mcpx/internal/hosted/formpage"
)

var pages = formpage.New(`{{if .Done}}<h1>{{.Done}}</h1>
<p>{{.Text}}</p>
{{else if .Prove}}<h1>Who are you?</h1>
{{if .Other}}<p class="note">This browser is signed in as <strong>{{.Other}}</strong>. The link is for somebody else, and only
they can use it.</p>
{{else}}<p>This link connects an account at <strong>{{.Server}}</strong> ({{.Address}}) to the person whose agent has shown it,
and to nobody else. Go on only if it was your agent.</p>
{{end}}{{if .SignIn}}<form method="post"><button class="go" name="answer" value="prove">Sign in as yourself</button></form>
{{end}}<form method="post"><p>{{if .SignIn}}Or run{{else}}Run{{end}} <code>mcpx login {{.Server}} --for me --url {{.Base}}</code> with the token of your agent, and type the code that it prints:</p>
<p class="note">Never type a code that somebody has sent you.</p>
<label>Code <input name="code" autocomplete="off" spellcheck="false" required></label>
<button name="answer" value="code">Use the code</button></form>
{{else}}<h1>Connect {{.Server}}?</h1>
<p>You are <strong>{{.Who}}</strong>. The account with which you log in to <strong>{{.Server}}</strong> ({{.Address}}) next will be used
for every call of <strong>{{.Who}}</strong>, and for nobody else.</p>
<p class="note">Go on only if you have just asked for it, and that is you.</p>
<form method="post"><button class="go" name="answer" value="go">{{if .Connected}}Log in again{{else}}Go on{{end}}</button>
{{if .Connected}}<button name="answer" value="disconnect">Disconnect</button>{{end}}</form>
{{end}}`)

func (p *Pages) done(w http.ResponseWriter, title, text string) {
	pages.Show(w, http.StatusOK, map[string]any{"Done": title, "Text": text})
}
