package preview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/base/wire"
)

// values returns the elements of a JSON array.
func values(t testing.TB, array string) []json.RawMessage {
	t.Helper()
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(array), &items); err != nil {
		t.Fatal(err)
	}
	return items
}

func parsed(t testing.TB, text []byte) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// differs returns why a value is not the whole value shortened as its marks say, or "". What is missing in a text or a list
// needs a mark, but members of an object may be missing without one.
func differs(short, whole any, mark string) string {
	if text, ok := short.(string); ok && mark != "" && strings.Contains(text, mark) {
		begin, left, _ := strings.Cut(text, mark)
		if left == "" && begin == "" {
			return "" // a value that is left out
		}
		all, isText := whole.(string)
		if n, err := strconv.Atoi(left); !isText || err != nil || !strings.HasPrefix(all, begin) || utf8.RuneCountInString(all[len(begin):]) != n {
			return fmt.Sprintf("%q is not the beginning of %q", text, whole)
		}
		return ""
	}
	switch whole := whole.(type) {
	case map[string]any:
		object, ok := short.(map[string]any)
		if !ok || len(object) == 0 && len(whole) > 0 {
			return fmt.Sprintf("%v is not %v", short, whole)
		}
		for key, value := range object {
			inner, ok := whole[key]
			if !ok {
				return "a new key " + key
			}
			if why := differs(value, inner, mark); why != "" {
				return why
			}
		}
		return ""
	case []any:
		list, ok := short.([]any)
		if !ok || len(list) == 0 && len(whole) > 0 {
			return fmt.Sprintf("%v is not %v", short, whole)
		}
		for i, value := range list {
			if text, ok := value.(string); ok && i == len(list)-1 && mark != "" && len(whole) > i {
				if left, ok := strings.CutPrefix(text, mark); ok && left != "" {
					if left != strconv.Itoa(len(whole)-i) {
						return fmt.Sprintf("%s stands for %d elements", text, len(whole)-i)
					}
					return ""
				}
			}
			if i >= len(whole) {
				return "too many elements"
			}
			if why := differs(value, whole[i], mark); why != "" {
				return why
			}
		}
		if len(list) != len(whole) {
			return fmt.Sprintf("%d of %d elements without a mark", len(list), len(whole))
		}
		return ""
	}
	if short != whole {
		return fmt.Sprintf("%v is not %v", short, whole)
	}
	return ""
}

// checkLook fails the test if a look shows something that is not in the items.
func checkLook(t testing.TB, items []json.RawMessage, members bool, look Look) {
	t.Helper()
	for i, item := range look.Items {
		whole := []byte(items[i])
		short := []byte(item)
		if members {
			short, whole = []byte("{"+item+"}"), []byte("{"+string(whole)+"}")
		}
		if why := differs(parsed(t, short), parsed(t, whole), look.Mark); why != "" {
			t.Fatalf("item %d: %s\n%.500s\n%.500s", i, why, item, whole)
		}
		if look.Constant == "" {
			continue
		}
		if members {
			_ = wire.Fields(whole, func(_ string, value []byte) bool { whole = value; return false })
		}
		if why := differs(parsed(t, []byte(look.Constant)), parsed(t, whole), look.Mark); why != "" {
			t.Fatalf("constant, item %d: %s\n%.500s\n%.500s", i, why, look.Constant, whole)
		}
	}
}

func issue(i int) string {
	return fmt.Sprintf(`{"url":"https://api.example.com/issues/%[1]d","id":%[2]d,"node_id":"I_kwDOABCD%[2]dXYZ","title":"Crash number %[1]d in the parser","state":"open","locked":false,`+
		`"user":{"login":"user%[3]d","type":"User","avatar_url":"https://avatars.example.com/%[3]d"},"labels":[{"name":"bug","color":"d73a4a"},{"name":"p%[3]d","color":"ffffff"}],`+
		`"milestone":null,"body":"%[4]s %[1]d"}`, i, 90001+i*7, i%5, strings.Repeat("A long text about what happened. ", 30))
}

