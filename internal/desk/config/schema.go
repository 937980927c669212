package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"mcpx/internal/base/pattern"
)

// SchemaTitle is the title of the schema, by which mcpx recognizes its own schema files.
const SchemaTitle = "The config of mcpx"

// schemas collects the definitions of objects, by their names.
type schemas map[string]map[string]any

// Schema is the JSON Schema (draft 2020-12) of the file. It accepts all that the reader accepts, including nulls, notes
// and ignored keys. It refuses wrong types, bounds and words, but not everything that the reader refuses, such as a
// bad pattern.
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
	root["allowComments"], root["allowTrailingCommas"] = true, true // VS Code
	root["anyOf"] = jsonOf(`{"anyOf": [{"required": ["mcpServers"]}, {"required": ["servers"]}, {"required": ["mcp_servers"]},
		{"required": ["context_servers"]}, {"required": ["mcp"]}]}`)["anyOf"]
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic(err) // maps, lists, texts and numbers
	}
	return b.Bytes()
}

// jsonOf parses a schema in the source.
func jsonOf(text string) (schema map[string]any) {
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		panic(err)
	}
	return schema
}

// object is the schema of an object. It adds definitions for the objects in it.
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

// notes are the keys that [isComment] knows.
var notes = map[string]any{`^(//|_|#|\$schema$)`: true}

func (s schemas) key(k key) map[string]any {
	schema := orNull(s.value(k.value))
	if k.help != "" {
		schema["description"] = links.ReplaceAllString(k.help, "$1")
	}
	if is := k.byDefault(); is != nil {
		schema["default"] = is
	}
	return schema
}

// links finds the Markdown links in a help text.
var links = pattern.New(`\[([^\]]*)\]\([^)]*\)`)

// value is the schema of a value, without null.
func (s schemas) value(v value) map[string]any {
	schema := map[string]any{}
	if v.of != nil {
		o := v.of()
		if s[o.name] == nil {
			s[o.name] = map[string]any{} // an object may have itself in it
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
	if v.most != 0 {
		schema["minimum"], schema["maximum"] = v.least, min(v.most, 1<<53)
	}
	if v.named {
		schema = map[string]any{"type": "object", "patternProperties": notes, "additionalProperties": orNull(schema)}
	}
	if v.off != "" {
		schema = map[string]any{"anyOf": []any{schema, map[string]any{"$ref": "#/$defs/" + v.off}}}
	}
	return schema
}

// orNull makes a schema accept null too, as the reader does under any key.
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

// byDefault is the default value; nil if there is none, or it is not a text, number or boolean.
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
	case reflect.Uint8: // see switched
		return v.words[(int(is.Uint())+len(v.words)-1)%len(v.words)]
	case reflect.Int, reflect.Int64:
		if d, ok := is.Interface().(time.Duration); ok && (d > 0 || v.schema != moreThanZero) {
			return d.Seconds()
		} else if !ok && is.Int() >= v.least {
			return is.Int()
		}
	}
	return nil
}
