package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Merged is one server that a config is to get.
type Merged struct {
	// Name is what mcpx calls it.
	Name string
	// From are the files that have it, Clients the names of their clients.
	From, Clients []string
	// Found is the entry of the first of them.
	Found Found
}

// Skipped is a server that a config does not get.
type Skipped struct {
	Name, From, Why string
}

// Merge puts the servers of several files together. A server that is there twice,
// under whatever names, is taken once; another one of a name that is taken gets a
// name of its own. have are the servers of a config that is there already.
func Merge(s System, have []Found, sources []Source) ([]Merged, []Skipped) {
	var merged []Merged
	var skipped []Skipped
	names, byDefinition := map[string]bool{}, map[string]int{}
	for i := range have {
		names[strings.ToLower(have[i].Name)] = true
		byDefinition[have[i].definition()] = -1
	}
	for _, source := range sources {
		from := s.Short(source.File)
		if source.Client != "" {
			from = source.Client + ", " + from
		}
		for _, f := range source.Servers {
			switch i, known := byDefinition[f.definition()]; {
			case f.Self:
				skipped = append(skipped, Skipped{f.Name, source.name(s), "is mcpx itself"})
				continue
			case f.Fault != "":
				skipped = append(skipped, Skipped{f.Name, source.name(s), f.Fault})
				continue
			case known && i < 0:
				skipped = append(skipped, Skipped{f.Name, source.name(s), "is in the config already"})
				continue
			case known:
				merged[i].join(f, from, source.name(s))
				continue
			}
			name := safeName(f.Name)
			if names[strings.ToLower(name)] {
				if have := slices.ContainsFunc(have, func(h Found) bool { return strings.EqualFold(h.Name, name) }); have {
					skipped = append(skipped, Skipped{f.Name, source.name(s), "the config has another server of that name, which stays"})
					continue
				}
				name = freeName(name, source, names)
			}
			names[strings.ToLower(name)] = true
			byDefinition[f.definition()] = len(merged)
			merged = append(merged, Merged{Name: name, From: []string{from}, Clients: []string{source.name(s)}, Found: f})
		}
	}
	return merged, skipped
}

// join notes a further file that has the server. It is off only where it is off
// everywhere.
func (m *Merged) join(f Found, from, client string) {
	if !slices.Contains(m.From, from) {
		m.From = append(m.From, from)
	}
	if !slices.Contains(m.Clients, client) {
		m.Clients = append(m.Clients, client)
	}
	if f.Server.Enabled && !m.Found.Server.Enabled {
		m.Found.Server.Enabled = true
		m.Found.entry = m.Found.entry.without("enabled", "disabled")
	}
}

// name is the client's, or the file where the user named that.
func (s Source) name(system System) string {
	if s.Client == "" {
		return system.Short(s.File)
	}
	return s.Client
}

func freeName(name string, source Source, names map[string]bool) string {
	if source.ID != "" && !names[strings.ToLower(name+"-"+source.ID)] {
		return name + "-" + source.ID
	}
	for i := 2; ; i++ {
		if free := name + "-" + strconv.Itoa(i); !names[strings.ToLower(free)] {
			return free
		}
	}
}

// Secrets counts the servers that hold a credential in their entry, and not in a
// variable.
func Secrets(merged []Merged) int {
	n := 0
	for _, m := range merged {
		text, _ := marshal(m.Found.entry)
		if slices.ContainsFunc(m.Found.Server.Credentials, func(secret string) bool {
			written := strings.Trim(string(quoted(secret)), `"`)
			return len(strings.TrimSpace(secret)) > len("Bearer") && !strings.Contains(secret, "${") &&
				strings.Contains(string(text), written)
		}) {
			n++
		}
	}
	return n
}

// NewConfig is the text of a config with these servers.
func NewConfig(merged []Merged) ([]byte, error) {
	d, err := parseJSONText([]byte(`// The config of mcpx. "mcpx init" made it from the files of MCP clients; it is
// yours to edit, comments and trailing commas are fine. "mcpx add", "remove",
// "enable" and "disable" edit it too, "mcpx check" tries it. A value such as a
// token can come from the environment of mcpx: "${NAME}".
{
  "mcpServers": {},
}
`))
	if err != nil {
		return nil, err
	}
	return d.addAll(merged, "mcpServers")
}

// AddToConfig adds the servers to the text of a config.
func AddToConfig(data []byte, merged []Merged) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	at, err := d.serversKey()
	if err != nil {
		return nil, err
	}
	return d.addAll(merged, at)
}

func (d *jsonText) addAll(merged []Merged, at string) ([]byte, error) {
	for _, m := range merged {
		edited, err := d.set(m.Found.entry, at, m.Name)
		if err != nil {
			return nil, err
		}
		// Inside the braces the comment goes when the server is removed.
		start := edited.value(at, m.Name).StartOffset + 1
		comment := "// from " + strings.Join(m.From, "; ")
		if m.Found.Name != m.Name {
			comment += fmt.Sprintf("; its name there: %s", quoted(m.Found.Name))
		}
		if len(m.Found.LeftOut) > 0 {
			comment += "; left out: " + strings.Join(m.Found.LeftOut, ", ")
		}
		indent := edited.indentation(start) + edited.unit()
		comment = strings.NewReplacer("\r", " ", "\n", " ").Replace(comment)
		text := edited.eol() + indent + comment
		if !strings.HasPrefix(string(edited.text[start:]), "\r") && !strings.HasPrefix(string(edited.text[start:]), "\n") {
			text += edited.eol()
		}
		if d, err = edited.apply(splice{start, start, text}); err != nil {
			return nil, err
		}
	}
	return d.data(), nil
}
