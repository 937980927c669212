package wire

import (
	"bytes"
	"encoding/json"
)

// ID is the id of the message as written, or nil if it is in neither Head nor Tail. It
// ignores ids in nested objects: from Head it reads only members of the message itself,
// and in Tail no nested value may follow the id. request reports whether Head has a
// method.
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