// TestLook_Issues: a look shows the id, the title and other short members of each item. It writes a member that is the same in
// all items only once, marks the long strings that it cuts, and names what is missing.
func TestLook_Issues(t *testing.T) {
	all := make([]string, 60)
	for i := range all {
		all[i] = issue(i)
	}
	items := values(t, "["+strings.Join(all, ",")+"]")
	d, ok := Read(items, false, "")
	if !ok {
		t.Fatal("cannot be shortened")
	}
	look := d.Look(d.Plan(60, 2500))
	checkLook(t, items, false, look)
	for i, item := range look.Items {
		for _, want := range []string{fmt.Sprintf(`"id":%d`, 90001+i*7), fmt.Sprintf(`"title":"Crash number %d in the parser"`, i), fmt.Sprintf(`"login":"user%d"`, i%5), "…+"} {
			if !strings.Contains(item, want) {
				t.Errorf("item %d has no %s: %s", i, want, item)
			}
		}
	}
	if want := `{"state":"open","locked":false,"user":{"type":"User"},"milestone":null}`; look.Constant != want {
		t.Errorf("constant %s, want %s", look.Constant, want)
	}
	if look.Mark != "…+" || !strings.Contains(look.LeftOut, ".url") || strings.Contains(look.LeftOut, ".title") {
		t.Errorf("mark %q, left out: %s", look.Mark, look.LeftOut)
	}
	if less := d.Look(d.Plan(60, 300)); strings.Contains(less.Items[7], "title") || !strings.Contains(less.Items[7], `"id":90050`) {
		t.Errorf("with little room: %s", less.Items[7])
	}
}

// TestRead_Hostile: a server cannot make a complete value look shortened, or a shortened one complete.
func TestRead_Hostile(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for _, tt := range []struct{ text, mark string }{
		{`x…+7`, "⋯+"},
		{`x\u2026+7`, "⋯+"},
		{`…+1⋯+2`, "‥+"},
		{`…+1⋯+2‥+3`, ""},
	} {
		items := values(t, `[{"id":1,"a":"`+tt.text+`","b":"`+long+`1"},{"id":2,"a":"c","b":"`+long+`2"}]`)
		d, ok := Read(items, false, "")
		if ok != (tt.mark != "") {
			t.Fatalf("%s: %t", tt.text, ok)
		}
		if !ok {
			continue
		}
		look := d.Look(d.Plan(2, 60))
		checkLook(t, items, false, look)
		if look.Mark != tt.mark {
			t.Errorf("%s: mark %q: %s", tt.text, look.Mark, look.Items)
		}
	}
	for _, text := range []string{`["\ud800","a"]`, `["a","\udc00\ud800"]`} {
		if _, ok := Read(values2(text), false, ""); ok {
			t.Errorf("%s: is shortened", text)
		}
	}
	for _, item := range []string{`{"id":1,"b":"` + long + `","a…+1":2}`, `{"id":1,"b":"` + long + `","c":{"a…+1":2}}`} {
		items := values(t, "["+item+","+item+"]")
		if d, ok := Read(items, false, "say ⋯+7"); !ok || d.Look(d.Plan(2, 60)).Mark != "‥+" {
			t.Errorf("%s: %t", item, ok)
		}
	}
	key := strings.Repeat("k", 500) + `\n[0 of 0 items left: exec {}]`
	items := values(t, `[{"id":1,"`+key+`":"`+long+`"},{"id":2,"`+key+`":"`+long+`!"}]`)
	d, _ := Read(items, false, "")
	if look := d.Look(d.Plan(2, 20)); strings.Contains(look.LeftOut, "\n") || look.LeftOut != "1 more" {
		t.Errorf("left out: %s", look.LeftOut)
	}
}

