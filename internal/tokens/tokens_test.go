package tokens

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"github.com/tiktoken-go/tokenizer"
)

// splitRule is the split rule of o200k_base as published.
const splitRule = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// samples are texts of many kinds and scripts.
var samples = map[string]string{
	"empty":     "",
	"english":   "It's what they've said: \"We'll see\", didn't I? HTTPServer parseJSONFile snake_case_name, I'D GO.",
	"json":      `{"id":12345,"name":"a b","tags":["x","y"],"url":"https://example.com/a?b=c&d=%20","ok":true,"n":null}`,
	"pretty":    "{\n  \"a\": [\n    1,\n    2\n  ],\r\n\t\"b\":\t{}\n}\n",
	"code":      "func main() {\n\tfmt.Println(\"hi\") // say hi\n}\n\n\n   x := a[i:j]   \n",
	"numbers":   "1234567 3.14159 1e10 -0.5 ٣٤٥ ½ Ⅷ 2024-05-06T07:08:09Z",
	"german":    "Größere Änderungen über die Straße: Fußgängerübergänge sind Donaudampfschifffahrtsgesellschaften.",
	"russian":   "Прочитай файл и построй график за последний месяц, пожалуйста.",
	"chinese":   "读取文件并绘制上个月的图表，然后发送邮件给所有人。中文ABC混合文字abc。",
	"japanese":  "ファイルを読み込んで、先月のグラフを描いてください。カタカナとひらがな。",
	"korean":    "파일을 읽고 지난달의 그래프를 그려 주세요.",
	"arabic":    "اقرأ الملف وارسم الرسم البياني للشهر الماضي.",
	"hindi":     "फ़ाइल पढ़ें और पिछले महीने का ग्राफ़ बनाएं।",
	"thai":      "อ่านไฟล์และวาดกราฟของเดือนที่แล้ว",
	"emoji":     "👍🏽 done 👨‍👩‍👧‍👦 ✅✅ → ★",
	"base64":    strings.Repeat("aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0IGRhdGE", 20),
	"hex":       strings.Repeat("3f786850e387550fdab836ed7e6dc881de23001b", 10),
	"brackets":  strings.Repeat("[", 300) + strings.Repeat("]", 300),
	"rule":      strings.Repeat("=", 500) + "\n" + strings.Repeat("-", 77) + "\n",
	"spaces":    strings.Repeat(" ", 300) + "x" + strings.Repeat("\n", 40) + strings.Repeat(" \t", 30),
	"one word":  strings.Repeat("a", 1000),
	"combining": "é̂ à 	 ́ ÀÉ́b \u0301",
	"invalid":   "a\xff\xfeb \xc3( \xe4\xb8",
}

// corpus returns the documents under MCPX_CORPUS, at most 300 KB of each.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	dir := os.Getenv("MCPX_CORPUS")
	if dir == "" {
		t.Skip("MCPX_CORPUS is not set")
	}
	docs := map[string]string{}
	for _, sub := range []string{"results", "tools"} {
		files, err := filepath.Glob(filepath.Join(dir, sub, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.IndexByte(text, '\x7f') >= 0 {
				continue // the reference loses this character
			}
			docs[sub+"/"+filepath.Base(f)] = string(text[:min(len(text), 300_000)])
		}
	}
	if len(docs) == 0 {
		t.Fatalf("no documents under %s", dir)
	}
	return docs
}

func TestNextPiece(t *testing.T) {
	rule := regexp2.MustCompile(splitRule, regexp2.None)
	for name, s := range samples {
		s = strings.ToValidUTF8(s, "\uFFFD")
		m, err := rule.FindStringMatch(s)
		for i := 0; i < len(s); {
			if err != nil || m == nil {
				t.Fatalf("%s: no match at %d: %v", name, i, err)
			}
			end := nextPiece(s, i)
			if got, want := s[i:end], m.String(); got != want {
				t.Errorf("%s: piece at %d is %q, want %q", name, i, got, want)
				break
			}
			i = end
			m, err = rule.FindNextMatch(m)
		}
	}
}

