package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// documents returns the documents of the repository by their paths from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "deploy/*.md", "tools/*/*.md"} {
		paths, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(filepath.ToSlash(path), "../../")] = string(data)
		}
	}
	return texts
}

// anchors returns the anchors of the headings of a document.
func anchors(text string) (all []string) {
	unheard := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(unheard.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return all
}

// TestDocs_Links: links within the documents lead to files and headings that exist.
func TestDocs_Links(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			path, anchor, anchored := strings.Cut(link[1], "#")
			if strings.Contains(path, ":") {
				continue // the link leads to another site
			}
			to := name
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			if _, err := os.Stat("../../" + to); err != nil {
				t.Errorf("%s: %s leads nowhere", name, link[1])
			} else if anchored && !slices.Contains(anchors(texts[to]), anchor) {
				t.Errorf("%s: %s has no such heading", name, link[1])
			}
		}
	}
}

// TestDocs_Sources: the Go files that the documents name exist. A document may leave out the beginning of a path.
func TestDocs_Sources(t *testing.T) {
	var sources []string
	for _, root := range []string{"cmd", "internal", "tools"} {
		if err := fs.WalkDir(os.DirFS("../.."), root, func(path string, _ fs.DirEntry, err error) error {
			sources = append(sources, "/"+path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range documents(t) {
		for _, path := range regexp.MustCompile("`([\\w./-]+/[\\w.-]+\\.go)`").FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(sources, func(source string) bool { return strings.HasSuffix(source, "/"+path[1]) }) {
				t.Errorf("%s: there is no file %s", name, path[1])
			}
		}
	}
}

var (
	// fenced is a code block between fences, with its contents.
	fenced = regexp.MustCompile("(?ms)^ *```\\w*\n(.*?)^ *```")
	// written is a command line of mcpx in a code block whose lines are indented. A prompt may precede it, and it may set variables.
	written = regexp.MustCompile(`(?m)^ {4}(?:\$ )?(?:[A-Z_]+=\S+ )*(?:TOKEN=\$\()?(?:go run \./cmd/)?mcpx((?: [^\n]*)?)$`)
)

// commandLines returns what follows mcpx in the command lines of a document's code blocks.
func commandLines(text string) (lines []string) {
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		text += "\n    " + strings.ReplaceAll(block[1], "\n", "\n    ")
	}
	for _, line := range written.FindAllStringSubmatch(text, -1) {
		lines = append(lines, line[1])
	}
	return lines
}

// TestDocs_Commands: mcpx accepts each command line of the documents that written matches, and docs/commands.md has all
// commands.
func TestDocs_Commands(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		if strings.HasPrefix(name, "docs/decisions/") || name == "CHANGELOG.md" {
			continue
		}
		for _, line := range commandLines(text) {
			args := words(line)
			var c cli
			exited := false
			parser := newParser(&c, meant(args), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) { exited = true }))
			if _, err := parser.Parse(args); err != nil && !exited {
				t.Errorf("%s: mcpx%s: %v", name, line, err)
			}
		}
	}
	parser := newParser(&cli{}, allCommands())
	for _, command := range parser.Model.Leaves(true) {
		if !regexp.MustCompile("[` ]" + regexp.QuoteMeta(strings.TrimPrefix(command.Path(), "mcpx ")) + "[` ]").MatchString(texts["docs/commands.md"]) {
			t.Errorf("docs/commands.md: %s is missing", command.Path())
		}
	}
}

// words returns the words of a command line up to a comment or an operator of the shell.
func words(line string) (all []string) {
	for _, match := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		switch bare := match[3]; {
		case bare == "&", bare == "|", bare == ">", bare == "<", bare == "\\", strings.HasPrefix(bare, "#"):
			return all
		default:
			all = append(all, match[1]+match[2]+strings.TrimSuffix(bare, ")"))
		}
	}
	return all
}
