package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// year is a company with an issuer, an mcpx in front of its servers, and its people.
type year struct {
	t      *testing.T
	h      *home
	f      *fronted
	to     atomic.Pointer[httputil.ReverseProxy]
	people []*person
	calls  map[string]int // the calls that each has made, by name
	staff  []string       // the addresses of those who may log in
	denied string         // the name of a person from whom everything is taken; empty if there is none
}

// person is somebody with a login, and what they may use.
type person struct {
	name    string
	groups  string
	servers []string
	c       *connector
	client  string // the ID with which the person's client has registered
	tokens  map[string]any
}

const yearRedirect = "https://claude.ai/api/mcp/auth_callback"

// TestYear plays the year of a company: people of two groups log in at a real issuer; one changes groups, two leave, one is
// denied for a while, the logins of two are ended and they log in again, all keys are replaced twice, mcpx is started anew as for
// an upgrade, and restored from a backup. After each step, and within a minute of it, everybody can use what their groups have,
// and nothing else, and the trail says who did what.
func TestYear(t *testing.T) {
	mcptest.Parallel(t)
	y := newYear(t)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"all log in", y.begin},
		{"one changes groups", y.changeGroups},
		{"two leave", y.leave},
		{"one is denied", y.deny},
		{"two are sent out", y.sendOut},
		{"the keys are replaced", func() { y.rotate("second") }},
		{"the keys are replaced again", func() { y.rotate("third") }},
		{"an upgrade", y.upgrade},
		{"a restore", y.restore},
		{"the report of the year", y.report},
	} {
		t.Log(step.name)
		began := time.Now()
		if step.do(); t.Failed() {
			t.Fatalf("after: %s", step.name)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: everybody had their rights after %v", step.name, took)
		}
	}
}

func newYear(t *testing.T) *year {
	y := &year{t: t, h: newHome(t), calls: make(map[string]int)}
	y.f = &fronted{issuer: guard(t, 600), box: fake(t, mcptest.Spec{})}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { y.to.Load().ServeHTTP(w, r) }))
	t.Cleanup(proxy.Close)
	y.f.resource = proxy.URL + "/mcp"
	for i, name := range mcptest.Part(t, []string{"amy", "bea", "cid", "dan", "eve", "fay", "gil", "hal", "ida", "jon"}, 5) {
		p := &person{name: name, groups: "dev", servers: []string{"box"}}
		switch i % 5 {
		case 1, 3:
			p.groups, p.servers = "ops", []string{"crm"}
		case 4:
			p.groups, p.servers = "dev,ops", []string{"box", "crm"}
		}
		y.people = append(y.people, p)
	}
	y.h.write(t, "front.new", strings.Repeat("first ", 8))
	y.h.write(t, "front.old", strings.Repeat("none  ", 8))
	y.h.write(t, "audit.new", strings.Repeat("first ", 8))
	y.h.write(t, "audit.old", strings.Repeat("none  ", 8))
	y.staff = []string{"*@example.com"}
	y.configure()
	y.start()
	return y
}

// configure writes the config.
func (y *year) configure() {
	auth := y.f.auth(map[string]any{
		"principal_claim": "email", "key": []string{"${file:front.new}", "${file:front.old}"}, "allow": map[string]any{"emails": y.staff},
	})
	rights := []any{
		map[string]any{"groups": []string{"dev"}, "servers": []string{"box"}},
		map[string]any{"groups": []string{"ops"}, "servers": []string{"crm"}},
	}
	if y.denied != "" {
		rights = append(rights, map[string]any{"principals": []string{y.denied + "@example.com"}, "deny": []string{"*"}})
	}
	auth["rights"] = rights
	y.h.config(y.t, map[string]server{"box": y.f.box, "crm": y.f.box}, map[string]any{
		"auth": auth, "audit": map[string]any{"file": "audit.jsonl", "key": []string{"${file:audit.new}", "${file:audit.old}"}},
	})
}

