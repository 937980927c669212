package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/arguments"
	"mcpx/internal/base/wire"
	"mcpx/internal/files"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// In the arguments of exec, a model may write a reference to an earlier result or a file in place of a value, see
// [arguments.Reference]. mcpx replaces the reference by the value before it checks the arguments. So the middleware chain, the
// user who confirms the call, and the audit trail get the arguments that the server gets.

// maxBrought limits the total size, in bytes, of the values that replace the references in one request. A reference in the
// arguments of several calls is counted once for each of these calls.
const maxBrought = 32 << 20

// bringer gets the values of the references in one request, from stored results and from files.
type bringer struct {
	e     run
	r     *Request
	ctx   context.Context
	times int // how many calls get the next value; the size of the value is counted once for each of them
	left  int // how many bytes of maxBrought are left
	// folders are the folders with files that the caller may use. foldersErr is the error if mcpx could not find out these
	// folders. The first reference to a file sets both fields.
	folders    files.Folders
	foldersErr error
	asked      bool
}

func (e run) bringer(ctx context.Context, r *Request) *bringer {
	return &bringer{e: e, r: r, ctx: ctx, times: 1, left: maxBrought}
}

// bring returns the value for a reference. If there is no such value, the error is an [arguments.ReferenceError].
func (b *bringer) bring(ref arguments.Reference) (value json.RawMessage, err error) {
	if ref.File != "" {
		value, err = b.file(ref.File)
	} else {
		value, err = b.e.pages(b.r).Value(b.ctx, ref.Result, ref.Select, ref.Text)
	}
	var none *results.ValueError
	var refused *files.Error
	switch {
	case errors.As(err, &none) && none.Member == "select":
		err = &arguments.ReferenceError{Reason: "select: " + none.Reason}
	case errors.As(err, &none):
		err = &arguments.ReferenceError{Reason: none.Reason}
	case errors.As(err, &refused):
		err = &arguments.ReferenceError{Reason: "$file: " + refused.Reason}
	}
	if err != nil {
		return nil, err
	}
	if b.left -= b.times * len(value); b.left < 0 {
		return nil, &arguments.ReferenceError{Reason: fmt.Sprintf("the references bring more than %d MB; use select, or make several requests", maxBrought>>20)}
	}
	return value, nil
}

func (b *bringer) file(path string) (json.RawMessage, error) {
	if !b.asked {
		b.folders, b.foldersErr = b.e.folders(b.ctx, b.r.Client)
		b.asked = true
	}
	if b.foldersErr != nil {
		return nil, b.foldersErr
	}
	text, err := b.folders.Read(path)
	if err != nil {
		return nil, err
	}
	return wire.AppendQuoted(nil, text), nil
}

// replaceReferences replaces the references in the arguments of a request that consists of one call of a tool with this schema.
// When a call starts again, the references are replaced already, and replaceReferences does nothing.
func (e run) replaceReferences(ctx context.Context, r *Request, schema json.RawMessage) (err error) {
	if !r.References {
		return nil
	}
	r.References = false
	if !arguments.Refers(r.Arguments) && !arguments.Refers(r.Beside.Arguments) {
		return nil
	}
	if err = e.bringer(ctx, r).replace(schema); err == nil {
		r.Event.ArgumentBytes = len(r.Arguments) + len(r.Beside.Arguments)
	}
	return err
}

// replace replaces the references in the fields Arguments and Beside of the request. If Beside has a member $result or $file,
// replace leaves Beside as it is, because the whole object would be taken for a reference.
func (b *bringer) replace(schema json.RawMessage) (err error) {
	r := b.r
	if r.Arguments, err = b.e.schemas.Replace(r.Arguments, schema, b.bring); err != nil {
		return err
	}
	if wire.Member(r.Beside.Arguments, "$result") == nil && wire.Member(r.Beside.Arguments, "$file") == nil {
		r.Beside.Arguments, err = b.e.schemas.Replace(r.Beside.Arguments, schema, b.bring)
	}
	return err
}

// bringEach sets the field Each of the request to the list that EachFrom refers to. References in this list are not replaced.
func (b *bringer) bringEach() error {
	whole := json.RawMessage(`{"each":` + string(b.r.EachFrom) + `}`) // so that a violation is at /each
	brought, err := b.e.schemas.Replace(whole, nil, b.bring)
	if err != nil {
		return err
	}
	each, violation := ReadEach(wire.Member(brought, "each"))
	if violation != "" {
		return arguments.Invalid(violation)
	}
	b.r.Each, b.r.EachFrom = each, nil
	return nil
}

// replaceInEach replaces the references in the arguments of a request that consists of several calls. A failed reference refuses
// the whole request.
func (e run) replaceInEach(ctx context.Context, r *Request) error {
	if !r.References {
		return nil
	}
	r.References = false
	if !slices.ContainsFunc(append(r.Each[:len(r.Each):len(r.Each)], r.EachFrom, r.Arguments, r.Beside.Arguments), arguments.Refers) {
		return nil
	}
	looked := *r
	looked.Event = &request.Event{}
	t, err := e.find(ctx, &looked)
	switch {
	case err != nil && r.EachFrom != nil:
		return err
	case err != nil:
		return nil // checkEach will find the same error for the first call, and return it
	}
	r.Catalogue = looked.Catalogue
	b := e.bringer(ctx, r)
	if r.EachFrom != nil {
		if err = b.bringEach(); err != nil {
			return err
		}
		b.times = len(r.Each)
		return b.replace(t.tool.InputSchema)
	}
	b.times = len(r.Each)
	if err = b.replace(t.tool.InputSchema); err != nil {
		return err
	}
	b.times = 1
	r.Each = slices.Clone(r.Each)
	bad := &arguments.ValidationError{}
	for i, own := range r.Each {
		var invalid *arguments.ValidationError
		replaced, err := b.e.schemas.Replace(own, t.tool.InputSchema, b.bring)
		switch {
		case errors.As(err, &invalid):
			within(bad, invalid, i)
		case err != nil:
			return err
		default:
			r.Each[i] = replaced
		}
	}
	if len(bad.Violations) > 0 {
		return bad
	}
	return nil
}
