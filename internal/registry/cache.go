package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"mcpx/internal/base/catalog"
	"mcpx/internal/upstream"
)

const (
	// cacheFormat is the number of the file format. It changes when mcpx can no longer read files of the old format.
	cacheFormat = 1
	// triedFormat marks a file without a catalogue: mcpx has tried to connect to the server and got no catalogue. Older
	// versions of mcpx ignore such files.
	triedFormat = 2
)

// cache stores the last catalogue of each server in a folder, with one file per server. A file that cannot be read is ignored.
type cache struct{ dir string }

// record is what mcpx saves about one server: the content of its file, and what one replica sends to another.
type record struct {
	Format       int               `json:"format"`
	Protocol     string            `json:"protocol"`
	Modern       bool              `json:"modern"`
	Unprobed     bool              `json:"unprobed,omitempty"` // it is unknown whether the server also speaks the modern era
	Title        string            `json:"title,omitempty"`
	Version      string            `json:"version,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Definitions  []json.RawMessage `json:"tools"`
	// Offers is nil if the server had not yet listed what it offers besides tools, and in a file from a version of mcpx that
	// supported only tools.
	Offers *catalog.Offers `json:"offers,omitempty"`
	// ByEra has what the server offered in the shared session, by era ([upstream.EraLegacy] or [upstream.EraModern]).
	ByEra     map[string]catalog.Offers `json:"offersByEra,omitempty"`
	Resources []json.RawMessage         `json:"resources,omitempty"`
	Templates []json.RawMessage         `json:"resourceTemplates,omitempty"`
	Prompts   []json.RawMessage         `json:"prompts,omitempty"`
	Skills    []json.RawMessage         `json:"skills,omitempty"`

	tools []catalog.Tool
	items *catalog.Items
	tried bool // mcpx has tried to connect to the server and got no catalogue
}

// era returns the era in which mcpx should talk to the server, for [upstream.Spec]; empty if mcpx must find it out.
func (r *record) era() string {
	agreed := upstream.Agreement{Protocol: r.Protocol, Modern: r.Modern, Unprobed: r.Unprobed}
	return agreed.Era()
}

// equal reports whether two records of one server are equal. It compares the tools and items only by identity, because equal
// catalogues share them (see [upstream.Status]).
func (r *record) equal(other *record) bool {
	return r.tried == other.tried && r.Protocol == other.Protocol && r.Modern == other.Modern && r.Unprobed == other.Unprobed &&
		r.Title == other.Title && r.Version == other.Version && r.Instructions == other.Instructions &&
		catalog.SameTools(r.tools, other.tools) && r.items == other.items &&
		maps.Equal(r.ByEra, other.ByEra) && (r.Offers == nil) == (other.Offers == nil) && (r.Offers == nil || *r.Offers == *other.Offers)
}

// Key returns a digest of a server's settings. Nobody can read the settings from it.
func Key(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(digest.Sum(nil))[:32]
}

func (c *cache) path(key string) string { return filepath.Join(c.dir, key+".json") }

func (c *cache) load(key string) *record {
	if c.dir == "" || key == "" {
		return nil
	}
	data, err := os.ReadFile(c.path(key))
	if err != nil {
		return nil
	}
	rec := decode(data)
	if rec != nil {
		c.touch(key)
	}
	return rec
}

// decode reads what encode has written. It returns nil if data is empty or invalid, has another format, or has an invalid tool.
func decode(data []byte) *record {
	var rec record
	if json.Unmarshal(data, &rec) != nil || rec.Format != cacheFormat && rec.Format != triedFormat {
		return nil
	}
	rec.tried = rec.Format == triedFormat
	for _, raw := range rec.Definitions {
		tool, err := catalog.DecodeTool(raw)
		if err != nil {
			return nil
		}
		rec.tools = append(rec.tools, tool)
	}
	rec.items = &catalog.Items{}
	rec.items.Resources, _ = catalog.DecodeItems(catalog.Resources, rec.Resources)
	rec.items.Templates, _ = catalog.DecodeItems(catalog.ResourceTemplates, rec.Templates)
	rec.items.Prompts, _ = catalog.DecodeItems(catalog.Prompts, rec.Prompts)
	rec.items.Skills, _ = catalog.DecodeItems(catalog.Skills, rec.Skills)
	rec.Definitions, rec.Resources, rec.Templates, rec.Prompts, rec.Skills = nil, nil, nil, nil, nil
	return &rec
}

// encode returns a record as the content of its file. It sets the fields of rec that are only for the file.
func encode(rec *record) ([]byte, error) {
	rec.Format = cacheFormat
	if rec.tried {
		rec.Format = triedFormat
	}
	rec.Definitions = make([]json.RawMessage, len(rec.tools))
	for i := range rec.tools {
		rec.Definitions[i] = rec.tools[i].Raw
	}
	for kind, into := range map[catalog.Kind]*[]json.RawMessage{
		catalog.Resources: &rec.Resources, catalog.ResourceTemplates: &rec.Templates,
		catalog.Prompts: &rec.Prompts, catalog.Skills: &rec.Skills,
	} {
		*into = nil
		for _, item := range rec.items.Of(kind) {
			*into = append(*into, item.Raw)
		}
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // keep the definitions as the server sent them
	err := encoder.Encode(rec)
	return data.Bytes(), err
}

// save writes a record to its file. A reader sees either the old file or the complete new one.
func (c *cache) save(key string, rec *record) error {
	if c.dir == "" || key == "" {
		return nil
	}
	data, err := encode(rec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(c.dir, key+".*.tmp")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), c.path(key))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