// start starts mcpx, behind the address that clients know.
func (y *year) start() {
	y.f.hosted = y.h.serveHTTP(y.t, "--config", filepath.Join(y.h.dir, "mcpx.json"), "--watch")
	to, err := url.Parse(strings.TrimSuffix(y.f.hosted.url, "/mcp"))
	if err != nil {
		y.t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	y.to.Store(pass)
}

// stop ends mcpx in order.
func (y *year) stop() {
	terminate(y.f.hosted.cmd)
	y.f.hosted.wait(y.t)
}

// begin logs everybody in.
func (y *year) begin() {
	for _, p := range y.people {
		p.c = discover(y.t, y.f)
		y.atIssuer(p)
		y.login(p)
	}
	y.check()
}

// atIssuer tells the issuer the groups of somebody.
func (y *year) atIssuer(p *person) {
	y.f.issuer.admin(y.t, "/test/person?sub="+p.name+"&groups="+p.groups)
}

// login registers the client of somebody, and logs them in.
func (y *year) login(p *person) {
	y.t.Helper()
	status, client := p.c.post("registration_endpoint", "application/json", `{"client_name":"Claude","redirect_uris":["`+yearRedirect+`"]}`)
	if status != http.StatusCreated {
		y.t.Fatalf("%d %v", status, client)
	}
	p.client, y.f.person = client["client_id"].(string), p.name
	p.tokens = p.c.connect(y.f, p.client, yearRedirect)
}

// renew renews the tokens of somebody, and reports whether that was possible.
func (y *year) renew(p *person) bool {
	y.t.Helper()
	status, tokens := p.c.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {p.client}, "refresh_token": {p.tokens["refresh_token"].(string)}})
	if status == http.StatusOK {
		p.tokens = tokens
	}
	return status == http.StatusOK
}

// out reports whether the access token of somebody is refused.
func (y *year) out(p *person) bool {
	y.t.Helper()
	status, _, _ := p.c.call(y.f.resource, p.tokens["access_token"].(string), legacyInitialize)
	return status == http.StatusUnauthorized
}

// check checks for everybody which servers they can use: the ones of their groups, and no others.
func (y *year) check() {
	y.t.Helper()
	for _, p := range y.people {
		if len(p.servers) == 0 {
			if !y.out(p) {
				y.t.Errorf("%s is not out", p.name)
			}
			continue
		}
		for _, name := range []string{"box", "crm"} {
			answer := p.c.ask(p.tokens, fmt.Sprintf(
				`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":%q,"tool_name":"echo","arguments":{"text":"hello, %s"}}}}`, name, p.name))
			may := slices.Contains(p.servers, name) && p.name != y.denied
			if can := strings.Contains(answer, "hello, "+p.name); can != may || !can && !strings.Contains(answer, "SERVER_NOT_FOUND") {
				y.t.Errorf("%s at %s: %s", p.name, name, answer)
			}
			y.calls[p.name]++
		}
	}
}

// changeGroups moves the first of the people from one group to the other. mcpx learns of it at the next renewal of the person's
// tokens.
func (y *year) changeGroups() {
	p := y.people[0]
	p.groups, p.servers = "ops", []string{"crm"}
	y.atIssuer(p)
	if !y.renew(p) {
		y.t.Errorf("%s cannot renew a token", p.name)
	}
	y.check()
}

// leave lets two people leave. The first tries to renew a token, which ends the login at once. The other is taken out of allow
// by an administrator, without waiting for the end of the token.
func (y *year) leave() {
	first, second := y.people[1], y.people[2]
	for _, p := range []*person{first, second} {
		y.f.issuer.admin(y.t, "/test/leave?sub="+p.name)
		p.servers = nil
	}
	if y.renew(first) {
		y.t.Errorf("%s has renewed a token", first.name)
	}
	if !y.out(first) || y.out(second) {
		y.t.Errorf("%s is out: %t, %s: %t", first.name, y.out(first), second.name, y.out(second))
	}
	y.staff = nil
	for _, p := range y.people {
		if p != second {
			y.staff = append(y.staff, p.name+"@example.com")
		}
	}
	y.configure()
	y.reload()
	y.check()
}

