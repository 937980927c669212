package jq

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"mcpx/internal/base/helper"
)

// maxCompiled is how many compiled filters a helper keeps at most.
const maxCompiled = 64

// role is the name under which this executable, started as a helper process, runs filters.
const role = "jq"

func init() {
	helper.Play(role, func() {
		helper.Serve(func(l helper.Limits) helper.Worker { return &evaluator{maxOutput: l.Frame - notOutput} })
	})
}

// evaluator runs filters, in a helper. One goroutine uses it.
type evaluator struct {
	maxOutput int64
	compiled  []compiled // least recently used first
}

type compiled struct {
	filter string
	code   *gojq.Code
}

// Forget drops the compiled filters, which also hold compiled regular expressions.
func (e *evaluator) Forget() { e.compiled = nil }

// Do runs the filter of a job on its input.
func (e *evaluator) Do(job *helper.Job) []byte {
	size, body := binary.BigEndian.Uint64(job.Body), job.Body[sizeBytes:]
	return e.answer(string(body[:size]), body[size:])
}

// answer runs a filter on a JSON value. It returns every error in the answer, even after a panic.
func (e *evaluator) answer(filter string, input []byte) (a answer) {
	defer func() {
		// A panic is a bug of gojq. The compiled filters may be in a broken state then, so they are dropped.
		if fault := recover(); fault != nil {
			e.Forget()
			a = message(kindFilter, fmt.Sprintf("the filter broke the interpreter: %v", fault))
		}
	}()
	code, err := e.compile(filter)
	if err != nil {
		return message(kindFilter, describe(filter, err))
	}
	value, err := decode(input)
	if err != nil {
		return message(kindInput, err.Error())
	}
	out := &encoder{buf: []byte{kindOutputs}, max: e.maxOutput}
	for outputs := code.Run(value); ; {
		v, ok := outputs.Next()
		if !ok {
			return out.buf
		}
		if err, ok := v.(error); ok {
			return message(kindFilter, describe(filter, err))
		}
		if err := out.output(v); errors.Is(err, errOutput) {
			return answer{kindOutput}
		} else if err != nil {
			return message(kindFilter, err.Error())
		}
	}
}

// compile returns the code of a filter, from the cache if possible.
func (e *evaluator) compile(filter string) (*gojq.Code, error) {
	i := slices.IndexFunc(e.compiled, func(c compiled) bool { return c.filter == filter })
	if i >= 0 {
		c := e.compiled[i]
		e.compiled = append(slices.Delete(e.compiled, i, i+1), c)
		return c.code, nil
	}
	query, err := gojq.Parse(filter)
	if err != nil {
		return nil, err
	}
	// Without options, a filter can read no environment variables, no further input and no modules.
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	if len(e.compiled) == maxCompiled {
		e.compiled = slices.Delete(e.compiled, 0, 1)
	}
	e.compiled = append(e.compiled, compiled{filter, code})
	return code, nil
}

// decode reads one JSON value. Numbers stay as they are written until the filter calculates with them.
func decode(input []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the value at byte %d", d.InputOffset())
	}
	return v, nil
}

// describe returns the text for an error of a filter, for the model that wrote the filter.
func describe(filter string, err error) string {
	if parse, ok := errors.AsType[*gojq.ParseError](err); ok {
		return describeParse(filter, parse)
	}
	if _, ok := errors.AsType[*gojq.HaltError](err); ok {
		return "halt and halt_error are not available"
	}
	return strings.ToValidUTF8(err.Error(), "\uFFFD")
}

// describeParse returns the text for a syntax error. It has the position of the wrong token and the text before the token, because
// models find a place by its text more easily than by its number.
func describeParse(filter string, err *gojq.ParseError) string {
	const most = 24
	end := min(max(err.Offset, 0), len(filter)) // the offset is after the wrong token
	before := []rune(strings.TrimSuffix(filter[:end], err.Token))
	text := fmt.Sprintf("%v at character %d of the filter", err, len(before)+1)
	if len(before) == 0 {
		return text
	}
	return fmt.Sprintf("%s, after `%s`", text, string(before[max(0, len(before)-most):]))
}

// message returns an answer with the text of an error, on one line of at most maxMessage bytes.
func message(kind byte, text string) answer {
	return append(answer{kind}, oneLine(text)...)
}

// oneLine returns a text on one line, cut to maxMessage bytes.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
	}
	return text
}

// errOutput means that there is more output than allowed.
var errOutput = errors.New("too much output")

// maxDepth bounds the nesting of an output. Deeper JSON could not be read by encoding/json.
const maxDepth = 10000

// encoder writes outputs as JSON, each after its size, and stops at a limit. gojq.Marshal has no limit, and
// `reduce range(40) as $i (1; [.,.])` is a small value with a terabyte of JSON.
type encoder struct {
	buf []byte
	max int64
}

func (e *encoder) output(v any) error {
	start := len(e.buf)
	e.buf = append(e.buf, make([]byte, sizeBytes)...)
	if err := e.value(v, 0); err != nil {
		return err
	}
	binary.BigEndian.PutUint64(e.buf[start:], uint64(len(e.buf)-start-sizeBytes))
	return e.check(0)
}

// check returns errOutput if n more bytes would exceed the limit. The first byte of buf is not counted, since it is the kind of the
// answer.
func (e *encoder) check(n int) error {
	if int64(len(e.buf)-1+n) > e.max {
		return errOutput
	}
	return nil
}

func (e *encoder) value(v any, depth int) (err error) {
	if depth > maxDepth {
		return fmt.Errorf("an output is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case json.Number:
		e.buf = append(e.buf, v...)
	case string:
		return e.text(v)
	case []any:
		return e.array(v, depth)
	case map[string]any:
		return e.object(v, depth)
	default: // the other numbers and the booleans. The limits of the helper bound the digits of a *big.Int
		b, err := gojq.Marshal(v)
		if err != nil {
			return err
		}
		e.buf = append(e.buf, b...)
	}
	return e.check(0)
}

func (e *encoder) array(v []any, depth int) error {
	e.buf = append(e.buf, '[')
	for i, item := range v {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.value(item, depth+1); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, ']')
	return e.check(0)
}

func (e *encoder) object(v map[string]any, depth int) error {
	e.buf = append(e.buf, '{')
	for i, key := range slices.Sorted(maps.Keys(v)) {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.text(key); err != nil {
			return err
		}
		e.buf = append(e.buf, ':')
		if err := e.value(v[key], depth+1); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	return e.check(0)
}

// text writes a string. Most strings need no escape, and are copied.
func (e *encoder) text(s string) error {
	if err := e.check(len(s) + 2); err != nil {
		return err
	}
	if plain(s) {
		e.buf = append(append(append(e.buf, '"'), s...), '"')
		return nil
	}
	b, err := gojq.Marshal(s)
	if err != nil {
		return err
	}
	e.buf = append(e.buf, b...)
	return e.check(0)
}

// plain reports whether a string needs no escape in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}
