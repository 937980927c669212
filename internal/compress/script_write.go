package compress

import (
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/tokens"
)

// scriptWriter writes a [script] as JavaScript.
type scriptWriter struct {
	*script
	uses   []int32          // how often each part is written; equal parts are counted at the index of the first of them
	object []int32          // the index of a part in the objects of its kind, plus 1; 0 for a part that no function makes
	done   map[int32]string // what is written for a part that repeats: the name of its const, or its text
	consts []string
	named  map[string]int
}

func newScriptWriter(s *script) *scriptWriter {
	w := &scriptWriter{script: s, uses: make([]int32, len(s.parts)), object: make([]int32, len(s.parts)),
		done: map[int32]string{}, named: map[string]int{}}
	for k := range s.kinds {
		if s.kinds[k].name != "" {
			for o, i := range s.kinds[k].objects {
				w.object[i] = int32(o) + 1
			}
		}
	}
	w.count(0)
	return w
}

// write writes the script. It returns false if the script has neither a function nor a const.
func (w *scriptWriter) write() (string, bool) {
	value := expression(w.value(make([]byte, 0, len(w.text)), 0))
	head, ok := w.head()
	return head + value, ok
}

// expression puts an object in parentheses, since JavaScript reads a statement that begins with a brace as a block.
func expression(value []byte) string {
	if value[0] == '{' {
		return "(" + string(value) + ")"
	}
	return string(value)
}

// head returns the lines at the beginning of the script: first a line for each function, and then a line for each const. It must be
// called after the method value, which makes the consts. It returns false if there is neither a function nor a const.
func (w *scriptWriter) head() (string, bool) {
	var out []byte
	for k := range w.kinds {
		if w.kinds[k].name != "" {
			out = append(w.function(out, &w.kinds[k]), '\n')
		}
	}
	for _, line := range w.consts {
		out = append(append(out, line...), '\n')
	}
	if len(out) == 0 {
		return "", false
	}
	out[len(out)-1] = ';' // otherwise JavaScript would read the next line as part of this statement
	return string(append(out, '\n')), true
}

// call says how part i is written. If the script makes the part by calling the function of a kind, call returns this kind, and the
// index of the object in kind.objects. If part i is written in another way, the kind is nil.
func (w *scriptWriter) call(i int32) (*kind, int) {
	at := w.parts[i].kind
	if at < 0 || w.kinds[at].name == "" {
		return nil, 0
	}
	o := w.object[w.parts[i].same]
	if o == 0 {
		return nil, 0
	}
	return &w.kinds[at], int(o) - 1
}

// count counts how often part i is written and, when it is counted for the first time, the parts within it. A part that is
// written more than once may become a const.
func (w *scriptWriter) count(i int32) {
	p := &w.parts[i]
	if w.uses[p.same]++; w.uses[p.same] > 1 {
		return
	}
	if k, o := w.call(i); k != nil {
		for _, at := range k.params[:w.called(k, o)] {
			if l := &k.leaves[at]; l.prefix == "" {
				w.count(l.column[o])
			}
		}
		return
	}
	for c := i + 1; c < p.next; c = w.parts[c].next {
		w.count(c)
	}
}

// value appends a part, or the name of a const for the part. It makes the const if the part repeats and a const saves tokens.
func (w *scriptWriter) value(out []byte, i int32) []byte {
	p := &w.parts[i]
	if w.uses[p.same] < 2 || p.end-p.start < minShared {
		return w.fresh(out, i)
	}
	text, ok := w.done[p.same]
	if !ok {
		text = string(w.fresh(nil, i))
		uses := int(w.uses[p.same])
		if (uses-1)*tokens.Estimate(text)-2*uses-constTokens > 0 {
			name := w.constName(i)
			w.consts = append(w.consts, "const "+name+"="+text)
			text = name
		}
		w.done[p.same] = text
	}
	return append(out, text...)
}

// constTokens is how many tokens a const is assumed to need in addition to its text and its uses.
const constTokens = 8

// fresh writes out a part, without a const for the part itself.
func (w *scriptWriter) fresh(out []byte, i int32) []byte {
	p := &w.parts[i]
	if k, o := w.call(i); k != nil {
		return w.callOf(out, k, o)
	}
	switch w.text[p.start] {
	case '{':
		out = append(out, '{')
		for c := i + 1; c < p.next; c = w.parts[c].next {
			if c > i+1 {
				out = append(out, ',')
			}
			out = w.value(append(appendKey(out, w.key(c)), ':'), c)
		}
		return append(out, '}')
	case '[':
		out = append(out, '[')
		for c := i + 1; c < p.next; c = w.parts[c].next {
			if c > i+1 {
				out = append(out, ',')
			}
			out = w.value(out, c)
		}
		return append(out, ']')
	}
	return append(out, w.str(i)...)
}

