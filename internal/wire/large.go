package wire

import (
	"bytes"
	"encoding/json"
)

// ID is the id of the message as written, nil if its first and last bytes do not
// show it. Members of that name deeper down do not count: in the first bytes the
// members of the message itself are read, and in the last ones only flat members may
// stand between the id and the end. request reports whether the first bytes have a
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
