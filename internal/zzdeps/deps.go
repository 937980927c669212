// Package zzdeps holds the dependencies of packages that are not there yet.
package zzdeps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/dlclark/regexp2"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/itchyny/gojq"
	_ "github.com/kljensen/snowball"
	_ "github.com/mark3labs/mcp-go/client"
	_ "github.com/mark3labs/mcp-go/server"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/tailscale/hujson"
	_ "github.com/tiktoken-go/tokenizer"
	_ "github.com/toon-format/toon-go"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/text/language"
	_ "golang.org/x/tools/txtar"
)
