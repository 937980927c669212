package caller

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
)

// TestNew: New sets all fields of a Client, and Saying, Sending and Asked keep the fields that they do not change. The test
// also covers fields that are added later.
func TestNew(t *testing.T) {
	ask := func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return nil, nil
	}
	place := Place{
		ID: "id", Peer: "peer", View: "view", Transparent: true, Apps: true, Principal: &Principal{ID: "p"}, Headers: http.Header{"A": {"b"}},
		Notify: func(string, json.RawMessage) {}, Request: ask,
	}
	first := New(place, Said{"name", "2025-06-18", json.RawMessage(`{}`)})
	for i, value := 0, reflect.ValueOf(first); i < value.NumField(); i++ {
		if name := value.Type().Field(i).Name; value.Field(i).IsZero() && name != "Home" { // AtHome sets it
			t.Errorf("New leaves %s empty", name)
		}
	}
	for name, test := range map[string]struct {
		got     Client
		changed []string
	}{
		"a later message":    {first.Saying(Said{"other", "2025-03-26", json.RawMessage(`{"a":1}`)}), []string{"Name", "Version", "Capabilities"}},
		"a modern message":   {first.Saying(Said{"other", "2026-07-28", json.RawMessage(`{"a":1}`)}), []string{"Name", "Version", "Capabilities", "Request"}},
		"another credential": {first.Sending(&Principal{ID: "q"}, http.Header{"C": {"d"}}), []string{"Principal", "Headers"}},
		"another way to ask": {*first.Asked(func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
			return nil, nil
		}), []string{"Request"}},
		"the same once again": {first.Saying(Said{first.Name, first.Version, first.Capabilities}), nil},
	} {
		before, after := reflect.ValueOf(first), reflect.ValueOf(test.got)
		changed := make(map[string]bool)
		for _, field := range test.changed {
			changed[field] = true
		}
		for i := range before.NumField() {
			field := before.Type().Field(i).Name
			same := sameValue(before.Field(i), after.Field(i))
			if same == changed[field] {
				t.Errorf("%s: the field %s: same is %v", name, field, same)
			}
		}
	}
	if got := New(place, Said{Version: "2026-07-28"}); got.Request != nil {
		t.Error("a modern client can be sent requests")
	}
}

func sameValue(a, b reflect.Value) bool {
	if a.Kind() == reflect.Func {
		return a.Pointer() == b.Pointer()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
