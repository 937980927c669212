package executor

import (
	"fmt"
	"testing"
	"time"
)

// TestToolTimeout: the timeout of the first matching glob applies, otherwise the timeout of the server.
func TestToolTimeout(t *testing.T) {
	o := ServerOptions{CallTimeout: time.Minute, ToolTimeouts: []ToolTimeout{
		{Glob: "export_all", Timeout: time.Hour}, {Glob: "export_*", Timeout: 10 * time.Minute}, {Glob: "*/b", Timeout: time.Second},
	}}
	for tool, want := range map[string]time.Duration{
		"export_all": time.Hour, "export_one": 10 * time.Minute, "read": time.Minute, "a/b": time.Second,
	} {
		s := Settings{Options: Options{Servers: map[string]ServerOptions{"s": o}}}
		for range 2 { // the second time, the settings come from the cache
			if got := s.tool("s", tool).timeout; got != want {
				t.Errorf("%s: %v, want %v", tool, got, want)
			}
		}
	}
	if got := new(Settings).tool("s", "x").timeout; got != 0 {
		t.Errorf("without any: %v", got)
	}
}

// TestNewSettings: equal options give the same Settings, with the filled cache.
func TestNewSettings(t *testing.T) {
	options := func(wait time.Duration) Options {
		return Options{ExecWait: wait, Servers: map[string]ServerOptions{"s": {Verbatim: []string{"get_*"}}}}
	}
	before := NewSettings(options(time.Second), nil)
	if NewSettings(options(time.Second), before) != before || NewSettings(options(time.Minute), before) == before {
		t.Error("settings do not follow their options")
	}
	if zero := NewSettings(Options{}, before); zero.ExecWait != 20*time.Second || NewSettings(Options{}, zero) != zero {
		t.Errorf("without options: %v", zero.ExecWait)
	}
}

func TestNamesEditedFile(t *testing.T) {
	for arguments, want := range map[string]bool{
		`{"path":"a.py"}`: true, `{"path":"a.json"}`: true, `{"path":"a.jsonc"}`: true, `{"path":"a.ipynb"}`: true, `{"path":"a.geojson"}`: true,
		`{"path":"a.lock"}`: true, `{"files":["a.txt",{"b":"c.lock"}]}`: true,
		`{"path":"a.pyc"}`: false, `{"path":"a.json.gz"}`: false, `{"path":"json"}`: false, `{"text":"see a.json please"}`: false, ``: false,
	} {
		if got := namesEditedFile([]byte(arguments)); got != want {
			t.Errorf("%s: %v", arguments, got)
		}
	}
}

// TestSettings_Verbatim: the cached settings of one server's tool are not used for another server's tool of the same name. The
// cache has at most maxToolSettings entries.
func TestSettings_Verbatim(t *testing.T) {
	s := Settings{Options: Options{Servers: map[string]ServerOptions{"none": {Verbatim: []string{}}, "own": {Verbatim: []string{"get_*"}, Unchecked: true, IdleTimeout: time.Second}}}}
	for range 2 {
		for _, tt := range []struct {
			server, tool string
			want         toolSettings
		}{
			{"default", "read_text_file", toolSettings{verbatim: true}}, {"default", "get_x", toolSettings{}},
			{"none", "read_text_file", toolSettings{}},
			{"own", "get_x", toolSettings{verbatim: true, unchecked: true, idle: time.Second}}, {"own", "read_text_file", toolSettings{unchecked: true, idle: time.Second}},
		} {
			if got := s.tool(tt.server, tt.tool); got != tt.want {
				t.Errorf("%s.%s: %+v, want %+v", tt.server, tt.tool, got, tt.want)
			}
		}
	}
	for i := range maxToolSettings + 10 {
		s.tool("many", fmt.Sprint(i))
	}
	if len(s.tools) > maxToolSettings {
		t.Errorf("%d are kept", len(s.tools))
	}
}
