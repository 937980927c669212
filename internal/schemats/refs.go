package schemats

import (
	"net/url"
	"strconv"
	"strings"
)

// resolve returns the target of a $ref, and an identifier for its type. The target is nil unless
// ref is a JSON pointer within the document; other documents are not fetched.
func (c *converter) resolve(ref string) (*value, string) {
	ptr, local := strings.CutPrefix(ref, "#")
	if un, err := url.PathUnescape(ptr); err == nil {
		ptr = un
	}
	switch {
	case !local || ptr != "" && ptr[0] != '/':
		return nil, ""
	case ptr == "":
		return c.root, "Root"
	}
	return pointer(c.root, ptr)
}

// pointer returns the target of a JSON pointer (RFC 6901), and the last name in the pointer that
// is not a keyword. ptr has no percent-encoding. The target is nil if it does not exist.
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

// withinSchema reports whether a $ref points to a part of another schema, such as a property, and not to a definition.
func withinSchema(ref string) bool {
	segs := strings.Split(ref, "/")
	if len(segs) < 2 {
		return false
	}
	switch parent := segs[len(segs)-2]; parent {
	case "$defs", "definitions":
		return false
	default:
		return structural(segs[len(segs)-1]) || parent != "" && structural(parent)
	}
}

// structural reports whether a segment of a pointer is a keyword or an index, not the name of a
// definition or property.
func structural(seg string) bool {
	switch seg {
	case "items", "additionalProperties", "anyOf", "oneOf", "allOf", "properties", "$defs", "definitions", "prefixItems",
		"not", "if", "then", "else":
		return true
	}
	return seg == "" || seg[0] >= '0' && seg[0] <= '9'
}
