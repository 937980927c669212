package executor

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/files"
	"mcpx/internal/policy"
)

// FileOptions say which files callers may use: which they may read with a reference such as {"$file": PATH}, and which they may
// create with the tool save_result.
type FileOptions struct {
	// Folders are absolute paths.
	Folders []string
	// Roots means that the client's roots are used too, because mcpx runs on the machine of its only client.
	Roots bool
	// Shared means that no files may be used, because mcpx serves several principals.
	Shared bool
}

// rootsTimeout is how long a client may take to list its roots.
const rootsTimeout = 10 * time.Second

var (
	errShared    = &files.Error{Reason: "cannot be used: mcpx has auth, and then no files are open"}
	errNoFolders = &files.Error{Reason: "cannot be used: no folder is open for files; files in the config of mcpx opens some"}
)

// usesFiles reports whether a caller may use files at all: mcpx serves one principal, and the config names folders or the
// caller can list its roots.
func (o *FileOptions) usesFiles(client *caller.Client) bool {
	return !o.Shared && (len(o.Folders) > 0 || o.Roots && client != nil && caller.Lacks(client.Capabilities, "roots/list", nil) == "")
}

// Saves reports whether a caller may save results as files. The caller must be allowed to use files, and neither the rules of the
// config nor the rules of the caller's view may hide the tool save_result.
func (e *Executor) Saves(client *caller.Client, part *policy.Scope) bool {
	if o := &e.current().Files; !o.usesFiles(client) {
		return false
	}
	s := e.builtin.All(true)
	tool, _ := s.Tool(builtin.SaveTool)
	all := []catalog.Rules{e.registry.Snapshot().Rules}
	if part != nil && part.Rules != nil {
		all = append(all, part.Rules)
	}
	for _, rules := range all {
		if rules == nil {
			continue
		}
		if _, hiddenBy := rules.See(s, tool); hiddenBy != "" {
			return false
		}
	}
	return true
}

// folders returns the folders that are open to a caller. It may ask the client for its roots. The roots come first, because a
// relative path is usually relative to a root. The error is a [files.Error] or the error of ctx.
func (e run) folders(ctx context.Context, client *caller.Client) (files.Folders, error) {
	o := &e.options.Files
	switch {
	case o.Shared:
		return nil, errShared
	case !o.usesFiles(client):
		return nil, errNoFolders
	}
	all := []string{}
	if o.Roots && client.Cannot("roots/list", nil) == "" {
		bounded, cancel := context.WithTimeout(ctx, rootsTimeout)
		defer cancel()
		answer, err := client.Ask(bounded, "roots/list", nil)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			all = rootFolders(answer)
		}
	}
	open := files.New(append(all, o.Folders...)...)
	if len(open) == 0 {
		return nil, errNoFolders
	}
	return open, nil
}

// rootFolders returns the paths of the roots in the result of roots/list. It leaves out a root whose URI does not name a local
// file.
func rootFolders(answer json.RawMessage) (all []string) {
	var listed struct{ Roots []struct{ URI string } }
	if json.Unmarshal(answer, &listed) != nil {
		return nil
	}
	for _, root := range listed.Roots {
		if path, err := localPath(root.URI); err == nil {
			all = append(all, path)
		}
	}
	return all
}

func localPath(uri string) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", err
	case !strings.EqualFold(u.Scheme, "file") || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("is no local folder")
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/") // on Windows the path is /C:/folder
	}
	return filepath.FromSlash(path), nil
}
