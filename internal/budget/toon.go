package budget

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	toon "github.com/toon-format/toon-go"
)

// maxTOONDepth is the maximum depth of nesting in JSON that plainTOON converts. toon-go indents every line by its depth, so deeper
// JSON could become very long.
const maxTOONDepth = 64

// plainTOON returns JSON text as the library toon-go writes it, to compare with what mcpx sends. ok is
// false if text is not a JSON array or object, or toon-go cannot write it.
func plainTOON(text string) (out string, ok bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value, err := toonValue(decoder, 0)
	if _, end := decoder.Token(); err != nil || end != io.EOF {
		return "", false
	}
	switch value.(type) {
	case []any, toon.Object:
		out, err = toon.MarshalString(value)
		return out, err == nil
	}
	return "", false
}

// toonValue decodes one value and keeps the order of its members.
func toonValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	delim, container := token.(json.Delim)
	if err != nil || !container {
		return token, err
	}
	if depth++; depth > maxTOONDepth {
		return nil, errors.New("nested too deeply")
	}
	items, object := []any{}, toon.Object{}
	for d.More() {
		key := ""
		if delim == '{' {
			if token, err = d.Token(); err != nil {
				return nil, err
			}
			key, _ = token.(string) // the decoder accepts nothing else
		}
		value, err := toonValue(d, depth)
		if err != nil {
			return nil, err
		}
		items, object.Fields = append(items, value), append(object.Fields, toon.Field{Key: key, Value: value})
	}
	if _, err = d.Token(); err != nil {
		return nil, err
	}
	if delim == '{' {
		return object, nil
	}
	return items, nil
}
