package results

import (
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// notSelected returns a line that names the members of value by which the server says that there is more than this page, such as
// `[not selected: .next_cursor "b3Bz", .total 640]`. Without this line, a model that selected or searched only the items would take
// the items of one page for all. The line is empty if value has no such member. It is also empty if such a member is named in the
// filter or in shown, the text that the model gets of value. The model then knows that there is more.
func notSelected(value json.RawMessage, filter, shown string) string {
	if len(value) == 0 || value[0] != '{' || len(value) > maxPaged {
		return ""
	}
	doc, ok := wire.Read(string(value))
	if !ok {
		return ""
	}
	f := pagingFinder{doc: doc}
	f.object(0, "", false)
	if !f.more && f.ended || f.items == 0 {
		return ""
	}
	var parts []string
	for _, m := range f.members {
		switch {
		case strings.Contains(filter, m.key) || strings.Contains(shown, `"`+m.key+`":`):
			return ""
		case m.count > 0 && m.count <= f.items, m.needsFlag && !f.more:
		case len(parts) < maxPagingMembers:
			parts = append(parts, m.text)
		}
	}
	if parts == nil {
		return ""
	}
	return "[not selected: " + strings.Join(parts, ", ") + "]"
}

const (
	maxPaged         = 1 << 20 // bytes; a longer value is not searched
	maxPagingDepth   = 5       // how many objects deep a value is searched
	maxPagingMembers = 3
	maxPagingText    = 120 // bytes; of a longer value only the path is shown
)

// pagingMember is a member by which servers say that there is more.
type pagingMember struct {
	key, text string
	count     int64 // the number of all items, if the member says that; otherwise 0
	needsFlag bool  // the member is also there on the last page, so only a flag says whether there is more
}

// pagingFinder finds the members that have to do with paging. It searches nested objects, but not the elements of arrays.
type pagingFinder struct {
	doc     *wire.Document
	members []pagingMember
	items   int64 // the length of the longest array
	more    bool  // a flag, such as has_more, is true
	ended   bool  // a flag is false
}

// object searches the object at doc.Nodes[at], whose jq path is path. If the object is the value of a member such as "next", the
// parameter next is true: all strings in the object are then cursors or links.
func (f *pagingFinder) object(at int32, path string, next bool) {
	paged := next
	for i := at + 1; i < f.doc.Nodes[at].Next; i = f.doc.Nodes[i].Next {
		paged = paged || slices.Contains(pageNames, plainName(f.doc.Str(f.doc.Nodes[i].Key)))
	}
	for i := at + 1; i < f.doc.Nodes[at].Next; i = f.doc.Nodes[i].Next {
		n, key := &f.doc.Nodes[i], f.doc.Str(f.doc.Nodes[i].Key)
		name, step := plainName(key), path+compress.Step(key)
		switch {
		case n.Kind == wire.Array:
			f.items = max(f.items, int64(n.Count))
		case n.Kind == wire.Object && strings.Count(step, ".") <= maxPagingDepth:
			f.object(i, step, slices.Contains(nextNames, name))
		case slices.Contains(moreNames, name) && n.Kind == wire.True:
			f.more = true
			f.add(key, step+" true")
		case slices.Contains(moreNames, name) && n.Kind == wire.False:
			f.ended = true
		case n.Kind == wire.String && (next || slices.Contains(nextNames, name) || name == endCursor) && f.doc.Str(n.Text) != "":
			f.add(key, step+" "+string(wire.Encode(f.doc.Str(n.Text))))
			f.members[len(f.members)-1].needsFlag = name == endCursor
		case n.Kind == wire.Number && slices.Contains(nextNames, name):
			f.add(key, step+" "+f.doc.Str(n.Text))
		case n.Kind == wire.Number && (slices.Contains(totalNames, name) || name == "total" && paged):
			var count int64
			if json.Unmarshal([]byte(f.doc.Str(n.Text)), &count) == nil && count > 0 {
				f.add(key, step+" "+f.doc.Str(n.Text))
				f.members[len(f.members)-1].count = count
			}
		}
	}
}

func (f *pagingFinder) add(key, text string) {
	if len(text) > maxPagingText {
		text, _, _ = strings.Cut(text, " ")
	}
	f.members = append(f.members, pagingMember{key: key, text: text})
}

// These are names of members that servers use for paging, in the form that plainName returns.
var (
	moreNames  = strings.Fields("hasmore hasnext hasnextpage hasmoreitems hasmoreresults istruncated")
	nextNames  = strings.Fields("next nextcursor nexttoken nextpage nextpagetoken nextpagecursor nextpageurl nexturl nextlink odatanextlink nextoffset nextrange continuationtoken nextcontinuationtoken")
	totalNames = strings.Fields("totalcount totalresults totalitems totalhits totalrecords totalelements totalentries totalrows")
	// pageNames are names beside which "total" counts items; elsewhere it may be an amount.
	pageNames = strings.Fields("page perpage pagesize limit offset startat maxresults skip nextcursor nextpagetoken hasmore")
)

// endCursor is the cursor of GraphQL's pageInfo, which the last page has too.
const endCursor = "endcursor"

// plainName returns a key in lower case, with nothing but its ASCII letters: next_cursor, nextCursor and next-cursor are the same.
func plainName(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z':
			return r
		}
		return -1
	}, key)
}
