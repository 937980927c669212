package tokens

import (
	"fmt"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// encodings are the vocabularies that [CountIn] knows, the newest first.
var encodings = []tokenizer.Encoding{
	tokenizer.O200kBase, tokenizer.Cl100kBase, tokenizer.P50kBase, tokenizer.P50kEdit, tokenizer.R50kBase,
}

// codecs holds what was loaded: tokenizer.Encoding to func() (tokenizer.Codec, error).
var codecs sync.Map

// Encodings are the names that [CountIn] accepts.
func Encodings() []string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = string(e)
	}
	return names
}

// Count is the exact number of o200k_base tokens of s. The first call takes about 20 ms and keeps
// about 13 MB of memory, so it is for tools and tests; the serving path uses [Estimate].
func Count(s string) int {
	n, err := CountIn(string(tokenizer.O200kBase), s)
	if err != nil {
		panic("counting tokens: " + err.Error()) // o200k_base is built in and accepts any string
	}
	return n
}

// CountIn is the exact number of tokens of s in a named encoding, see [Encodings].
func CountIn(encoding, s string) (int, error) {
	known := false
	for _, e := range encodings {
		known = known || string(e) == encoding
	}
	if !known {
		return 0, fmt.Errorf("unknown encoding %q", encoding)
	}
	load, ok := codecs.Load(encoding)
	if !ok {
		load, _ = codecs.LoadOrStore(encoding, sync.OnceValues(func() (tokenizer.Codec, error) {
			return tokenizer.Get(tokenizer.Encoding(encoding))
		}))
	}
	codec, err := load.(func() (tokenizer.Codec, error))()
	if err != nil {
		return 0, fmt.Errorf("loading encoding %s: %w", encoding, err)
	}
	n, err := codec.Count(s)
	if err != nil {
		return 0, fmt.Errorf("counting in %s: %w", encoding, err)
	}
	return n, nil
}