// deny takes everything from one of the people by a rule, and gives it back. The login goes on meanwhile.
func (y *year) deny() {
	for _, y.denied = range []string{y.people[3].name, ""} {
		y.configure()
		y.reload()
		y.check()
	}
}

// sendOut ends the logins of two people: of one by mcpx logins end, of the other by the issuer, where somebody has signed them
// out. Both log in again.
func (y *year) sendOut() {
	byAdmin, byIssuer := y.people[3], y.people[len(y.people)-1]
	y.h.must(y.t, 0, "--config", filepath.Join(y.h.dir, "mcpx.json"), "logins", "end", byAdmin.name+"@example.com"+y.at())
	y.f.issuer.admin(y.t, "/test/logout?sub="+byIssuer.name+"&to="+url.QueryEscape(strings.TrimSuffix(y.f.resource, "/mcp")+"/oauth/logout"))
	for _, p := range []*person{byAdmin, byIssuer} {
		if !y.out(p) || y.renew(p) {
			y.t.Errorf("%s is not out", p.name)
		}
		y.login(p)
	}
	y.check()
}

// at is the end of the names of all principals.
func (y *year) at() string { return "@" + strings.TrimPrefix(y.f.issuer.issuer, "http://") }

func (y *year) reload() {
	y.t.Helper()
	if out, stderr, code := y.h.reload(y.t, filepath.Join(y.h.dir, "mcpx.json")); code != 0 {
		y.t.Fatalf("exit %d\n%s\n%s", code, out, stderr)
	}
}

// rotate replaces the keys. The new keys seal, the keys before them still open what they have sealed, and older keys open
// nothing. mcpx notices changes of the files with the keys (--watch). Everybody but one renews their tokens, as clients do in a
// year. This one has to log in again after the second time.
func (y *year) rotate(name string) {
	y.h.write(y.t, "front.old", readFile(y.t, filepath.Join(y.h.dir, "front.new")))
	last := y.people[len(y.people)-1]
	if name == "second" {
		y.f.follow(y.t, "config loaded again", func() { y.h.write(y.t, "front.new", strings.Repeat(name+" ", 8)) }) // by --watch
	} else {
		y.h.write(y.t, "front.new", strings.Repeat(name+" ", 8))
		y.reload()
		if y.renew(last) || !y.out(last) {
			y.t.Errorf("a key that was replaced twice opens a token")
		}
		y.login(last)
	}
	y.check()
	for _, p := range y.people[:len(y.people)-1] {
		if renewed := y.renew(p); renewed != (len(p.servers) > 0) {
			y.t.Errorf("%s renews a token: %t", p.name, renewed)
		}
	}
	y.check()
}

// anotherAuditKey replaces the key of the trail, which the next start uses.
func (y *year) anotherAuditKey(name string) {
	y.h.write(y.t, "audit.old", readFile(y.t, filepath.Join(y.h.dir, "audit.new")))
	y.h.write(y.t, "audit.new", strings.Repeat(name+" ", 8))
}

// upgrade starts mcpx anew, as for another version. Nobody has to log in again, and sessions go on.
func (y *year) upgrade() {
	y.stop()
	y.anotherAuditKey("second")
	y.start()
	y.check()
	for _, p := range y.people {
		if renewed := y.renew(p); renewed != (len(p.servers) > 0) {
			y.t.Errorf("%s renews a token: %t", p.name, renewed)
		}
	}
	y.check()
}

// kept is what docs/hosting.md says a backup has: the config and the files it refers to, the user's config folder, and the
// trail.
var kept = []string{"mcpx.json", "front.new", "front.old", "audit.new", "audit.old", "config", "audit.jsonl"}

