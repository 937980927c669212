package compress

// Encode is the TOON text (version 4, comma delimiter, indent 2) of a JSON value, whatever it costs. It
// reports false if raw is not a JSON array or object, or TOON cannot hold it faithfully.
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