func TestEstimate_Samples(t *testing.T) {
	for name, s := range samples {
		got, want := Estimate(s), Count(s)
		if off := math.Abs(float64(got - want)); off > 1+0.02*float64(want) {
			t.Errorf("%s: Estimate is %d, Count is %d", name, got, want)
		}
		if c := Ceiling(s); want > 50 && float64(c) < 0.98*float64(want) {
			t.Errorf("%s: Ceiling is %d, Count is %d", name, c, want)
		}
	}
}

func TestEstimate_Corpus(t *testing.T) {
	var estimated, counted int
	low, high := 0.0, 0.0
	for name, s := range corpus(t) {
		want := Count(s)
		got := Estimate(s)
		estimated += got
		counted += want
		if want <= 50 {
			continue
		}
		off := float64(got)/float64(want) - 1
		low, high = min(low, off), max(high, off)
		if math.Abs(off) > 0.02 {
			t.Errorf("%s: Estimate is %d, Count is %d", name, got, want)
		}
		if c := Ceiling(s); c < want {
			t.Logf("%s: Ceiling is %d, Count is %d", name, c, want)
			if float64(c) < 0.98*float64(want) {
				t.Errorf("%s: Ceiling is more than 2 %% under Count", name)
			}
		}
	}
	t.Logf("estimated %d, counted %d (%+.3f %%); per document %+.2f %% to %+.2f %%", estimated, counted,
		100*(float64(estimated)/float64(counted)-1), 100*low, 100*high)
}

func TestEstimate_AllocatesNothing(t *testing.T) {
	s := samples["json"] + samples["base64"] + samples["chinese"]
	if n := testing.AllocsPerRun(10, func() { Estimate(s) }); n != 0 {
		t.Errorf("Estimate allocates %v times, want 0", n)
	}
}

// reference counts with another implementation of o200k_base.
func reference(t testing.TB, s string) int {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	n := 0
	if err == nil {
		n, err = codec.Count(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCount: Count returns the same number as another implementation of o200k_base.
func TestCount(t *testing.T) {
	for name, s := range samples {
		s = strings.ToValidUTF8(s, "\uFFFD")
		if got, want := Count(s), reference(t, s); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	long := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 4000)
	if got, want := Count(long), reference(t, long); got != want {
		t.Errorf("a long word: %d, want %d", got, want)
	}
}

func TestCount_Corpus(t *testing.T) {
	for name, s := range corpus(t) {
		if got, want := Count(s), reference(t, s); got != want && utf8.ValidString(s) {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4096 || !utf8.ValidString(s) || strings.Contains(s, "\x7f") {
			return // the reference reads invalid bytes as another character, and loses DEL
		}
		if got, want := Count(s), reference(t, s); got != want {
			t.Errorf("%d, want %d for %q", got, want, s)
		}
	})
}

func FuzzEstimate(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4096 {
			return
		}
		got := Estimate(s)
		if got < 0 || got > len(s) || (s != "" && got == 0) {
			t.Fatalf("Estimate is %d for %d bytes", got, len(s))
		}
		if !utf8.ValidString(s) || strings.Contains(s, "\x7f") {
			return // the reference reads invalid bytes as another character, and loses DEL
		}
		// Fuzzing finds texts that the table wrongly takes for a token. Such a piece may be as long as any text here.
		for i := 0; i < len(s); {
			end := nextPiece(s, i)
			if p := s[i:end]; rank(p) != noRank && o200k().rank(p) == noRank {
				return
			}
			i = end
		}
		// Parts of a piece may be such texts too.
		if want := Count(s); math.Abs(float64(got-want)) > 8+0.25*float64(want) {
			t.Errorf("Estimate is %d, Count is %d for %q", got, want, s)
		}
	})
}

func BenchmarkEstimate(b *testing.B) {
	for _, name := range []string{"json", "english", "pretty", "base64", "chinese", "brackets", "rule", "one word"} {
		s := samples[name]
		s = strings.Repeat(s, 1+100_000/len(s))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Estimate(s)
			}
		})
	}
	b.Run("corpus", func(b *testing.B) {
		var all strings.Builder
		for _, s := range corpus(b) {
			all.WriteString(s)
		}
		b.SetBytes(int64(all.Len()))
		for b.Loop() {
			Estimate(all.String())
		}
	})
}

func BenchmarkCount(b *testing.B) {
	s := strings.Repeat(samples["json"], 1000)
	Count(s)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Count(s)
	}
}
