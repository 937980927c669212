package describe

import "strings"

const separators = "_-./:"

// byPrefix returns a line with the names of tools, each of which may be followed by parameters in brackets. Names with the same
// first word form a group, as in `browser_{click, type}, search`.
func byPrefix(names []string) string {
	word := func(name string) string {
		end := max(len(name)-1, 0)
		if open := strings.IndexByte(name, '('); open >= 0 {
			end = open
		}
		return name[:strings.IndexAny(name[:end], separators)+1]
	}
	groups := map[string][]string{}
	for _, name := range names {
		groups[word(name)] = append(groups[word(name)], name)
	}
	var list []string
	for _, name := range names {
		w := word(name)
		group := groups[w]
		switch {
		case w == "" || len(group) == 1:
			list = append(list, name)
		case group[0] == name:
			prefix := commonPrefix(group)
			rests := make([]string, len(group))
			for i := range group {
				rests[i] = group[i][len(prefix):]
			}
			list = append(list, prefix+"{"+strings.Join(rests, ", ")+"}")
		}
	}
	return strings.Join(list, ", ")
}

// commonPrefix returns the longest text with which all names begin. This text ends with a separator, and is shorter than each name.
func commonPrefix(names []string) string {
	prefix := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name[:len(name)-1], prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix[:strings.LastIndexAny(prefix, separators)+1]
}
