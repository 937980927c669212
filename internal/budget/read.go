package budget

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/compress"
	"mcpx/internal/tokens"
)

// ReadTools reads recorded answers to tools/list from *.json files, one file for each server. A file contains the result of
// tools/list, and may also contain "server" (the default is the file name), "version" and "instructions". notes say which tools
// were refused, and which files have only a part of the tools.
func ReadTools(dir fs.FS) (snap *catalog.Snapshot, notes []string, err error) {
	names, err := fs.Glob(dir, "*.json")
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, nil, errors.New("no *.json file with an answer to tools/list in it")
	}
	var servers []catalog.Server
	from := make(map[string]string)
	for _, file := range names {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, nil, err
		}
		server, faults, err := readServer(file, data)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		if first := from[server.Name]; first != "" {
			return nil, nil, fmt.Errorf("%s: server %q is in %s already", file, server.Name, first)
		}
		from[server.Name] = file
		for _, fault := range faults {
			notes = append(notes, file+": "+fault)
		}
		servers = append(servers, server)
	}
	return catalog.NewSnapshot(servers), notes, nil
}

func readServer(file string, data []byte) (catalog.Server, []string, error) {
	var about struct {
		Server       string          `json:"server"`
		Version      string          `json:"version"`
		Instructions string          `json:"instructions"`
		Tools        json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &about); err != nil {
		return catalog.Server{}, nil, fmt.Errorf("reading tools/list: %w", err)
	}
	if about.Tools == nil {
		return catalog.Server{}, nil, errors.New(`no "tools" at the top: want a result of tools/list`)
	}
	page, err := catalog.ReadPage(catalog.Tools, data)
	if err != nil {
		return catalog.Server{}, nil, err
	}
	tools, refused := catalog.DecodeTools(page.Items)
	tools, twice := catalog.Unique(tools)
	faults := slices.Concat(refused, page.Faults, twice)
	if page.NextCursor != nil {
		faults = append(faults, "has a nextCursor: its further pages are not counted")
	}
	return catalog.Server{
		Name: serverName(cmp.Or(about.Server, strings.TrimSuffix(file, ".json"))), Version: about.Version, Instructions: about.Instructions,
		State: catalog.Ready, Known: true, Tools: tools,
	}, faults, nil
}

// serverName turns the name of a package, such as @scope/server, into one that a config allows.
func serverName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.TrimPrefix(name, "@"))
}

// Results measures the recorded results in dir (*.json and *.txt). The class of a result is its file name up to "--". Classes that
// excluded names are left out. Each file is measured as one text block of a tool without special settings, and is never cut.
func (m *Meter) Results(dir fs.FS, excluded []string) (*Results, error) {
	files, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	classes := make(map[string]*Class)
	for _, file := range files { // sorted by name
		extension := path.Ext(file.Name())
		if extension != ".json" && extension != ".txt" || file.IsDir() {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(file.Name(), extension), "--")
		if slices.Contains(excluded, name) {
			continue
		}
		text, err := fs.ReadFile(dir, file.Name())
		if err != nil {
			return nil, err
		}
		if classes[name] == nil {
			classes[name] = &Class{Name: name}
		}
		classes[name].add(m.result(string(text)))
	}
	if len(classes) == 0 {
		return nil, errors.New("no *.json or *.txt file to measure")
	}
	out := &Results{}
	for _, class := range classes {
		out.Classes = append(out.Classes, *class)
		out.Total.add(*class)
	}
	slices.SortFunc(out.Classes, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Received, a.Received), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// result measures one text in each of the forms that a Class compares.
func (m *Meter) result(text string) Class {
	minified := compress.Text(text, compress.Options{}).Text
	sent := compress.Text(text, m.Compress)
	c := Class{Documents: 1, Received: tokens.Count(text), Minified: tokens.Count(minified), Sent: tokens.Count(sent.Text)}
	c.PlainTOON = c.Minified
	if toon, ok := plainTOON(text); ok {
		c.PlainTOON = tokens.Count(toon)
	}
	if sent.Form == compress.FormTOON {
		c.TOON = 1
	}
	return c
}

func (c *Class) add(o Class) {
	c.Documents += o.Documents
	c.Received += o.Received
	c.Minified += o.Minified
	c.PlainTOON += o.PlainTOON
	c.Sent += o.Sent
	c.TOON += o.TOON
}
