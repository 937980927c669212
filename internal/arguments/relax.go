package arguments

import "github.com/santhosh-tekuri/jsonschema/v6"

// relax takes a property with a default off the required ones: several libraries
// list it there, and their servers do without it. It only ever lets more pass, as
// nothing under a negation is touched, and as oneOf becomes anyOf: two of its
// alternatives may fit now.
func relax(root *jsonschema.Schema) {
	all, exact := make(schemaSet), make(schemaSet)
	all.add(root)
	for s := range all {
		for _, negated := range negations(s) {
			exact.add(negated)
		}
	}
	relaxed := false
	for s := range all {
		if !exact[s] && len(s.Required) > 0 {
			required := s.Required[:0:0]
			for _, name := range s.Required {
				if p := s.Properties[name]; p == nil || !hasDefault(p) {
					required = append(required, name)
				}
			}
			relaxed = relaxed || len(required) < len(s.Required)
			s.Required = required
		}
	}
	for s := range all {
		if relaxed && !exact[s] && len(s.OneOf) > 0 {
			s.AnyOf, s.OneOf = s.OneOf, nil
		}
	}
}

func hasDefault(s *jsonschema.Schema) bool {
	return s.Default != nil || s.Ref != nil && s.Ref.Default != nil
}

// schemaSet is a set of schemas with all that is in them.
type schemaSet map[*jsonschema.Schema]bool

func (set schemaSet) add(s *jsonschema.Schema) {
	if s == nil || set[s] {
		return
	}
	set[s] = true
	for _, part := range append(parts(s), negations(s)...) {
		set.add(part)
	}
}

// negations are the parts of a schema that let less pass where they fit more.
func negations(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Not, s.If}
	if s.MaxContains != nil {
		all = append(all, s.Contains)
	}
	if len(s.AnyOf) > 0 {
		all = append(all, s.OneOf...) // it cannot become anyOf
	}
	return all
}

// parts are the others; some are nil.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	all := sameValue(s)
	all = append(all, s.Contains, s.Items2020, s.UnevaluatedItems, s.UnevaluatedProperties, s.RecursiveRef)
	for _, mixed := range []any{s.Items, s.AdditionalItems, s.AdditionalProperties} {
		if part, ok := mixed.(*jsonschema.Schema); ok {
			all = append(all, part)
		}
	}
	if list, ok := s.Items.([]*jsonschema.Schema); ok {
		all = append(all, list...)
	}
	all = append(all, s.PrefixItems...)
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	for _, part := range s.Properties {
		all = append(all, part)
	}
	for _, part := range s.PatternProperties {
		all = append(all, part)
	}
	return all
}

// sameValue are the parts of a schema that judge the same value; some are nil.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.Then, s.Else}
	all = append(all, s.AllOf...)
	all = append(all, s.AnyOf...)
	all = append(all, s.OneOf...)
	for _, part := range s.DependentSchemas {
		all = append(all, part)
	}
	for _, part := range s.Dependencies {
		if part, ok := part.(*jsonschema.Schema); ok {
			all = append(all, part)
		}
	}
	return all
}
