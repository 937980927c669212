package tokens

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// encoding is a vocabulary that is loaded when it is first needed.
type encoding struct {
	name string
	load func() (tokenizer.Codec, error)
}

// encodings are the vocabularies that [CountIn] knows, the newest first.
var encodings = []encoding{
	lazy(tokenizer.O200kBase), lazy(tokenizer.Cl100kBase), lazy(tokenizer.P50kBase), lazy(tokenizer.P50kEdit), lazy(tokenizer.R50kBase),
}

func lazy(name tokenizer.Encoding) encoding {
	return encoding{string(name), sync.OnceValues(func() (tokenizer.Codec, error) { return tokenizer.Get(name) })}
}

// Encodings are the names that [CountIn] accepts.
func Encodings() []string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = e.name
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
func CountIn(name, s string) (int, error) {
	i := slices.IndexFunc(encodings, func(e encoding) bool { return e.name == name })
	if i < 0 {
		return 0, fmt.Errorf("unknown encoding %q", name)
	}
	codec, err := encodings[i].load()
	if err != nil {
		return 0, fmt.Errorf("loading encoding %s: %w", name, err)
	}
	n, err := codec.Count(s)
	if err != nil {
		return 0, fmt.Errorf("counting in %s: %w", name, err)
	}
	return n, nil
}
