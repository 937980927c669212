package compress

import "strings"

// Shared writes several values together as JavaScript. The result head has the functions and consts for everything that repeats.
// bodies[i] is an expression that uses them and evaluates to exactly values[i]. Each of values is an object or array as compact
// JSON, and texts[i] is the form in which values[i] would be written alone. ok is false if the values cannot be written in this way
// (see shared), or if that does not save enough: head and bodies must have fewer tokens than texts, at most shareJS percent of the
// tokens of values, and at most maxScriptShare percent of their bytes.
func Shared(values, texts []string) (head string, bodies []string, ok bool) {
	if head, bodies, ok = shared(values); !ok {
		return "", nil, false
	}
	n, size := weighAll(bodies)+Weigh(head), sizeOf(bodies)+len(head)
	if size*100 > sizeOf(values)*maxScriptShare || n*100 > weighAll(values)*shareJS || n >= weighAll(texts) {
		return "", nil, false
	}
	return head, bodies, true
}

// shared writes the JavaScript for [Shared], even if it saves no tokens. ok is false if there are fewer than two values, if
// they are too long, if readScripted refuses them, or if nothing is worth a function or const.
func shared(values []string) (head string, bodies []string, ok bool) {
	all := "[" + strings.Join(values, ",") + "]"
	if len(values) < 2 || len(all) > maxScript {
		return "", nil, false
	}
	s, ok := readScripted(all)
	if !ok {
		return "", nil, false
	}
	w := newScriptWriter(s)
	for i := int32(1); i < int32(len(s.parts)); i = s.parts[i].next {
		bodies = append(bodies, expression(w.value(nil, i)))
	}
	head, ok = w.head()
	return strings.TrimSuffix(head, "\n"), bodies, ok
}

func sizeOf(texts []string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}

func weighAll(texts []string) (n int) {
	for _, text := range texts {
		n += Weigh(text)
	}
	return n
}
