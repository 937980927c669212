package app

import (
	"reflect"
	"strings"

	"mcpx/internal/desk/config"
)

// fromNextStart are the fields of a config that a running mcpx does not change, with the keys
// that the log names. TestKeys has the others.
var fromNextStart = []struct{ field, key string }{
	{"MaxMessageBytes", "max_message_bytes"},
	{"ShutdownGrace", "shutdown_grace"},
	{"SSE", "sse"},
	{"TLS", "tls"},
	{"Auth.Certificates", "auth.certificates"},
	{"Limits.Connections", "limits.connections"},
	{"SessionTimeout", "session_timeout"},
	{"UI", "ui"},
	{"API", "api"},
	{"View", "view"},
	{"Audit", "audit"},
	{"Telemetry", "telemetry"},
	{"LogLevel", "log_level"},
	{"LogFile", "log_file"},
	{"LogFormat", "log_format"},
}

// nextStart are the keys whose change takes effect at the next start.
func nextStart(at, to *config.Config) (keys []string) {
	for _, one := range fromNextStart {
		if !reflect.DeepEqual(valueOf(at, one.field), valueOf(to, one.field)) {
			keys = append(keys, one.key)
		}
	}
	return keys
}

// valueOf is what a field says, and of a member of an object that is not there its zero value.
func valueOf(cfg *config.Config, field string) any {
	if field == "API" {
		return cfg.ChangesServers() // what it says depends on auth too
	}
	v := reflect.ValueOf(cfg).Elem()
	for name := range strings.SplitSeq(field, ".") {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		v = reflect.Indirect(v).FieldByName(name)
	}
	return v.Interface()
}
