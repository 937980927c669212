package arguments

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

const (
	maxUnknown     = 3      // number of unknown arguments that are reported
	maxUnknownName = 60     // runes of a name that are shown
	maxKnownNames  = 8      // number of names that are listed if none is similar
	maxCompared    = 10_000 // number of names among which a similar one is searched
)

// Unknown is an argument that the schema does not describe.
type Unknown struct {
	Name string
	// Near is a similar name that the schema describes, or empty if there is none. Known has some of the names that the schema
	// describes.
	Near  string
	Known []string
	// Hint, if not empty, says where the argument belongs, in place of Near and Known.
	Hint string
}

// unknown returns the first maxUnknown arguments that a schema allows but does not describe. It returns none if properties that
// the schema does not name may have a subschema. If the schema explicitly allows additional properties, unknown returns only
// names that are similar to a described one.
func (c *compiled) unknown(object json.RawMessage) []Unknown {
	if c.schema == nil {
		return nil
	}
	d := described{names: make(map[string]bool), seen: make(map[*schema]bool)}
	d.add(c.schema)
	if d.others || len(d.names) == 0 {
		return nil
	}
	var strange []string
	known := maps.Clone(d.names)
	_ = wire.Fields(object, func(name string, _ []byte) bool { // cannot fail, as object is valid JSON
		delete(known, name) // this name was sent, so no other name is a misspelling of it
		if !d.names[name] && len(strange) < maxUnknown && !slices.Contains(strange, name) {
			strange = append(strange, name)
		}
		return true
	})
	missing, every := slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(d.names))
	var all []Unknown
	for _, name := range strange {
		near := nearest(name, missing)
		if near == "" && d.welcome {
			continue
		}
		all = append(all, Unknown{Name: sanitize.Line(name, maxUnknownName), Near: near, Known: shown(every)})
	}
	return all
}

// nearest returns the known name most similar to name, or an empty string if none is similar or there are too many.
func nearest(name string, known []string) string {
	if len(known) > maxCompared {
		return ""
	}
	if near := sanitize.Nearest(name, known); len(near) > 0 {
		return sanitize.Line(near[0], maxUnknownName)
	}
	return ""
}

// shown returns the first maxKnownNames names in a form that is safe to print, and "..." if there are more.
func shown(names []string) []string {
	list := make([]string, 0, maxKnownNames)
	for _, name := range names[:min(len(names), maxKnownNames)] {
		list = append(list, sanitize.Line(name, maxUnknownName))
	}
	if len(names) > maxKnownNames {
		list = append(list, "...")
	}
	return list
}

// described collects the names that a schema, together with its subschemas for the same object, describes.
type described struct {
	names   map[string]bool
	seen    map[*schema]bool
	welcome bool // additional properties are explicitly allowed
	others  bool // other properties may have a schema of their own
}

func (d *described) add(s *schema) {
	if s == nil || d.seen[s] {
		return
	}
	d.seen[s] = true
	d.welcome = d.welcome || s.additional != nil && s.additional.boolean != nil && *s.additional.boolean
	d.others = d.others || s.additional != nil && s.additional.boolean == nil || len(s.patterns) > 0 ||
		s.otherProperties != nil && s.otherProperties.boolean == nil
	for name := range s.properties {
		d.names[name] = true
	}
	for _, part := range slices.Concat(s.refs, s.allOf, s.anyOf, s.oneOf, []*schema{s.condition, s.then, s.otherwise}) {
		d.add(part)
	}
	for _, part := range s.dependents {
		d.add(part)
	}
}

// String returns a warning for the model: the tool may ignore the argument.
func (u Unknown) String() string {
	if u.Hint != "" {
		return "no argument " + u.Name + "; " + u.Hint
	}
	if u.Near != "" {
		return "no argument " + u.Name + "; did you mean " + u.Near + "?"
	}
	return "no argument " + u.Name + ", only " + strings.Join(u.Known, ", ")
}
