package schemats

import (
	"net/url"
	"strconv"
	"strings"
)

// resolver finds what a $ref points to inside one document. Nothing is fetched.
type resolver struct {
	root    *value
	scanned bool
	// ids are the $anchor, $dynamicAnchor, $id and id values of the document.
	ids map[string]*value
}

// maxScan bounds the search for anchors.
const maxScan = 200_000

// resolve gives the target of ref and an identifier that suits it; nil for a
// target that does not exist or lies in another document.
func (r *resolver) resolve(ref string) (*value, string) {
	base, fragment, hasFragment := strings.Cut(ref, "#")
	root := r.root
	if base != "" {
		root = r.byID(base)
		if root == nil {
			return nil, ""
		}
		if !hasFragment || fragment == "" {
			return root, lastSegment(base)
		}
	}
	if un, err := url.PathUnescape(fragment); err == nil {
		fragment = un
	}
	if fragment == "" {
		return root, "Root"
	}
	if fragment[0] != '/' {
		return r.byID("#" + fragment), fragment
	}
	return pointer(root, fragment)
}

// pointer follows a JSON pointer (RFC 6901) that is already %-decoded.
func pointer(v *value, ptr string) (*value, string) {
	hint := ""
	for _, seg := range strings.Split(ptr[1:], "/") {
		seg = strings.ReplaceAll(strings.ReplaceAll(seg, "~1", "/"), "~0", "~")
		switch {
		case v.isObject():
			v = v.get(seg)
		case v.isArray():
			i, err := strconv.Atoi(seg)
			if err != nil || i < 0 || i >= len(v.items) {
				return nil, ""
			}
			v = v.items[i]
		default:
			return nil, ""
		}
		if v == nil {
			return nil, ""
		}
		if !structural(seg) {
			hint = seg
		}
	}
	return v, hint
}

func structural(seg string) bool {
	switch seg {
	case "items", "additionalProperties", "anyOf", "oneOf", "allOf", "properties", "$defs", "definitions", "prefixItems", "not", "if", "then", "else":
		return true
	}
	return seg == "" || seg[0] >= '0' && seg[0] <= '9'
}

func lastSegment(s string) string {
	s = strings.TrimRight(s, "/")
	s = s[strings.LastIndexByte(s, '/')+1:]
	return strings.TrimSuffix(strings.TrimSuffix(s, ".json"), ".schema")
}

// byID finds a schema by its $id, or by "#" and its anchor. Relative ids match
// by their last segment, which is what local references use.
func (r *resolver) byID(id string) *value {
	if !r.scanned {
		r.scanned = true
		r.ids = map[string]*value{}
		budget := maxScan
		r.scan(r.root, &budget)
	}
	if v := r.ids[id]; v != nil {
		return v
	}
	if strings.Contains(id, "://") || strings.HasPrefix(id, "#") {
		return nil
	}
	return r.ids[lastSegment(id)]
}

func (r *resolver) scan(v *value, budget *int) {
	if *budget--; *budget < 0 {
		return
	}
	switch v.kind {
	case jObject:
		r.note(v)
		for _, m := range v.members {
			if m.key != "enum" && m.key != "const" && m.key != "default" && m.key != "examples" {
				r.scan(m.val, budget)
			}
		}
	case jArray:
		for _, item := range v.items {
			r.scan(item, budget)
		}
	}
}

func (r *resolver) note(v *value) {
	put := func(id string) {
		if id != "" && r.ids[id] == nil {
			r.ids[id] = v
		}
	}
	for _, k := range [...]string{"$anchor", "$dynamicAnchor"} {
		if a := v.str(k); a != "" {
			put("#" + a)
		}
	}
	for _, k := range [...]string{"$id", "id"} {
		if id := v.str(k); id != "" {
			put(id)
			id = strings.TrimSuffix(id, "#")
			put(id)
			put(lastSegment(id))
		}
	}
}
