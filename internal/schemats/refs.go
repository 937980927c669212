package schemats

import (
	"net/url"
	"strconv"
	"strings"
)

// resolve finds what a $ref points to inside the document, and an identifier
// that suits it; nil where it is no JSON pointer to something there. Nothing is
// fetched.
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
	case "items", "additionalProperties", "anyOf", "oneOf", "allOf", "properties", "$defs", "definitions", "prefixItems",
		"not", "if", "then", "else":
		return true
	}
	return seg == "" || seg[0] >= '0' && seg[0] <= '9'
}
