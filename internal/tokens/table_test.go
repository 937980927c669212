package tokens

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

var update = flag.Bool("update", false, "write the table of tokens anew")

// referenceTokens returns the tokens of o200k_base; the index is the rank.
func referenceTokens(t *testing.T) []string {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for id := uint(0); ; id++ {
		s, err := codec.Decode([]uint{id})
		if err != nil {
			return tokens
		}
		tokens = append(tokens, s)
	}
}

func buildTable(tokens []string) []byte {
	type entry struct {
		hash uint64
		rank uint32
	}
	entries := make([]entry, len(tokens))
	for i, s := range tokens {
		entries[i] = entry{hash(s), uint32(i)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.hash>>(64-bucketBits), b.hash>>(64-bucketBits)), cmp.Compare(a.rank, b.rank))
	})
	var starts [1<<bucketBits + 1]uint32
	for _, e := range entries {
		starts[e.hash>>(64-bucketBits)+1]++
	}
	for b := range 1 << bucketBits {
		starts[b+1] += starts[b]
	}
	var out []byte
	for _, s := range starts {
		out = binary.LittleEndian.AppendUint32(out, s)
	}
	for _, e := range entries {
		fingerprint := uint32(e.hash>>(64-bucketBits-fingerprintBits)) & (1<<fingerprintBits - 1)
		out = binary.LittleEndian.AppendUint32(out, e.rank<<fingerprintBits|fingerprint)
	}
	return out
}

// pack makes o200k.gz.
func pack(t *testing.T, tokens []string) []byte {
	t.Helper()
	lengths := make([]byte, len(tokens))
	for i, s := range tokens {
		lengths[i] = byte(len(s))
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(append(lengths, strings.Join(tokens, "")...))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTable(t *testing.T) {
	tokens := referenceTokens(t)
	if len(tokens) < 199_000 {
		t.Fatalf("vocabulary has %d tokens, want about 200,000", len(tokens))
	}
	want := buildTable(tokens)
	if *update {
		if err := errors.Join(os.WriteFile("o200k.bin", want, 0o644), os.WriteFile("o200k.gz", pack(t, tokens), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal([]byte(table), want) {
		t.Fatal("o200k.bin is not the table of the tokenizer's vocabulary; run go test -run TestTable -update")
	}
	if ranks != len(tokens) {
		t.Fatalf("%d ranks, want %d", ranks, len(tokens))
	}
	wrong := 0
	for i, s := range tokens {
		if len(s) > longestToken {
			t.Errorf("token %d has %d bytes, want at most %d", i, len(s), longestToken)
		}
		if rank(s) != uint32(i) {
			wrong++
		}
		if r := o200k().rank(s); r != uint32(i) {
			t.Errorf("token %d is %d in o200k.gz; run go test -run TestTable -update", i, r)
		}
	}
	if wrong > 40 { // pairs with the same 30 bits of hash
		t.Errorf("%d tokens have another's rank, want at most 40", wrong)
	}
}