// values2 splits an array of scalars at its commas, without parsing it. No string in the array may contain a comma.
func values2(array string) (items []json.RawMessage) {
	for _, one := range strings.Split(strings.Trim(array, "[]"), ",") {
		items = append(items, json.RawMessage(one))
	}
	return items
}

// TestLook_LongKeys: the time and the size of a look do not grow with the number of members times the length of the keys around
// them.
func TestLook_LongKeys(t *testing.T) {
	var members []string
	for i := range 1500 {
		members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	key := strings.Repeat("k", 1<<20)
	items := values(t, `[{"id":1,"`+key+`":{`+strings.Join(members, ",")+`}},{"id":2}]`)
	d, ok := Read(items, false, "")
	if !ok {
		t.Fatal("cannot be shortened")
	}
	if look := d.Look(d.Plan(2, 20)); len(look.Items[0]) > 100 || len(look.LeftOut) > 200 {
		t.Errorf("%.200s, left out: %.300s", look.Items[0], look.LeftOut)
	}
}

// TestRead_Wide: items with very many different paths have at most maxColumns columns, and the look says that members without a
// column are left out.
func TestRead_Wide(t *testing.T) {
	var members []string
	for i := range 5000 {
		members = append(members, fmt.Sprintf(`"key%d":{"a":%d}`, i, i))
	}
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	items := values(t, `[{"id":1,`+strings.Join(members, ",")+`},{"id":2,"deep":`+deep+`}]`)
	d, ok := Read(items, false, "")
	if !ok || len(d.columns) > maxColumns {
		t.Fatalf("%t, %d columns", ok, len(d.columns))
	}
	for _, budget := range []float64{1e6, 300} {
		look := d.Look(d.Plan(2, budget))
		checkLook(t, items, false, look)
		if !strings.Contains(look.LeftOut, "further or deeper members") {
			t.Errorf("left out: %s", look.LeftOut)
		}
	}
}

// FuzzLook: whatever the items are, a look shows nothing that they do not have.
func FuzzLook(f *testing.F) {
	f.Add(`[{"id":1,"a":[1,2,3,4,5,6]},{"id":2,"a":[]},{"id":3,"a":null,"b":{"c":"…+1"}}]`, uint16(30), false)
	f.Add(`["`+strings.Repeat("é", 300)+`",{"":{"":[[],[[1]]]}},7,true]`, uint16(90), false)
	f.Add(`{"x":{"v":"`+strings.Repeat("w ", 99)+`"},"y":{"v":[{"q":1},{"r":2}]},"z":1e400}`, uint16(40), true)
	f.Fuzz(func(t *testing.T, text string, budget uint16, members bool) {
		var items []json.RawMessage
		if !wire.Valid([]byte(text)) || members != strings.HasPrefix(text, "{") || !members && !strings.HasPrefix(text, "[") {
			return
		}
		if !members {
			items = values(t, text)
		} else {
			seen := map[string]bool{}
			_ = wire.Members([]byte(text), func(key string, name, value []byte) bool {
				if !seen[key] {
					seen[strings.Clone(key)] = true
					items = append(items, slices.Concat(name, []byte(":"), value))
				}
				return true
			})
		}
		if len(items) == 0 || strings.Count(text, `"`) > 400 || repeatedKeys([]byte(text)) {
			return
		}
		d, ok := Read(items, members, "")
		if !ok {
			return
		}
		for _, n := range []int{len(items), (len(items) + 1) / 2} {
			checkLook(t, items, members, d.Look(d.Plan(n, float64(budget))))
		}
	})
}

// repeatedKeys reports whether an object in a value has a key twice, which the check cannot compare.
func repeatedKeys(value []byte) (found bool) {
	each := func(part []byte) bool { found = found || repeatedKeys(part); return !found }
	switch value[0] {
	case '[':
		_ = wire.Elements(value, each)
	case '{':
		seen := map[string]bool{}
		_ = wire.Fields(value, func(key string, part []byte) bool {
			found = found || seen[key]
			seen[strings.Clone(key)] = true
			return each(part)
		})
	}
	return found
}
