package share

import (
	"strings"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

func TestPackageOf(t *testing.T) {
	for _, test := range []struct {
		line, want string // an empty want means that the package is not recognised
		others     string
	}{
		{"npx -y tavily-mcp@0.2.3 --x y", "npm:tavily-mcp", "-y --x y"},
		{"npx @modelcontextprotocol/server-github", "npm:@modelcontextprotocol/server-github", ""},
		{"npx -y @upstash/context7-mcp@latest --api-key k", "npm:@upstash/context7-mcp", "-y --api-key k"},
		{"/usr/local/bin/npx --yes -- tavily-mcp", "npm:tavily-mcp", "--yes"},
		{`C:\Program|Files\nodejs\npx.cmd -y tavily-mcp`, "npm:tavily-mcp", "-y"},
		{"npx -y -p tavily-mcp@1 start-it --stdio", "npm:tavily-mcp", "-y start-it --stdio"},
		{"npx --package=@stripe/mcp -- mcp", "npm:@stripe/mcp", "mcp"},
		{"npx -p a -p b c", "", ""},
		{"npx -y github:user/repo", "", ""},
		{"npx -y ./local", "", ""},
		{"npx -y tavily-mcp@npm:other", "", ""},
		{"npx --node-options=--require=x tavily-mcp", "", ""},
		{"npx -c tavily-mcp", "", ""},
		{"npx", "", ""},
		{"npx -y", "", ""},
		{"npm exec -y tavily-mcp -- --x", "npm:tavily-mcp", "-y -- --x"},
		{"npm x tavily-mcp", "npm:tavily-mcp", ""},
		{"npm run tavily-mcp", "bin:npm", "run tavily-mcp"},
		{"pnpm dlx tavily-mcp", "npm:tavily-mcp", ""},
		{"yarn dlx -q tavily-mcp", "npm:tavily-mcp", "-q"},
		{"bunx --bun tavily-mcp", "npm:tavily-mcp", "--bun"},
		{"bun x tavily-mcp", "npm:tavily-mcp", ""},
		{"deno run -A npm:tavily-mcp@1 x", "npm:tavily-mcp", "-A x"},
		{"deno run jsr:@a/b", "", ""},
		{"deno run --import-map=x npm:tavily-mcp", "", ""},
		{"node /opt/x/node_modules/@stripe/mcp/dist/index.js --tools=all", "npm:@stripe/mcp", "--tools=all"},
		{"node --no-warnings --max-old-space-size=4096 /x/node_modules/.pnpm/tavily-mcp@1/node_modules/tavily-mcp/build/index.js", "npm:tavily-mcp", "--no-warnings --max-old-space-size=4096"},
		{"node node_modules/tavily-mcp/build/index.js", "npm:tavily-mcp", "node_modules/tavily-mcp/build/index.js"},
		{`node.exe C:\x\node_modules\tavily-mcp\build\index.js`, "npm:tavily-mcp", ""},
		{"node --require hook.js /x/node_modules/tavily-mcp/build/index.js", "", ""},
		{"node /src/tavily-mcp/build/index.js", "", ""},
		{"node /x/not_node_modules/tavily-mcp/i.js", "", ""},
		{"/x/node_modules/.bin/mcp-server-github", "bin:mcp-server-github", ""},
		{`C:\x\node_modules\.bin\mcp-server-github.cmd`, "bin:mcp-server-github", ""},
		{"mcp-server-git --repository /r", "bin:mcp-server-git", "--repository /r"},
		{"/home/me/.local/bin/mcp-server-git", "bin:mcp-server-git", ""},
		{"uvx mcp-server-time --local-timezone=Europe/Berlin", "pypi:mcp-server-time", "--local-timezone=Europe/Berlin"},
		{"uvx mcp_server_time==1.2", "pypi:mcp-server-time", ""},
		{"uvx awslabs.aws-documentation-mcp-server@latest", "pypi:awslabs-aws-documentation-mcp-server", ""},
		{"uvx Mcp.Server-Time[extra]>=1", "pypi:mcp-server-time", ""},
		{"uvx --python 3.12 --with httpx --from office-word-mcp-server word_mcp_server", "pypi:office-word-mcp-server", "3.12 httpx word_mcp_server"},
		{"uvx --from=markitdown-mcp[all] markitdown-mcp", "pypi:markitdown-mcp", "markitdown-mcp"},
		{"uvx --from git+https://example.com/x.git mcp-server-time", "", ""},
		{"uvx --with-editable . mcp-server-time", "", ""},
		{"uv tool run mcp-server-time", "pypi:mcp-server-time", ""},
		{"uv -q tool run mcp-server-time", "pypi:mcp-server-time", "-q"},
		{"uv --directory /src run mcp-server-time --x", "bin:mcp-server-time", "/src --x"},
		{"uv run --with mcp-server-time python -m mcp_server_time", "pypi:mcp-server-time", "mcp-server-time"},
		{"uv run --script x.py", "", ""},
		{"uv sync", "", ""},
		{"pipx run mcp-server-git", "pypi:mcp-server-git", ""},
		{"pipx run --spec mcp-server-git==1 start", "pypi:mcp-server-git", "start"},
		{"pipx install mcp-server-git", "", ""},
		{"python3 -m mcp_server_time --x", "pypi:mcp-server-time", "--x"},
		{"/venv/bin/python3.12 -u -m mcp_server_time", "pypi:mcp-server-time", ""},
		{"python server.py", "", ""},
		{"python -c code -m mcp_server_time", "", ""},
		{"docker run -i --rm -e TOKEN -v /data:/data ghcr.io/github/github-mcp-server:v1 stdio", "image:ghcr.io/github/github-mcp-server", "-i --rm TOKEN /data:/data stdio"},
		{"podman run --rm -i docker.io/mcp/fetch@sha256:00", "image:mcp/fetch", "--rm -i"},
		{"docker run --env=A=b mcp/time", "image:mcp/time", "--env=A=b"},
		{"docker run localhost:5000/mcp/time", "image:localhost:5000/mcp/time", ""},
		{"docker run --entrypoint sh mcp/time", "", ""},
		{"docker exec -i box mcp-server-time", "", ""},
		{"cmd /c npx -y tavily-mcp", "npm:tavily-mcp", "-y"},
		{"cmd.exe /d /s /C npx.cmd tavily-mcp", "npm:tavily-mcp", ""},
		{"env A=b -i TOKEN=x npx -y tavily-mcp", "npm:tavily-mcp", "A=b -i TOKEN=x -y"},
		{"env -u A npx tavily-mcp", "", ""},
		{"sh -c npx|-y|tavily-mcp", "npm:tavily-mcp", "-y"},
		{"bash -lc exec|uvx|mcp-server-time", "pypi:mcp-server-time", ""},
		{"sh -c cd|/x|&&|npx|tavily-mcp", "", ""},
		{"bash script.sh", "", ""},
		{"sh", "", ""},
		{"sudo npx tavily-mcp", "bin:sudo", "npx tavily-mcp"},
	} {
		words := strings.Fields(test.line)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "|", " ") // "|" stands for a space within an argument
		}
		got, ok := packageOf(words[0], words[1:])
		if ok != (test.want != "") || ok && (got.name != test.want || strings.Join(got.others, " ") != test.others) {
			t.Errorf("%s: got %q, others %q, %t", test.line, got.name, strings.Join(got.others, " "), ok)
		}
	}
}

