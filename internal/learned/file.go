package learned

import (
	"encoding/json"
	"slices"
	"strconv"
)

// fileOf is the content of a file, which is one JSON object. Each server has a file of its own. The members of a shape have short
// names, because a shape has many members.
type fileOf struct {
	Format int      `json:"format"`
	Tools  []toolOf `json:"tools"`
}

// fileFormat is the version of the format of files. It changes if a new mcpx cannot read the files of older ones any more;
// decodeFile then ignores those.
const fileFormat = 1

type toolOf struct {
	Part       string   `json:"part,omitempty"`
	Name       string   `json:"name"`
	Definition string   `json:"definition"`
	Results    uint32   `json:"results"`
	Shape      *placeOf `json:"shape"`
}

type placeOf struct {
	Kinds   kinds     `json:"k"`
	Objects uint32    `json:"n,omitempty"`
	Fields  []fieldOf `json:"f,omitempty"`
	Items   *placeOf  `json:"i,omitempty"`
	Rest    *placeOf  `json:"r,omitempty"`
	Others  uint32    `json:"o,omitempty"`
	Cut     bool      `json:"c,omitempty"`
	Blind   bool      `json:"b,omitempty"`
}

type fieldOf struct {
	Key   string `json:"key,omitempty"`
	Hash  string `json:"h,omitempty"`
	Seen  uint32 `json:"s"`
	First uint32 `json:"a"`
	Last  uint32 `json:"z"`
	placeOf
}

// encode returns a shape as it is written to the file. Keys that were in only one result are replaced by hashes.
func (s *Shape) encode() *placeOf {
	ranges := make(map[string][2]uint32)
	s.root.results(ranges)
	return s.encodePlace(&s.root, ranges)
}

// results adds to ranges, for each key in p, the numbers of the first and the last result that had the key. If a key is at several
// places in p, it has one range for all of them, because the values of a map are printed as one type.
func (p *place) results(ranges map[string][2]uint32) {
	if p == nil {
		return
	}
	for _, f := range p.fields {
		first, last := f.first, f.last
		if was, ok := ranges[f.key]; ok {
			first, last = min(first, was[0]), max(last, was[1])
		}
		ranges[f.key] = [2]uint32{first, last}
		f.place.results(ranges)
	}
	p.items.results(ranges)
	p.rest.results(ranges)
}

func (s *Shape) encodePlace(p *place, ranges map[string][2]uint32) *placeOf {
	if p == nil {
		return nil
	}
	out := &placeOf{
		Kinds: p.kinds, Objects: p.objects, Others: p.others, Cut: p.cut, Blind: p.blind,
		Items: s.encodePlace(p.items, ranges), Rest: s.encodePlace(p.rest, ranges),
	}
	for _, f := range p.fields {
		one := fieldOf{Key: f.key, Seen: f.seen, First: f.first, Last: f.last, placeOf: *s.encodePlace(&f.place, ranges)}
		if f.key == "" || ranges[f.key][0] == ranges[f.key][1] {
			hash := f.hash
			if f.key != "" {
				hash = s.hash(f.key)
			}
			one.Key, one.Hash = "", strconv.FormatUint(hash, 16)
		}
		out.Fields = append(out.Fields, one)
	}
	return out
}

// decode converts a shape from the file; it returns nil if mcpx cannot have written it.
func decode(results uint32, salt string, from *placeOf) *Shape {
	s := &Shape{results: results, salt: salt}
	if from == nil || !s.decodePlace(&s.root, from, 0) {
		return nil
	}
	return s
}

func (s *Shape) decodePlace(p *place, from *placeOf, depth int) bool {
	s.places++
	if s.places > maxPlaces || depth > maxDepth || len(from.Fields) > maxFields || from.Kinds > allKinds {
		return false
	}
	p.kinds, p.objects, p.others, p.cut, p.blind = from.Kinds, from.Objects, from.Others, from.Cut, from.Blind
	for _, part := range []struct {
		into **place
		from *placeOf
	}{{&p.items, from.Items}, {&p.rest, from.Rest}} {
		if part.from == nil {
			continue
		}
		*part.into = new(place)
		if !s.decodePlace(*part.into, part.from, depth+1) {
			return false
		}
	}
	for i := range from.Fields {
		one := &from.Fields[i]
		f := &field{key: one.Key, seen: one.Seen, first: one.First, last: one.Last}
		switch hash, err := strconv.ParseUint(one.Hash, 16, 64); {
		case one.Key != "" && !identifier([]byte(one.Key)), one.Key == "" && err != nil:
			return false
		case one.Key == "":
			f.hash = hash
			p.hashed++
		}
		p.fields = append(p.fields, f)
		if !s.decodePlace(&f.place, &one.placeOf, depth+1) {
			return false
		}
	}
	return true
}

// maxFileBytes bounds the size of a file, in bytes.
const maxFileBytes = 512 << 10

// encodeFile encodes tools for a file, in the given order. It leaves out the last ones if the file would become too
// large.
func encodeFile(tools []toolOf) []byte {
	size := 0
	kept := slices.DeleteFunc(slices.Clone(tools), func(t toolOf) bool {
		data, err := json.Marshal(t)
		size += len(data) + 1
		return err != nil || size > maxFileBytes
	})
	data, _ := json.Marshal(fileOf{fileFormat, kept}) // cannot fail: only strings, numbers and lists
	return data
}

// decodeFile parses a file; it returns nil if mcpx cannot have written it.
func decodeFile(data []byte) []toolOf {
	var file fileOf
	if len(data) > 2*maxFileBytes || json.Unmarshal(data, &file) != nil || file.Format != fileFormat {
		return nil
	}
	return file.Tools
}
