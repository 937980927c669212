package share

import (
	"strings"
	"sync"

	"mcpx/internal/base/conf"
)

// row is what mcpx knows about a package.
type row struct {
	// names are the names under which the package is run: npm:NAME, pypi:NAME (normalised), image:NAME without tag, and
	// bin:NAME for its program. Spaces separate them.
	names string
	share conf.Share
	// read is what reading the package's source has shown. If share is session, it is the end of a sentence that begins with
	// the name of the package, such as "keeps a browser open (0.0.83)". For any other share it begins with the version, and
	// then says what the package keeps between calls, such as "0.6.2: nothing".
	read string
	// tried is the result of a trial in which two clients used one process in turn: whether each client got the same answers as
	// from a process of its own. It may be empty (no trial) only if share is session.
	tried string
	// unless lists arguments and environment variables. With one of them, the package keeps more than the text in read says, or
	// sends requests to its client. So if the config has one of them, sessions do not share the package.
	unless []string
}

const (
	session = conf.ShareSession
	folder  = conf.ShareFolder
	user    = conf.ShareUser

	// echoed means that in the trial, the server's requests went to a service that sends back each request in its answer.
	echoed = "same answers, its API played by an echo"
	same   = "same answers"
	differ = "answers differ"
)

// packages are servers that many people use. The share of each follows from its source (read in November 2026) and from trials.
// The share is user (all sessions of a user share one process) if no session can notice the others in the answers. It does not
// matter whether the package caches public answers, keeps files in one place, or shows what its service shows to all sessions
// anyway. The share is folder if no session can notice the others, but a path in the arguments, the environment or a call may
// be relative. All other packages have the share session.
var packages = []row{
	// The reference servers.
	{"npm:@modelcontextprotocol/server-github image:mcp/github bin:mcp-server-github", user, "2025.4.8: nothing; each call is one request to the API", echoed, nil},
	{"npm:@modelcontextprotocol/server-gitlab image:mcp/gitlab bin:mcp-server-gitlab", user, "2025.4.25: nothing; each call is one request to the API", echoed, nil},
	{"npm:@modelcontextprotocol/server-slack image:mcp/slack bin:mcp-server-slack", user, "2025.4.25: its headers only", echoed, nil},
	{"npm:@modelcontextprotocol/server-google-maps bin:mcp-server-google-maps", user, "0.6.2: nothing", echoed, nil},
	{"npm:@modelcontextprotocol/server-gdrive image:mcp/gdrive bin:mcp-server-gdrive", user, "2025.1.14: the login, from a file that all its processes read", echoed, nil},
	{"npm:@modelcontextprotocol/server-postgres bin:mcp-server-postgres", user, "0.6.2: a pool of connections; each query is a read-only transaction that is rolled back, with the settings that it made", same + "; a search_path that one sets does not reach the other", nil},
	{"npm:@modelcontextprotocol/server-memory image:mcp/memory bin:mcp-server-memory", user, "2026.8.31: nothing but its file, which it reads anew at each call; processes with the same file show each other's entries too", same, nil},
	{"pypi:mcp-server-fetch image:mcp/fetch bin:mcp-server-fetch", user, "2026.10.24: nothing", same, nil},
	{"pypi:mcp-server-time image:mcp/time bin:mcp-server-time", user, "2026.10.19: the time zone of its start", same, nil},
	{"pypi:mcp-server-git image:mcp/git bin:mcp-server-git", folder, "2026.10.19: nothing, each call opens the repository; repo_path may be relative", same, nil},
	{"npm:@modelcontextprotocol/server-filesystem image:mcp/filesystem bin:mcp-server-filesystem", session, "takes the roots of its client as the folders that it may read (2026.8.31)", "", nil},
	{"npm:@modelcontextprotocol/server-sequential-thinking image:mcp/sequentialthinking bin:mcp-server-sequential-thinking", session, "keeps the thoughts of all calls in one list (2026.8.31)", differ + ": thoughtHistoryLength counts those of the other", nil},
	{"npm:@modelcontextprotocol/server-everything bin:mcp-server-everything", session, "asks its client, and keeps its roots, its level of logging and its subscriptions (2026.8.31)", "", nil},
	{"npm:@modelcontextprotocol/server-brave-search bin:mcp-server-brave-search", session, "refuses all calls but one a second (0.6.2)", differ + ": a call is refused for that of the other", nil},
	{"npm:@modelcontextprotocol/server-puppeteer image:mcp/puppeteer bin:mcp-server-puppeteer", session, "keeps a browser open (2025.5.12)", "", nil},
	{"pypi:mcp-server-sqlite image:mcp/sqlite bin:mcp-server-sqlite", session, "keeps the insights of all calls in one memo (2025.4.25)", "", nil},

	// Documentation and search.
	{"npm:@upstash/context7-mcp image:mcp/context7 bin:context7-mcp", user, "4.1.1: an id that it sends to its API; asks the client to sign in, if it has no key", echoed, nil},
	{"npm:tavily-mcp bin:tavily-mcp", user, "0.2.22: an id that it sends to its API", echoed, nil},
	{"npm:exa-mcp-server bin:exa-mcp-server", user, "3.4.1: the text of a skill; progress is kept by call", echoed, nil},
	{"npm:@perplexity-ai/mcp-server bin:perplexity-mcp", user, "1.2.1: nothing; a conversation is an argument", echoed, nil},
	{"npm:@brave/brave-search-mcp-server image:mcp/brave-search bin:brave-search-mcp-server", user, "2.1.4: nothing over stdio", echoed, nil},
	{"npm:mcp-searxng image:isokoliuk/mcp-searxng bin:mcp-searxng", user, "1.16.0: caches of pages and searches, and which instances are up", echoed, nil},
	{"npm:@openbnb/mcp-server-airbnb bin:mcp-server-airbnb", user, "0.3.0: robots.txt", echoed, nil},
	{"npm:firecrawl-mcp bin:firecrawl-mcp", folder, "3.22.2: nothing; firecrawl_parse takes a relative path", echoed, nil},
	{"pypi:duckduckgo-mcp-server bin:duckduckgo-mcp-server", user, "0.7.0: a cache of pages, its pace, and the addresses behind its ref:// tokens, each a digest of its address", echoed, nil},
	{"pypi:arxiv-mcp-server bin:arxiv-mcp-server", user, "0.8.2: its pace; papers are files in the home folder, or where --storage-path says", echoed, nil},
	{"pypi:awslabs-aws-documentation-mcp-server image:mcp/aws-documentation bin:awslabs.aws-documentation-mcp-server", user, "1.2.3: the ids of the last three searches, which it adds to requests for their pages", echoed, nil},
	{"pypi:markitdown-mcp bin:markitdown-mcp", user, "0.0.1a8: nothing; paths are file: addresses", same, nil},

	// Services with an account. The credentials of the account are in the definition of the server.
	{"npm:mcp-remote bin:mcp-remote", user, "0.15.1: one session with a remote server, as mcpx has with one; tokens in files of the user", same + ", with server-everything as the remote server", nil},
	{"npm:@stripe/mcp image:mcp/stripe", user, "0.3.3: one session with the remote server of Stripe", echoed, nil},
	{"npm:@notionhq/notion-mcp-server image:mcp/notion bin:notion-mcp-server", user, "2.5.2: the description of the API, in which no operation takes a file", echoed, nil},
	{"npm:@supabase/mcp-server-supabase bin:mcp-server-supabase", user, "0.13.0: the key that seals its questions; asks the client before it costs", echoed, nil},
	{"npm:@sentry/mcp-server bin:sentry-mcp", user, "0.36.0: the options of its start, the regions of organizations", echoed, nil},
	{"npm:@hubspot/mcp-server bin:mcp-hubspot", user, "0.4.0: the list of its tools", echoed, nil},
	{"npm:@winor30/mcp-server-datadog bin:mcp-server-datadog", user, "1.8.0: nothing over stdio", echoed, nil},
	{"npm:airtable-mcp-server bin:airtable-mcp-server", user, "1.14.0: nothing", echoed, nil},
	{"npm:argocd-mcp bin:argocd-mcp", user, "0.9.0: a client for each address and token", echoed, nil},
	{"npm:@antv/mcp-server-chart bin:mcp-server-chart", user, "0.9.10: the list of its tools", echoed, nil},
	{"image:ghcr.io/github/github-mcp-server bin:github-mcp-server", user, "1.10.1: its login, and with lockdown who may write to a repository", echoed, []string{"--dynamic-toolsets", "GITHUB_DYNAMIC_TOOLSETS"}},
	{"pypi:mcp-server-qdrant bin:mcp-server-qdrant", user, "0.8.1: a client of the database; a local one can be opened by one process only", same + ", with a local database and vectors that are digests", nil},
	{"npm:@azure-devops/mcp bin:mcp-server-azuredevops", folder, "2.10.0: a file with the tenants of organizations; saves attachments in its folder; asks the client for a project", echoed, nil},
	{"npm:@circleci/mcp-server-circleci bin:mcp-server-circleci", folder, "0.20.0: metrics that it sends; saves logs and usage in its folder", echoed, nil},
	{"npm:@gongrzhe/server-gmail-autoauth-mcp bin:gmail-mcp", folder, "1.1.11: the login, from a file of the user; attachments are files in its folder", echoed, nil},
	{"npm:figma-developer-mcp bin:figma-developer-mcp", folder, "0.13.2: the options of its start; saves images in its folder", echoed, nil},
	{"npm:hostinger-api-mcp bin:hostinger-api-mcp", folder, "1.63.2: tokens in a file of the user; takes archives by a path that may be relative", echoed, nil},
	{"pypi:mcp-atlassian bin:mcp-atlassian", folder, "0.23.1: fields and statuses of its site; attachments are files in its folder", echoed, nil},
	{"pypi:awslabs-aws-pricing-mcp-server bin:awslabs.aws-pricing-mcp-server", folder, "1.1.1: nothing; saves reports in its folder", echoed, nil},
	{"npm:@zereight/mcp-gitlab image:zereight050/gitlab-mcp bin:mcp-gitlab bin:zereight-mcp-gitlab", session, "shows more tools after discover_tools (2.1.64)", differ + ": tools/list has what the other activated", nil},

	// Files and code.
	{"npm:@eslint/mcp", folder, "0.3.13: nothing, each call makes an ESLint; its config is that of the folder", same, nil},
	{"pypi:office-word-mcp-server bin:word_mcp_server", folder, "1.1.11: nothing, each call opens the document; file names may be relative", same, nil},

	// Servers that belong to one session.
	{"npm:@playwright/mcp image:mcr.microsoft.com/playwright/mcp bin:playwright-mcp", session, "keeps a browser open (0.0.83)", "", nil},
	{"npm:chrome-devtools-mcp bin:chrome-devtools-mcp", session, "keeps a browser open (1.11.0)", "", nil},
	{"npm:@brightdata/mcp", session, "keeps a browser open (2.11.3)", "", nil},
	{"npm:@wonderwhy-er/desktop-commander bin:desktop-commander", session, "keeps shells open (0.2.52)", "", nil},
	{"npm:@benborla29/mcp-server-mysql bin:mcp-server-mysql", session, "keeps connections on which USE and SET of one call hold for the next (2.0.9)", "", nil},
	{"npm:@apify/actors-mcp-server bin:actors-mcp-server", session, "shows more tools after add-actor (0.10.6)", "", nil},
}

// rowOf returns the row of a package, or nil if mcpx does not know the package. name has the form of row.names, such as npm:NAME.
func rowOf(name string) *row { return byName()[name] }

var byName = sync.OnceValue(func() map[string]*row {
	all := make(map[string]*row)
	for i := range packages {
		for name := range strings.FieldsSeq(packages[i].names) {
			all[name] = &packages[i]
		}
	}
	return all
})
