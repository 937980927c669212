package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tableOf matches a table of keys in a document. The second group has the names of the objects whose keys it lists.
var tableOf = regexp.MustCompile(`(?s)(<!-- keys: ([A-Za-z ]+) -->\n).*?(<!-- end of the keys -->)`)

// TestTables checks that the tables of keys in the documents match the descriptions of keys in the package. With -update,
// which go generate passes, it writes the tables again.
func TestTables(t *testing.T) {
	objects := make(map[string]object)
	for _, at := range spots() {
		objects[at.name] = at.object
	}
	found := make(map[string]bool)
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		file := "docs/" + filepath.Base(path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := tableOf.ReplaceAllStringFunc(string(data), func(old string) string {
			parts := tableOf.FindStringSubmatch(old)
			names := strings.Fields(parts[2])
			for _, name := range names {
				if found[name] = true; objects[name].keys == nil {
					t.Errorf("%s: there is no object %s", file, name)
				}
			}
			return parts[1] + table(t, file, objects, names) + parts[3]
		})
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if want != string(data) {
			t.Errorf("the tables of keys in %s differ from the code: go generate ./internal/desk/config writes them again", file)
		}
	}
	for name, o := range objects {
		if !found[name] && !strings.HasSuffix(strings.ToLower(name), "tools") && slices.ContainsFunc(o.keys, func(k key) bool { return k.help != "" }) {
			t.Errorf("no document has the keys of %s", name)
		}
	}
}

// table returns the table of the keys of some objects. Each object has a column with its defaults.
func table(t *testing.T, file string, objects map[string]object, names []string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| key | value |")
	for _, name := range names {
		header := "default"
		if len(names) > 1 {
			header += ": " + strings.ToLower(strings.TrimPrefix(name, "limitsOf"))
		}
		b.WriteString(" " + strings.Replace(header, "limits", "all", 1) + " |")
	}
	b.WriteString(" |\n" + strings.Repeat("|---", len(names)+3) + "|\n")
	var seen []string
	for _, name := range names {
		for _, k := range objects[name].keys {
			if k.help == "" || slices.Contains(seen, k.name) || len(names) > 1 && k.describe != nil {
				continue
			}
			seen = append(seen, k.name)
			fmt.Fprintf(&b, "| `%s` | %s |", k.name, strings.Join(kindsOf(t, schemas{}.value(k.value)), ", "))
			for _, of := range names {
				fmt.Fprintf(&b, " %s |", defaultText(objects[of].key(k.name)))
			}
			help := k.help
			if k.effect != "" {
				help += " *(" + string(k.effect) + ")*"
			}
			fmt.Fprintf(&b, " %s |\n", strings.ReplaceAll(linksIn(file, help), "|", `\|`))
		}
	}
	return b.String()
}

// defaultText returns the default of a key in the form for a table. k is nil if the object does not have the key.
func defaultText(k *key) string {
	if k == nil {
		return ""
	}
	switch is := k.byDefault().(type) {
	case nil:
		return ""
	case string:
		return "`" + is + "`"
	default:
		text, _ := json.Marshal(is)
		return string(text)
	}
}

// kindsOf returns words for the types of values that a schema accepts. It leaves out the shared definitions of values that turn
// a key off.
func kindsOf(t *testing.T, schema map[string]any) (kinds []string) {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type, Ref string
		Enum      []any
		Const     any
		AnyOf     []map[string]any
		Items     struct{ Type string }
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(text), `"$ref"`, `"Ref"`, 1)), &s); err != nil {
		t.Fatal(err)
	}
	switch of := strings.TrimPrefix(s.Ref, "#/$defs/"); {
	case s.AnyOf != nil:
		for _, one := range s.AnyOf {
			for _, kind := range kindsOf(t, one) {
				if !slices.Contains(kinds, kind) && (kind != "text" || len(kinds) == 0) { // "text" is left out after other types
					kinds = append(kinds, kind)
				}
			}
		}
	case of == "duration" || of == "timeout":
		return []string{"duration"}
	case of == "plainOff" || of == "off" || of == "disabled":
	case of != "" || s.Type == "object":
		return []string{"object"}
	case s.Enum != nil:
		for _, word := range s.Enum {
			kinds = append(kinds, fmt.Sprintf("`%v`", word))
		}
	case s.Type == "integer":
		return []string{"number"}
	case s.Type == "array" && s.Items.Type == "string":
		return []string{"list of texts"}
	case s.Type == "array":
		return []string{"list of objects"}
	case s.Type == "string":
		return []string{"text"}
	case s.Const == "off":
		return []string{"`off`"}
	case s.Type != "":
		return []string{s.Type}
	case len(schema) == 0:
		return []string{"any"}
	}
	return kinds
}

// linksIn returns a help text with its links, which are relative to the root of the repository, changed for the document file.
func linksIn(file, help string) string {
	folder, _, _ := strings.Cut(file, "/")
	return strings.ReplaceAll(strings.ReplaceAll(help, "]("+file+"#", "](#"), "]("+folder+"/", "](")
}
