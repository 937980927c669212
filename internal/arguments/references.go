package arguments

import (
	"bytes"
	"encoding/json"
	"strconv"

	"mcpx/internal/base/wire"
)

// Reference is an object that a model wrote in place of a value: {"$result": HANDLE}, {"$result": HANDLE, "select": FILTER} or
// {"$file": PATH}.
type Reference struct {
	Result, Select, File string
	// Text means that the schema allows a string here, but neither an object nor an array.
	Text bool
}

// Refers reports quickly whether there may be references in a value. If it returns false, there certainly are none.
func Refers(value json.RawMessage) bool {
	return bytes.Contains(value, []byte(`"$`)) || bytes.Contains(value, []byte(`"\u0024`))
}

// Replace returns the arguments of a call in which each reference has been replaced by the value that the function bring
// returns for it. References within such a value are not replaced, nor are references in strings. Arguments that are not an
// object, but a string that contains one, have no references. If the arguments as a whole are a reference, its value must be an
// object.
//
// An object is no reference if the schema declares properties with the names of its members. If a model wants to send such an
// object itself, and the schema does not declare its members, it can send the object as a string, which Read turns into the
// object.
//
// If bring returns a [*ReferenceError], Replace returns a [*ValidationError] with the path of the reference. Any other error of
// bring is returned unchanged.
func (s *Schemas) Replace(object, schema json.RawMessage, bring func(Reference) (json.RawMessage, error)) (json.RawMessage, error) {
	object = bytes.TrimSpace(object)
	if len(object) == 0 || object[0] != '{' || !Refers(object) || !json.Valid(object) {
		return object, nil // Read says what is wrong with invalid JSON
	}
	r := &replacer{bring: bring, left: maxReads*len(object) + 1<<20}
	out, err := r.value(object, s.compiled(schema).schema, "", 0)
	if err == nil && out[0] != '{' {
		err = Invalid("/: what is referred to is no object")
	}
	return out, err
}

// ReferenceError says why there is no value for a reference.
type ReferenceError struct{ Reason string }

func (e *ReferenceError) Error() string { return e.Reason }

// replacer is one run of Replace.
type replacer struct {
	bring func(Reference) (json.RawMessage, error)
	reads repairer
	left  int // how many bytes may still be read: each object and array reads all that is inside, down to the references
}

// maxReads is how often the bytes of all arguments may be read. Another 1 MiB may be read in any case, which is enough for small ones.
const maxReads = 16

func (r *replacer) value(value json.RawMessage, s *schema, path string, depth int) (json.RawMessage, error) {
	if r.left -= len(value); r.left < 0 {
		return nil, Invalid("/: there are references inside too many objects and arrays; " +
			"use fewer levels, or send the large values in another call")
	}
	switch {
	case depth > maxDepth || !Refers(value):
		return value, nil
	case value[0] == '{':
		return r.object(value, s, path, depth)
	case value[0] == '[':
		return r.array(value, s, path, depth)
	}
	return value, nil
}

func (r *replacer) object(object json.RawMessage, s *schema, path string, depth int) (json.RawMessage, error) {
	properties := r.reads.properties(s, 0)
	if reference, found, fault := readReference(object, properties); found || fault != "" {
		var value json.RawMessage
		var err error
		if fault == "" {
			kinds := r.reads.kinds(s, 0)
			reference.Text = kinds&kindString != 0 && kinds&(kindObject|kindArray) == 0
			value, err = r.bring(reference)
		}
		if own, ok := err.(*ReferenceError); ok {
			fault = own.Reason
		}
		if fault != "" {
			invalid := Invalid(pointerOr(path) + ": " + fault)
			invalid.Reference = true
			return nil, invalid
		}
		return value, err
	}
	out, failed := []byte{'{'}, error(nil)
	err := wire.Members(object, func(name string, written, value []byte) bool {
		var replaced json.RawMessage
		if replaced, failed = r.value(value, properties[name], path+"/"+pointerEscapes.Replace(name), depth+1); failed == nil {
			out = wire.AppendMember(out, written, replaced)
		}
		return failed == nil
	})
	if err != nil && failed == nil {
		failed = Invalid("/: arguments is not valid JSON")
	}
	return append(out, '}'), failed
}

func (r *replacer) array(array json.RawMessage, s *schema, path string, depth int) (json.RawMessage, error) {
	items := r.reads.items(s, 0)
	out, failed, i := []byte{'['}, error(nil), 0
	err := wire.Elements(array, func(value []byte) bool {
		if i > 0 {
			out = append(out, ',')
		}
		var replaced json.RawMessage
		replaced, failed = r.value(value, items, path+"/"+strconv.Itoa(i), depth+1)
		out = append(out, replaced...)
		i++
		return failed == nil
	})
	if err != nil && failed == nil {
		failed = Invalid("/: arguments is not valid JSON")
	}
	return append(out, ']'), failed
}

func pointerOr(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// readReference reads an object as a reference. found is false if the object is no reference: it has other members than a
// [Reference], or the schema declares all of its members. fault says what is wrong with a reference, and is empty if the
// reference is valid.
func readReference(object json.RawMessage, properties map[string]*schema) (ref Reference, found bool, fault string) {
	given := map[string]int{}
	others, declared := false, true
	_ = wire.Fields(object, func(name string, value []byte) bool { // cannot fail, since the arguments were read before
		given[name]++
		_, known := properties[name]
		declared = declared && known
		into := map[string]*string{"$result": &ref.Result, "$file": &ref.File, "select": &ref.Select}[name]
		if into == nil {
			others = true
			return false
		}
		text, ok := wire.Text(value)
		if !ok {
			fault = name + " must be a string"
		}
		*into = text
		return true
	})
	result, file, filter := given["$result"], given["$file"], given["select"]
	switch {
	case others || declared || result > 0 && file > 0 || result == 0 && (file == 0 || filter > 0):
		return Reference{}, false, ""
	case fault != "":
	case result > 1 || file > 1 || filter > 1:
		fault = "has a member twice"
	case result > 0 && ref.Result == "" || file > 0 && ref.File == "":
		fault = "is empty"
	}
	return ref, true, fault
}