// parsed returns the only server of a config.
func parsed(t *testing.T, entry string) *config.Server {
	t.Helper()
	cfg, err := config.Parse("config.json", []byte(`{"mcpServers":{"one":`+entry+`}}`), config.Options{})
	if err != nil || len(cfg.Servers) != 1 {
		t.Fatalf("%s: %v", entry, err)
	}
	return &cfg.Servers[0]
}

func TestOf(t *testing.T) {
	for _, test := range []struct {
		entry string
		share conf.Share
		why   string
	}{
		{`{"command":"npx","args":["-y","tavily-mcp"]}`, user, "tavily-mcp keeps nothing of a session"},
		{`{"command":"npx","args":["-y","tavily-mcp"],"share":"session"}`, session, "the config says so"},
		{`{"command":"anything","share":"folder"}`, folder, "the config says so"},
		{`{"command":"npx","args":["-y","tavily-mcp"],"session":"per_client"}`, session, "each client has a session"},
		{`{"url":"https://example.com/mcp"}`, user, "it is a remote server"},
		{`{"url":"https://example.com/mcp","share":"session"}`, session, "the config says so"},
		{`{"url":"https://example.com/mcp","credentials":{"X-Key":"header:X-User-Key"}}`, session, "each client"},
		{`{"command":"uvx","args":["mcp-server-git"]}`, folder, "goes by the folder"},
		{`{"command":"uvx","args":["mcp-server-git"],"cwd":"/src"}`, user, "cwd is set"},
		{`{"command":"uvx","args":["mcp-server-git"],"cwd":"src"}`, folder, "goes by the folder"},
		{`{"command":"npx","args":["-y","@playwright/mcp@latest"]}`, session, "@playwright/mcp keeps a browser open"},
		{`{"command":"npx","args":["-y","nobody-knows-mcp"]}`, session, "does not know what nobody-knows-mcp keeps"},
		{`{"command":"python","args":["server.py"]}`, session, "names no package"},
		{`{"command":"uvx","args":["arxiv-mcp-server","--storage-path","./papers"]}`, folder, "relative"},
		{`{"command":"uvx","args":["arxiv-mcp-server","--storage-path=papers/of/me"]}`, folder, "relative"},
		{`{"command":"uvx","args":["arxiv-mcp-server","--storage-path","/papers"]}`, user, "keeps nothing"},
		{`{"command":"uvx","args":["arxiv-mcp-server","--storage-path","./papers"],"cwd":"/home"}`, user, "keeps nothing"},
		{`{"command":"npx","args":["@modelcontextprotocol/server-memory"],"env":{"MEMORY_FILE_PATH":"memory.json"}}`, folder, "relative"},
		{`{"command":"npx","args":["@modelcontextprotocol/server-slack"],"env":{"SLACK_BOT_TOKEN":"xoxb/aaaaaaaaaa"}}`, user, "keeps nothing"},
		{`{"command":"./bin/mcp-server-time"}`, folder, "relative"},
		{`{"command":"docker","args":["run","-i","--rm","-v","./data:/data","mcp/fetch"]}`, folder, "relative"},
		{`{"command":"docker","args":["run","-i","--mount","type=bind,source=./data,target=/data","mcp/fetch"]}`, folder, "relative"},
		{`{"command":"docker","args":["run","-i","--rm","-v","data:/data","mcp/fetch"]}`, user, "keeps nothing"},
		{`{"command":"docker","args":["run","-i","ghcr.io/github/github-mcp-server"]}`, user, "keeps nothing"},
		{`{"command":"docker","args":["run","-i","ghcr.io/github/github-mcp-server","stdio","--dynamic-toolsets"]}`, session, "keeps more with --dynamic-toolsets"},
		{`{"command":"docker","args":["run","-i","-e","GITHUB_DYNAMIC_TOOLSETS=1","ghcr.io/github/github-mcp-server"]}`, session, "keeps more with"},
		{`{"command":"github-mcp-server","args":["stdio"],"env":{"GITHUB_DYNAMIC_TOOLSETS":"1"}}`, session, "keeps more with"},
		{`{"command":"npx","args":["mcp-remote","https://example.com/mcp","--header","Authorization: Bearer a/b"]}`, user, "keeps nothing"},
		{`{"command":"npx","args":["@modelcontextprotocol/server-postgres","postgresql://me@localhost/db"]}`, user, "keeps nothing"},
	} {
		got := Of(parsed(t, test.entry))
		if got.Share != test.share || !strings.Contains(got.Why, test.why) || got.Set != strings.Contains(test.entry, `"share"`) {
			t.Errorf("%s: got %s: %s (set %t)", test.entry, got.Share, got.Why, got.Set)
		}
	}
}

// TestPackages: the names in each row have the form that packageOf returns, no name occurs twice, and each row says what was read
// and, if it is shared, what was tried.
func TestPackages(t *testing.T) {
	seen, shared := map[string]bool{}, 0
	for _, r := range packages {
		if r.share != session {
			shared++
		}
		if r.share != user && r.share != folder && r.share != session || r.read == "" {
			t.Errorf("%s: has no evidence, or the share %q", r.names, r.share)
		}
		if (r.tried == "" || strings.Contains(r.tried, differ)) && r.share != session {
			t.Errorf("%s: is %s, and was not tried, or its answers differ", r.names, r.share)
		}
		for name := range strings.FieldsSeq(r.names) {
			kind, bare, ok := strings.Cut(name, ":")
			switch {
			case seen[name] || !ok:
				t.Errorf("%s: is there twice, or has no kind", name)
			case kind == "bin":
				if programName(bare) != bare {
					t.Errorf("%s: is not the name of a program", name)
				}
			case nameOf(kind+":", bare) != bare || rowOf(name) == nil:
				t.Errorf("%s: is never found", name)
			}
			seen[name] = true
		}
	}
	if shared < 25 {
		t.Errorf("%d packages are shared", shared)
	}
}
