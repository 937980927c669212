package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Merged is a server that mcpx init will add to mcpx's config.
type Merged struct {
	Name string // the server's name in mcpx's config
	// From are the files in which the server was found, each with its client. Clients are the display names of these clients; a
	// file that the user gave has its path in place of the client.
	From, Clients []string
	// Found is the server's entry in the first file of From.
	Found Found
}

// Skipped is a server that mcpx init does not add to mcpx's config. Why is the reason.
type Skipped struct {
	Name, From, Why string
}

// Merge collects the servers in sources that should be added to a config. existing has the servers that are in the config already.
// A server that occurs several times is added once, even if its names differ. If two different servers in sources have the same
// name, the second one gets a new name. A server is skipped if it is mcpx itself, if mcpx cannot serve it (Fault), or if the config
// has this server or another one with its name.
func Merge(s System, existing []Found, sources []Source) (merged []Merged, skipped []Skipped) {
	const inConfig = -1 // in the maps names and known, the value for a server of the config; other values are indexes in merged
	names, known := map[string]int{}, map[string]int{}
	for i := range existing {
		names[strings.ToLower(existing[i].Name)] = inConfig
		for _, definition := range existing[i].replaces() {
			known[definition] = inConfig
		}
	}
	for _, source := range sources {
		client, from := source.Client, source.Client+", "+s.Short(source.File)
		if client == "" {
			client, from = s.Short(source.File), s.Short(source.File)
		}
		for _, f := range source.Servers {
			skip := func(why string) { skipped = append(skipped, Skipped{f.Name, client, why}) }
			name := safeName(f.Name)
			at, isKnown := known[f.definition()]
			owner, taken := names[strings.ToLower(name)]
			switch {
			case f.Self:
				skip("is mcpx itself")
				continue
			case f.Fault != "":
				skip(f.Fault)
				continue
			case isKnown && at == inConfig:
				skip("is in the config already")
				continue
			case isKnown:
				merged[at].join(f, from, client)
				continue
			case taken && owner == inConfig:
				skip("the config has another server with this name, which stays")
				continue
			case taken:
				name = freeName(name, source, names)
			}
			names[strings.ToLower(name)], known[f.definition()] = len(merged), len(merged)
			merged = append(merged, Merged{Name: name, From: []string{from}, Clients: []string{client}, Found: f})
		}
	}
	return merged, skipped
}

// join notes that the server was also found in another file of a client. If it is enabled in one of the files, mcpx enables it.
func (m *Merged) join(f Found, file, client string) {
	if !slices.Contains(m.From, file) {
		m.From = append(m.From, file)
	}
	if !slices.Contains(m.Clients, client) {
		m.Clients = append(m.Clients, client)
	}
	if f.Server.Enabled && !m.Found.Server.Enabled {
		m.Found.Server.Enabled = true
		m.Found.entry = m.Found.entry.without("enabled", "disabled")
	}
}

func freeName(name string, source Source, names map[string]int) string {
	free := name + "-" + source.ID
	for i := 2; ; i++ {
		if _, taken := names[strings.ToLower(free)]; !taken && !strings.HasSuffix(free, "-") {
			return free
		}
		free = name + "-" + strconv.Itoa(i)
	}
}

// Secrets returns the number of servers whose entry contains a credential in plain text.
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

// NewConfig returns the text of a new config with the servers in merged. The parameter before is the present text of the file,
// which is [Blank]: it has comments at most. These comments stay at the beginning.
func NewConfig(before []byte, merged []Merged) ([]byte, error) {
	text := strings.TrimRight(string(before), " \t\r\n")
	if text != "" {
		text += "\n\n"
	}
	return AddToConfig([]byte(text+`// The config of mcpx. "mcpx init" made it from the files of MCP clients; it is
// yours to edit, comments and trailing commas are fine. "mcpx add", "remove",
// "enable" and "disable" edit it too, "mcpx check" tries it. A value such as a
// token can come from the environment of mcpx: "${NAME}".
{
  "mcpServers": {},
}
`), merged)
}

// AddToConfig adds the servers in merged to the text of a config, each with a comment that says where it comes from.
func AddToConfig(data []byte, merged []Merged) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		key, err := d.serversKey()
		if err != nil {
			return err
		}
		for i := range merged {
			if err := d.addMerged(&merged[i], key); err != nil {
				return err
			}
		}
		return nil
	})
}

// addMerged adds a server, with a comment that says which files it comes from. The comment is inside the braces of the
// server's entry, so that it is removed together with the entry.
func (d *jsonText) addMerged(m *Merged, key string) error {
	if err := d.set(m.Found.withShare(), key, m.Name); err != nil {
		return err
	}
	comment := "// from " + strings.Join(m.From, "; ")
	if m.Found.Name != m.Name {
		comment += fmt.Sprintf("; its name there: %s", quoted(m.Found.Name))
	}
	if len(m.Found.LeftOut) > 0 {
		comment += "; left out: " + strings.Join(m.Found.LeftOut, ", ")
	}
	start := d.value(key, m.Name).StartOffset + 1
	text := d.eol() + d.indentation(start) + d.unit() + strings.NewReplacer("\r", " ", "\n", " ").Replace(comment)
	if after := d.text[start]; after != '\r' && after != '\n' {
		text += d.eol()
	}
	return d.apply(splice{start, start, text})
}