// restore makes a backup, deletes everything, and restores the backup, as docs/hosting.md describes.
func (y *year) restore() {
	y.stop()
	backup := filepath.Join(y.t.TempDir(), "backup.tar")
	y.run("tar", append([]string{"-C", y.h.dir, "-cpf", backup}, kept...)...)
	all, err := os.ReadDir(y.h.dir)
	if err != nil {
		y.t.Fatal(err)
	}
	for _, one := range all {
		if err := os.RemoveAll(filepath.Join(y.h.dir, one.Name())); err != nil {
			y.t.Fatal(err)
		}
	}
	y.run("tar", "-C", y.h.dir, "-xpf", backup)
	y.anotherAuditKey("third")
	y.start()
	y.check()
	for _, p := range y.people {
		if renewed := y.renew(p); renewed != (len(p.servers) > 0) {
			y.t.Errorf("%s renews a token: %t", p.name, renewed)
		}
	}
}

func (y *year) run(name string, args ...string) {
	y.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		y.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// report checks what the trail has of the year: each call with the name of its caller, who was refused a login, and what an
// administrator changed. It also checks that the trail was not changed.
func (y *year) report() {
	y.stop()
	config, trail := filepath.Join(y.h.dir, "mcpx.json"), filepath.Join(y.h.dir, "audit.jsonl")
	y.h.write(y.t, "audit.first", strings.Repeat("first ", 8))
	var keys []string
	for _, file := range []string{"audit.new", "audit.old", "audit.first"} {
		keys = append(keys, "--key-file", filepath.Join(y.h.dir, file))
	}
	hasAll(y.t, y.h.must(y.t, 0, slices.Concat([]string{"audit", "verify", trail}, keys)...), "as it was written")
	var said struct {
		Checked bool
		Usage   []struct {
			Name            string
			Calls, Failures int
		}
	}
	out := y.h.must(y.t, 0, slices.Concat([]string{"--config", config, "audit", "report", "--by", "user", "--json"}, keys)...)
	if err := json.Unmarshal([]byte(out), &said); err != nil || !said.Checked || len(said.Usage) != len(y.people) {
		y.t.Fatalf("%v: %s", err, out)
	}
	at := y.at()
	for _, u := range said.Usage {
		name := strings.TrimSuffix(u.Name, "@example.com"+at)
		if u.Calls != y.calls[name] || u.Calls == 0 {
			y.t.Errorf("%s has %d calls in the trail, and made %d", u.Name, u.Calls, y.calls[name])
		}
	}
	text := readFile(y.t, trail)
	for _, want := range []string{
		`"event":"config_loaded","by":"a changed file"`, `"by":"mcpx reload"`, `auth.front.allow.emails: [\"*@example.com\"], now [`, `"reason":"the credential is not valid"`,
		`"reason":"ended by an administrator"`, `"reason":"logged out at the issuer"`,
		`"event":"login","principal":"` + y.people[0].name + "@example.com" + at, `"event":"login_ended","principal":"` + y.people[1].name + "@example.com" + at,
	} {
		if !strings.Contains(text, want) {
			y.t.Errorf("the trail lacks %s:\n%s", want, strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return !strings.Contains(line, "config_loaded") }), "\n"))
		}
	}
	if strings.Contains(text, "first first") || strings.Contains(text, "front-secret-of-the-tests") {
		y.t.Error("the trail has a secret")
	}
	gone := y.people[1].name + "@example.com" + at
	var export struct{ Records []map[string]any }
	out = y.h.must(y.t, 0, slices.Concat([]string{"--config", config, "audit", "report", "--user", gone, "--json"}, keys)...)
	if err := json.Unmarshal([]byte(out), &export); err != nil || len(export.Records) < y.calls[y.people[1].name] {
		y.t.Errorf("%v: %d records", err, len(export.Records))
	}
	for _, r := range export.Records {
		if r["principal"] != gone {
			y.t.Errorf("a record of somebody else: %v", r)
		}
	}
}
