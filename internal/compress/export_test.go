package compress

// Encode converts a JSON value to TOON (version 4, comma as delimiter, indent 2), even if that is longer. ok is false if raw is
// not a JSON array or object, or if TOON cannot represent it exactly.
func Encode(raw []byte) (text string, ok bool) {
	doc, compact, _ := read(string(raw), true)
	if doc == nil || compact[0] != '{' && compact[0] != '[' {
		return "", false
	}
	if _, ok := doc.plan(); !ok {
		return "", false
	}
	return doc.encode(len(compact), 0)
}
