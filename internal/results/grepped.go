package results

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// grepped returns the parts of a result's texts that match a.Grep, or nil if all of them match. If the grep is refused or not
// started (ErrBusy), grepped returns a result that says so. The parameter out is the complete result. If some content is only in
// structuredContent, it is searched as a text.
func (a *Answer) grepped(ctx context.Context, out *Result, got upstreamResult, shown Shown) (*Result, error) {
	p := a.Pages
	p.unasked = true
	received, compact := out.Received, out.Sent
	if got.structured != nil && !saidIn(shown.Received, got.structured) {
		before, after := shown.withText(string(got.structured), a.Texts)
		received, compact = received+before, compact+after
	}
	shown = p.merged(shown)
	found, err := p.Grep(ctx, a.Grep, shown)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused), err == ErrBusy:
		failed := a.grepFailure(refused, p.KeepBlocks(rawBlocks(shown.Received, hasText))).Result(a.Format.Always())
		failed.Received, failed.LeftOut = received, received-failed.Sent
		return failed, nil
	case err != nil:
		return nil, err
	}
	matches := &Result{Meta: out.Meta, Received: received}
	texts, without, omitted, changed := 0, 0, 0, false
	for i, page := range found {
		b, content := shown.Received[i], shown.Content[i]
		if b.HasText {
			texts++
		}
		if page == nil {
			matches.Content = append(matches.Content, content)
			continue
		}
		changed = true
		if page.Text == "" {
			without++
			omitted += len(b.Text)
			continue
		}
		if a.Format.Always() {
			matches.Structured = page.Structured
		}
		matches.Content = append(matches.Content, b.WithText(page.Text))
		if line := a.pagingLine(page); line != "" {
			matches.Content = wire.AppendText(matches.Content, line)
		}
	}
	if !changed {
		return nil, nil
	}
	if texts > 1 {
		matches.Structured = nil
	}
	if without > 0 {
		matches.Content = wire.AppendText(matches.Content, p.matching(shown, texts, without, omitted))
	}
	a.bound(matches)
	matches.LeftOut = compact - matches.Sent
	return matches, nil
}

// matching returns a line that says how many text blocks match. without is the number of blocks that do not match, and omitted is
// their size in bytes. If omitted is large, matching keeps all blocks, and the line says how to read them.
func (p Pages) matching(shown Shown, texts, without, omitted int) string {
	line := fmt.Sprintf("%d of %d text blocks match", texts-without, texts)
	if omitted > aroundBytes {
		if handle := p.KeepBlocks(rawBlocks(shown.Received, hasText)); handle != "" {
			line += "; all: " + p.Call(ReadArguments{Handle: handle})
		}
	}
	return "[" + line + "]"
}

// withText adds a text to what is shown. It returns how many tokens the text has, and how many its compressed form has.
func (s *Shown) withText(text string, options compress.Options) (received, sent int) {
	block := wire.ReadBlock(wire.TextBlock(text))
	short := compress.Text(block.Text, options).Text
	s.Received = append(slices.Clip(s.Received), block)
	s.Content = append(slices.Clip(s.Content), block.WithText(short))
	s.Texts = append(s.Texts, short)
	return Roughly(block.Text), Roughly(short)
}

// bound is for a result that mcpx has put together: it cuts the texts to the limit, and counts their tokens.
func (a *Answer) bound(out *Result) {
	blocks := make([]wire.Block, len(out.Content))
	for i, raw := range out.Content {
		blocks[i] = wire.ReadBlock(raw)
	}
	shown := Shown{Received: blocks, Content: out.Content, Texts: textsOf(blocks), Verbatim: true}
	if p := a.Pages; !p.Fits(shown.Texts...) {
		out.Content, out.Sent = p.CutBlocks(shown)
	} else {
		out.Sent = Roughly(shown.Texts...)
	}
}

// grepFailure is the failure for a grep that could not search the result of a call. If refused is nil, the grep was not started
// because too many greps are running. The result of the call is kept under the handle, or is lost if the handle is empty.
func (a *Answer) grepFailure(refused *RefusedError, handle string) *Failure {
	f := Busy()
	if refused != nil {
		f = &Failure{Code: CodeSelect, Message: refused.Violation}
	}
	f.Text = f.Said() + f.kept(a.Pages, ReadArguments{Handle: handle})
	return f
}
