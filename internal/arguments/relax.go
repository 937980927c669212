package arguments

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// relax makes properties with a default optional, since several libraries list them as required although their servers do not need
// them. It removes each format, because what servers accept differs from what the RFC of a format says: zod declares
// z.string().time() as the format "time", and accepts only times without a zone. It allows null wherever doc, the decoded schema,
// has the keyword nullable: JSON Schema does not know this keyword of OpenAPI, but inspect shows it, and a null may be what the
// call is about, such as one that clears the milestone of an issue.
//
// The relaxed schema allows everything that the original allows. Therefore relax skips parts below keywords such as not. It turns a oneOf
// into anyOf if an alternative has a relaxed part, since now more than one alternative may fit.
func relax(root *jsonschema.Schema, doc any) {
	all, exact := make(schemaSet), make(schemaSet)
	all.add(root)
	for s := range all {
		for _, negated := range negations(s) {
			exact.add(negated)
		}
	}
	relaxed := make(schemaSet)
	var nullable []*jsonschema.Schema
	for s := range all {
		if !exact[s] && len(s.Required) > 0 {
			required := len(s.Required)
			s.Required = slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool {
				p := s.Properties[name]
				return p != nil && (p.Default != nil || p.Ref != nil && p.Ref.Default != nil)
			})
			if len(s.Required) < required {
				relaxed[s] = true
			}
		}
		if !exact[s] && s.Format != nil {
			s.Format, relaxed[s] = nil, true
		}
		if !exact[s] && isNullable(s, doc) {
			nullable, relaxed[s] = append(nullable, s), true
		}
	}
	all.spread(relaxed)
	for s := range all {
		if !exact[s] && slices.ContainsFunc(s.OneOf, func(part *jsonschema.Schema) bool { return relaxed[part] }) {
			s.AnyOf, s.OneOf = s.OneOf, nil
		}
	}
	for _, s := range nullable {
		allowNull(s)
	}
}

// isNullable reports whether the keyword nullable is true in the part of doc from which s was compiled.
func isNullable(s *jsonschema.Schema, doc any) bool {
	_, pointer, _ := strings.Cut(s.Location, "#")
	part, _ := resolve(doc, "#"+pointer)
	keywords, _ := part.(map[string]any)
	return keywords["nullable"] == true
}

// allowNull replaces s by an anyOf of what it was and null. References to s lead to the anyOf then.
func allowNull(s *jsonschema.Schema) {
	was, null := *s, new(jsonschema.Types)
	null.Add("null")
	*s = jsonschema.Schema{Default: s.Default, AnyOf: []*jsonschema.Schema{&was, {Types: null}}}
}

// schemaSet is a set of schemas and their subschemas.
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

// spread adds to some, a part of set, the schemas of set that have one of some as a part, directly or not.
func (set schemaSet) spread(some schemaSet) {
	above := make(map[*jsonschema.Schema][]*jsonschema.Schema)
	for s := range set {
		for _, part := range parts(s) {
			above[part] = append(above[part], s)
		}
	}
	for queue := slices.Collect(maps.Keys(some)); len(queue) > 0; {
		part := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, s := range above[part] {
			if !some[s] {
				some[s], queue = true, append(queue, s)
			}
		}
	}
}

// negations returns the subschemas of s that must not be relaxed, because s allows less if they allow more. The subschema of not is
// an example.
func negations(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Not, s.If}
	if s.MaxContains != nil {
		all = append(all, s.Contains)
	}
	if len(s.AnyOf) > 0 {
		all = append(all, s.OneOf...) // this oneOf cannot become anyOf, since s has an anyOf already
	}
	return all
}

// parts returns the subschemas of s that negations does not return; some are nil.
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
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	return slices.AppendSeq(all, maps.Values(s.PatternProperties))
}

// sameValue returns the subschemas that apply to the same value as s; some are nil.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.Ref, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	all = slices.AppendSeq(all, maps.Values(s.DependentSchemas))
	for _, part := range s.Dependencies {
		if part, ok := part.(*jsonschema.Schema); ok {
			all = append(all, part)
		}
	}
	return all
}
