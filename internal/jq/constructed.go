package jq

import (
	"reflect"
	"strings"

	"github.com/itchyny/gojq"
)

// Constructed returns the keys of each object that a filter constructs, in the filter's order. For {id, owner: {name}} it returns
// two lists: id and owner, and then name. Computed keys are left out. For an invalid filter it returns nil.
func Constructed(filter string) (objects [][]string) {
	if checkLength(filter) != nil {
		return nil
	}
	query, err := gojq.Parse(filter)
	if err != nil {
		return nil
	}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if o, ok := v.Interface().(*gojq.Object); ok && o != nil {
				objects = append(objects, keysOf(o))
			}
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(query))
	return objects
}

func keysOf(o *gojq.Object) (keys []string) {
	for _, m := range o.KeyVals {
		switch {
		case m.KeyString != nil && m.KeyString.Queries == nil:
			keys = append(keys, m.KeyString.Str)
		case m.Key != "":
			keys = append(keys, strings.TrimPrefix(m.Key, "$"))
		}
	}
	return keys
}