// callOf appends the call that makes object o of a kind.
func (w *scriptWriter) callOf(out []byte, k *kind, o int) []byte {
	out = append(append(out, k.name...), '(')
	for n, at := range k.params[:w.called(k, o)] {
		if n > 0 {
			out = append(out, ',')
		}
		l := &k.leaves[at]
		if l.prefix == "" {
			out = w.value(out, l.column[o])
			continue
		}
		text := w.str(l.column[o])
		out = append(out, '"')
		out = append(out, text[1+len(l.prefix):len(text)-1-len(l.suffix)]...)
		out = append(out, '"')
	}
	return append(out, ')')
}

// function appends the function of a kind.
func (w *scriptWriter) function(out []byte, k *kind) []byte {
	out = append(append(append(out, "const "...), k.name...), "=("...)
	for n, at := range k.params {
		if n > 0 {
			out = append(out, ',')
		}
		l := &k.leaves[at]
		out = append(out, l.name...)
		if l.fallback != "" {
			out = w.literal(append(out, '='), l.fallbackPart(w.script))
		}
	}
	out = w.body(append(out, ")=>("...), k, k.members)
	return append(out, ')')
}

// fallbackPart returns a part whose text is the default value of the leaf.
func (l *leaf) fallbackPart(s *script) int32 {
	at := slices.IndexFunc(l.column, func(i int32) bool { return s.str(i) == l.fallback })
	return l.column[at]
}

// body appends an object literal with these members: the object that the function of kind k returns, or an object within that
// object.
func (w *scriptWriter) body(out []byte, k *kind, members []member) []byte {
	out = append(out, '{')
	for n, m := range members {
		if n > 0 {
			out = append(out, ',')
		}
		if m.leaf >= 0 {
			l := &k.leaves[m.leaf]
			if !l.derived && l.prefix == "" && m.key[1:len(m.key)-1] == l.name {
				out = append(out, l.name...)
				continue
			}
			out = w.leaf(append(appendKey(out, m.key), ':'), k, l)
			continue
		}
		out = append(appendKey(out, m.key), ':')
		if m.constant >= 0 {
			out = w.literal(out, m.constant)
		} else {
			out = w.body(out, k, m.inner)
		}
	}
	return append(out, '}')
}

// leaf appends the expression for the value of a leaf.
func (w *scriptWriter) leaf(out []byte, k *kind, l *leaf) []byte {
	if l.prefix != "" {
		out = append(append(append(out, '`'), l.prefix...), "${"...)
		return append(append(append(append(out, l.name...), '}'), l.suffix...), '`')
	}
	if !l.derived {
		return append(out, l.name...)
	}
	if len(l.template) == 1 && w.alike(k.leaves[l.template[0].leaf].column, l.column) {
		return append(out, k.leaves[l.template[0].leaf].name...)
	}
	out = append(out, '`')
	for _, p := range l.template {
		if p.leaf < 0 {
			out = append(out, p.literal...)
		} else {
			out = append(append(append(out, "${"...), k.leaves[p.leaf].name...), '}')
		}
	}
	return append(out, '`')
}

// literal appends a part as plain JSON, with keys as in JavaScript but without calls and names of consts. It is for the inside of
// functions, where a parameter may have the name of a const.
func (w *scriptWriter) literal(out []byte, i int32) []byte {
	p := &w.parts[i]
	open := w.text[p.start]
	if open != '{' && open != '[' {
		return append(out, w.str(i)...)
	}
	out = append(out, open)
	for c := i + 1; c < p.next; c = w.parts[c].next {
		if c > i+1 {
			out = append(out, ',')
		}
		if open == '{' {
			out = append(appendKey(out, w.key(c)), ':')
		}
		out = w.literal(out, c)
	}
	return append(out, open+2)
}

// appendKey appends a key, without its quotes if it is an identifier.
func appendKey(out []byte, quoted string) []byte {
	if inside := quoted[1 : len(quoted)-1]; identifier(inside) {
		return append(out, inside...)
	}
	return append(out, quoted...)
}

// identifier reports whether a text is an ASCII identifier.
func identifier(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !letter(c) && c != '_' && c != '$' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// constName makes the name of a const: a word and a number, so that no two consts have the same name. The word is from the key of
// the part or, if the part has no key, from the key of the nearest container around it that has one. If there is no such key, or no
// word in it, the word is r.
func (w *scriptWriter) constName(i int32) string {
	name := "r"
	if key := w.nearestKey(i); key != "" {
		end := 0
		for end < len(key) && end < 8 && letter(key[end]) && (end == 0 || key[end] >= 'a') {
			end++
		}
		if end > 0 {
			name = strings.ToLower(key[:end])
		}
	}
	w.named[name]++
	return name + strconv.Itoa(w.named[name])
}
