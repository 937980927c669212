package request

import "testing"

func TestOriginated(t *testing.T) {
	for params, want := range map[string]string{
		``:                                 `{"_meta":{"mcpx/origin":"a \"b\""}}`,
		`{}`:                               `{"_meta":{"mcpx/origin":"a \"b\""}}`,
		` {"n":9007199254740993,"x":1.10}`: `{"n":9007199254740993,"x":1.10,"_meta":{"mcpx/origin":"a \"b\""}}`,
		`{"_meta":{"x/y":1},"z":2}`:        `{"z":2,"_meta":{"x/y":1,"mcpx/origin":"a \"b\""}}`,
		// A member mcpx/origin that the server has written is replaced, however often it occurs.
		`{"_meta":{"mcpx/origin":"another","x":1}}`:                                    `{"_meta":{"x":1,"mcpx/origin":"a \"b\""}}`,
		`{"_meta":{"mcpx\/origin":"another"},"_meta":{"mcpx/origin":"another","y":1}}`: `{"_meta":{"mcpx/origin":"a \"b\""}}`,
		`{"_meta":"mcpx/origin"}`:                                                      `{"_meta":{"mcpx/origin":"a \"b\""}}`,
		`[1,2]`:                                                                        `[1,2]`,
		`7`:                                                                            `7`,
	} {
		if got := string(Originated(`a "b"`, []byte(params))); got != want {
			t.Errorf("%s: got %s, want %s", params, got, want)
		}
	}
	// If two instances of mcpx pass a notification on, the outer one replaces the origin that the inner one has
	// set.
	if got := string(Originated("outer", Originated("inner", nil))); got != `{"_meta":{"mcpx/origin":"outer"}}` {
		t.Errorf("got %s", got)
	}
}
