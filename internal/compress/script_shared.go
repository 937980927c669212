package compress

import "strings"

// Shared writes several values together as JavaScript. What repeats in any of them is said once, in head. bodies[i] is an
// expression that uses head; head and bodies[i] together evaluate to exactly values[i]. values are compact JSON, each an object
// or array, and texts are their other short forms. ok is false unless Shared needs fewer tokens than texts and saves as much of
// the JSON as JavaScript must.
func Shared(values, texts []string) (head string, bodies []string, ok bool) {
	if head, bodies, ok = shared(values); !ok {
		return "", nil, false
	}
	n, size := weighAll(bodies)+Weigh(head), sizeOf(bodies)+len(head)
	if size*100 > sizeOf(values)*mostScript || n*100 > weighAll(values)*shareJS || n >= weighAll(texts) {
		return "", nil, false
	}
	return head, bodies, true
}

// shared does what [Shared] does, however few tokens it saves.
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
