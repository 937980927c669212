package results

import (
	"strings"

	"mcpx/internal/arguments"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// Annotate tells the client how mcpx interpreted the arguments. The member _meta of the result lists the arguments that mcpx
// converted or left out. Two other things are told to the model, each in a text block: mcpx took the arguments out of an object
// that was needlessly put around them, or the tool does not declare some arguments, and may have ignored them.
func (r *Result) Annotate(tool string, notes arguments.Notes) {
	if len(notes.Converted)+len(notes.LeftOut) > 0 {
		r.Meta = wire.WithMember(r.Meta, "mcpx/arguments", wire.Encode(struct {
			Converted []string `json:"converted,omitempty"`
			LeftOut   []string `json:"left_out,omitempty"`
		}{notes.Converted, notes.LeftOut}))
	}
	if notes.Unwrapped != "" {
		text := "mcpx: took the arguments out of " + notes.Unwrapped + "; they need no such wrapper"
		r.Content = wire.AppendText(r.Content, text)
		r.Sent += Roughly(text)
	}
	if len(notes.Unknown) == 0 {
		return
	}
	unknown := make([]string, len(notes.Unknown))
	for i, u := range notes.Unknown {
		unknown[i] = u.String()
	}
	text := "mcpx: " + sanitize.Line(tool, 60) + " declares " + strings.Join(unknown, "; ")
	r.Content = wire.AppendText(r.Content, text)
	r.Sent += Roughly(text)
}
