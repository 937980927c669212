package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"mcpx/internal/base/pattern"
)

// SchemaTitle is the title of the schema. mcpx recognizes its own schema files by this title.
const SchemaTitle = "The config of mcpx"

// schemas has the definitions ($defs) of objects in the JSON Schema, by their names.
type schemas map[string]map[string]any

// Schema returns the JSON Schema (draft 2020-12) of the config file. It accepts every file that [Parse] accepts, even with
// nulls, notes for human readers and ignored keys. It refuses wrong types, numbers out of range and unknown words, but not
// everything that [Parse] refuses, such as an invalid glob.
func Schema() []byte {
	all := schemas{
		"duration": jsonOf(`{"anyOf": [{"type": "number", "minimum": 0, "maximum": 31622400},
			{"type": "string", "pattern": "^[+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"}]}`),
		"timeout": jsonOf(`{"allOf": [{"$ref": "#/$defs/duration"}], "not": {"enum": [0, "0", "0s"]}}`),
		"off": jsonOf(`{"anyOf": [{"$ref": "#/$defs/plainOff"}, {"$ref": "#/$defs/disabled"},
			{"type": "object", "not": {"required": ["enabled"]}, "patternProperties": {"^(//|_|#|\\$schema$)": true}, "additionalProperties": {"$ref": "#/$defs/off"}}]}`),
		"disabled": jsonOf(`{"type": "object", "required": ["enabled"], "properties": {"enabled": {"$ref": "#/$defs/off"}}}`),
		"plainOff": jsonOf(`{"anyOf": [{"enum": [false, 0, null]}, {"type": "array", "maxItems": 0},
			{"type": "string", "pattern": "^\\s*([oO][fF][fF]|[nN][oO][nN][eE]|[fF][aA][lL][sS][eE])?\\s*$"}]}`),
	}
	root := all.object(newLoader("", Options{}).root())
	root["$schema"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", SchemaTitle, all
	root["allowComments"], root["allowTrailingCommas"] = true, true // keywords of VS Code
	root["anyOf"] = jsonOf(`{"anyOf": [{"required": ["mcpServers"]}, {"required": ["servers"]}, {"required": ["mcp_servers"]},
		{"required": ["context_servers"]}, {"required": ["mcp"]}]}`)["anyOf"]
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic(err) // cannot happen: root has only maps, lists, strings, numbers and booleans
	}
	return b.Bytes()
}

// jsonOf parses a JSON Schema that is written in the source code. It panics if this is not valid JSON.
func jsonOf(text string) (schema map[string]any) {
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		panic(err)
	}
	return schema
}

// object returns the schema of an object, and adds the definitions of all objects inside it to s.
func (s schemas) object(o object) map[string]any {
	properties := make(map[string]any)
	for _, k := range o.keys {
		properties[k.name] = s.key(k)
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if o.strict {
		schema["patternProperties"], schema["additionalProperties"] = notes, false
	}
	return schema
}

// notes is the patternProperties of an object that may have notes for human readers. The pattern matches the same keys as [isComment].
var notes = map[string]any{`^(//|_|#|\$schema$)`: true}

func (s schemas) key(k key) map[string]any {
	schema := s.value(k.value)
	if !k.noNull {
		schema = orNull(schema)
	}
	if k.help != "" {
		schema["description"] = links.ReplaceAllString(k.help, "$1")
	}
	if is := k.byDefault(); is != nil {
		schema["default"] = is
	}
	return schema
}

// links matches Markdown links in a help text. The first group is the text of the link.
var links = pattern.New(`\[([^\]]*)\]\([^)]*\)`)

// value returns the schema of a value. If null must be accepted too, the caller passes the schema to [orNull].
func (s schemas) value(v value) map[string]any {
	schema := map[string]any{}
	if v.describe != nil {
		o := v.describe()
		if s[o.name] == nil {
			s[o.name] = map[string]any{} // prevents endless recursion if the object contains itself
			s[o.name] = s.object(o)
		}
		schema["$ref"] = "#/$defs/" + o.name
	}
	switch {
	case v.schema != "":
		schema = jsonOf(v.schema)
	case v.words != nil:
		schema["enum"] = v.words
	}
	if v.maximum != 0 {
		schema["minimum"], schema["maximum"] = v.minimum, min(v.maximum, 1<<53)
	}
	if v.named {
		schema = map[string]any{"type": "object", "patternProperties": notes, "additionalProperties": orNull(schema)}
	}
	if v.off != "" {
		schema = map[string]any{"anyOf": []any{schema, map[string]any{"$ref": "#/$defs/" + v.off}}}
	}
	return schema
}

// orNull changes a schema so that it also accepts null, as [loader.members] does for nearly all keys.
func orNull(schema map[string]any) map[string]any {
	null := map[string]any{"type": "null"}
	if kind, ok := schema["type"].(string); ok {
		schema["type"] = []string{kind, "null"}
	} else if each, ok := schema["anyOf"].([]any); ok {
		schema["anyOf"] = append(each, null)
	} else if len(schema) > 0 {
		schema = map[string]any{"anyOf": []any{schema, null}}
	}
	return schema
}

// byDefault returns the default value. It returns nil if there is none that the schema may show, or if it is not a string,
// number or boolean.
func (v value) byDefault() any {
	if v.into == nil || v.derived {
		return nil
	}
	switch is := reflect.ValueOf(v.into).Elem(); is.Kind() {
	case reflect.Bool, reflect.Float64:
		return is.Interface()
	case reflect.String:
		if is.Len() > 0 {
			return is.String()
		}
	case reflect.Uint8: // the variable of [switched] has the position of a word, not the word
		return v.words[(int(is.Uint())+len(v.words)-1)%len(v.words)]
	case reflect.Int, reflect.Int64:
		if d, ok := is.Interface().(time.Duration); ok && (d > 0 || v.schema != moreThanZero) {
			return d.Seconds()
		} else if !ok && is.Int() >= v.minimum {
			return is.Int()
		}
	}
	return nil
}
