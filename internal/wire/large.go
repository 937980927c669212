package wire

import (
	"bytes"
	"encoding/json"
)

// ID is the id of the message as written, as far as its edges show it; nil if
// not. Members of that name deeper down do not count: before the large member
// the object is whole up to there, behind it only flat members and the end may
// follow. request reports whether a method was seen, which is before the id or
// not at all where many write it.
func (e *TooLargeError) ID() (id json.RawMessage, request bool) {
	read := func(text []byte) error {
		return Fields(text, func(key string, value []byte) bool {
			switch key {
			case "id":
				id = value
			case "method":
				request = true
			}
			return true
		})
	}
	if _ = read(e.Head); id != nil {
		return id, request
	}
	at := bytes.LastIndex(e.Tail, []byte(`"id"`))
	if at < 0 {
		return nil, request
	}
	if read(append([]byte{'{'}, e.Tail[at:]...)) != nil {
		id = nil
	}
	return id, request
}
