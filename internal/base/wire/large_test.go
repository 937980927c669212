package wire

import "testing"

func TestTooLargeError_ID(t *testing.T) {
	tests := []struct {
		name, head, tail, id string
		request              bool
	}{
		{"first", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"aaa`, `aaa"}}`, "7", true},
		{"last", `{"method":"tools/call","params":{"x":"aaa`, `aaa"},"jsonrpc":"2.0","id":"b"}`, `"b"`, true},
		{"response", `{"jsonrpc":"2.0","result":{"x":"aaa`, `aaa"},"id":3}` + "\n", "3", false},
		{"only deeper down", `{"jsonrpc":"2.0","result":{"x":"aaa`, `aaa","id":4,"y":{}}}`, "", false},
		{"in a text", `{"jsonrpc":"2.0","result":{"x":"aaa`, `aaa \"id\":5}"}}`, "", false},
		{"none", `{"method":"x","params":"aaa`, `aaa"}`, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, request := (&TooLargeError{Head: []byte(test.head), Tail: []byte(test.tail)}).ID()
			if string(id) != test.id || request != test.request {
				t.Errorf("got %s, %v; want %s, %v", id, request, test.id, test.request)
			}
		})
	}
}
