// Package share says which sessions of a user's clients may share one process or connection of a server ([Of]), and whether two
// sessions would start the server in the same way ([Session.Digest]). It starts nothing and keeps nothing.
package share

import (
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

// Choice says which sessions share a server, and why.
type Choice struct {
	Share conf.Share
	// Why is a text of one line that tells the user the reason. It quotes nothing from the config except the name of a package.
	Why string
	// Set means that Share comes from the config. Otherwise mcpx has chosen it.
	Set bool
}

// Of returns which sessions share a server: what the config says or, if the config says nothing, the default. For most servers
// the default is "session", which means that sessions share nothing. Only remote servers, and packages that are known to keep
// nothing of a session, have another default. The references in s must be expanded.
func Of(s *config.Server) Choice {
	switch {
	case s.Share != "":
		return Choice{s.Share, "the config says so", true}
	case s.Session == "per_client" || s.Session == "per_principal" || len(s.CallerCredentials) > 0:
		return Choice{conf.ShareSession, "each client has a session of its own with it", false}
	case s.Type != config.Stdio:
		return Choice{conf.ShareUser, "it is a remote server", false}
	}
	line, ok := packageOf(s.Command, s.Args)
	if !ok {
		return Choice{conf.ShareSession, "its command names no package that mcpx can recognise", false}
	}
	known := rowOf(line.name)
	if known == nil {
		return Choice{conf.ShareSession, "mcpx does not know what " + line.title() + " keeps between calls", false}
	}
	if known.share == conf.ShareSession {
		return Choice{conf.ShareSession, line.title() + " " + known.read, false}
	}
	if word := known.changedBy(s, line.others); word != "" {
		return Choice{conf.ShareSession, line.title() + " keeps more with " + word, false}
	}
	if known.share == conf.ShareUser && inFolder(s, line.others) {
		return Choice{conf.ShareFolder, line.title() + " keeps nothing of a session, but a path of its definition is relative", false}
	}
	if known.share == conf.ShareFolder && filepath.IsAbs(s.Cwd) {
		// cwd in the config makes the folder the same for all sessions.
		return Choice{conf.ShareUser, line.title() + " keeps nothing of a session, and cwd is set", false}
	}
	why := " keeps nothing of a session"
	if known.share == conf.ShareFolder {
		why += ", but goes by the folder in which it runs"
	}
	return Choice{known.share, line.title() + why, false}
}

// changedBy returns the first word of row.unless that is an argument, the part of an argument before or after a "=", or an
// environment variable that the config sets. It returns "" if there is none. With such a word, sessions must not share the
// package.
func (r *row) changedBy(s *config.Server, args []string) string {
	for _, word := range r.unless {
		_, set := s.Env[word]
		if set || slices.ContainsFunc(args, func(arg string) bool { return strings.Contains("="+arg+"=", "="+word+"=") }) {
			return word
		}
	}
	return ""
}

// inFolder reports whether a path in the server's definition seems to be relative to the folder of the session. Sessions in
// different folders must not share such a server. If cwd is absolute, inFolder returns false: the folder is then the same for
// all sessions. If in doubt, it returns true, which only costs one more process.
func inFolder(s *config.Server, args []string) bool {
	if s.Cwd != "" {
		return !filepath.IsAbs(s.Cwd)
	}
	if strings.ContainsAny(s.Command, `/\`) && isRelative(s.Command) || slices.ContainsFunc(args, isRelative) {
		return true
	}
	for name, value := range s.Env {
		// Credentials may contain a slash, and then look like a path.
		if name != "PATH" && !slices.Contains(s.Credentials, value) && isRelative(value) {
			return true
		}
	}
	return false
}

// extensions are file extensions. A word that ends in one of them is taken for a path, even if it has no slash.
var extensions = strings.Fields(`
	.db .sqlite .sqlite3 .duckdb .json .jsonl .jsonc .yaml .yml .toml .env .ini .conf .txt .md .csv .tsv .pdf .xlsx .docx
	.pem .key .crt .log .js .mjs .cjs .ts .py .sh .sql
`)

// isRelative reports whether a word is a relative path, or is an option with a relative path in its value: --flag=PATH, or
// type=bind,source=PATH,target=PATH.
func isRelative(word string) bool {
	for part := range strings.SplitSeq(word, ",") {
		if option, value, ok := strings.Cut(part, "="); ok && !strings.ContainsAny(option, `/\ `) {
			part = value
		}
		slashed := strings.ReplaceAll(part, `\`, "/")
		first, _, nested := strings.Cut(slashed, "/")
		switch {
		case first == "." || first == "..":
			return true
		case first == "" || strings.HasPrefix(first, "-") || strings.HasPrefix(first, "@") || strings.HasPrefix(first, "~"):
		case strings.ContainsAny(part, ": \t\n"): // an address, a drive, a header or a sentence, but no relative path
		case nested || slices.Contains(extensions, strings.ToLower(filepath.Ext(part))):
			return true
		}
	}
	return false
}
