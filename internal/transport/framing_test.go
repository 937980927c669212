package transport

import (
	"testing"

	"mcpx/internal/base/wire"
)

func TestNextFraming(t *testing.T) {
	tests := []struct {
		name   string
		launch Launch
		heard  []wire.Framing
		last   wire.Framing
		silent bool
		want   wire.Framing
	}{
		{"silent", Launch{}, nil, wire.Newline, true, wire.ContentLength},
		{"ended early", Launch{}, nil, wire.Newline, false, wire.Newline},
		{"headers, silent", Launch{}, nil, wire.ContentLength, true, wire.Newline},
		{"headers, ended early", Launch{}, nil, wire.ContentLength, false, wire.Newline},
		{"spoke lines", Launch{}, []wire.Framing{wire.Newline}, wire.Newline, true, wire.Newline},
		{"spoke headers", Launch{}, []wire.Framing{wire.ContentLength}, wire.ContentLength, true, wire.ContentLength},
		{"changed its mind", Launch{}, []wire.Framing{wire.Newline, wire.ContentLength}, wire.Newline, false, wire.ContentLength},
		{"pinned headers", Launch{ContentLength: true}, []wire.Framing{wire.Newline}, wire.ContentLength, false, wire.ContentLength},
		{"pinned lines", Launch{NewlineOnly: true}, nil, wire.Newline, true, wire.Newline},
	}
	for _, tt := range tests {
		d := NewDialer(Options{Type: Stdio, Launch: tt.launch})
		for _, f := range tt.heard {
			d.heard.Store(1 + int32(f))
		}
		d.framing = tt.last
		if d.Failed(tt.silent); d.framing != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, d.framing, tt.want)
		}
	}
}
