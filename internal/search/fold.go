package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/russian"
)

// foldTable has plain letters with their accented forms, in lower case.
var foldTable = []struct{ plain, accented string }{
	{"a", "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"}, {"b", "ḃḅḇ"}, {"c", "çćĉċčḉ"}, {"d", "ďḋḍḏḑḓđð"},
	{"e", "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"}, {"f", "ḟ"}, {"g", "ĝğġģǧǵḡ"}, {"h", "ĥȟḣḥḧḩḫẖħ"},
	{"i", "ìíîïĩīĭįǐȉȋḭḯỉịı"}, {"j", "ĵǰ"}, {"k", "ķǩḱḳḵ"}, {"l", "ĺļľḷḹḻḽł"}, {"m", "ḿṁṃ"},
	{"n", "ñńņňǹṅṇṉṋ"}, {"o", "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợøǿ"}, {"p", "ṕṗ"}, {"r", "ŕŗřȑȓṙṛṝṟ"},
	{"s", "śŝşšșṡṣṥṧṩſ"}, {"t", "ţťțṫṭṯṱẗŧ"}, {"u", "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"}, {"v", "ṽṿ"},
	{"w", "ŵẁẃẅẇẉẘ"}, {"x", "ẋẍ"}, {"y", "ýÿŷȳẏẙỳỵỷỹ"}, {"z", "źżžẑẓẕ"}, {"ss", "ß"}, {"ae", "æǽ"}, {"oe", "œ"}, {"th", "þ"},
	{"α", "ά"}, {"ε", "έ"}, {"η", "ή"}, {"ι", "ΐίϊ"}, {"ο", "ό"}, {"υ", "ΰϋύ"}, {"ω", "ώ"}, {"σ", "ς"},
	{"е", "ё"}, {"ا", "أإآٱ"}, {"ي", "ى"}, {"ه", "ة"}, {"ک", "ك"}, {"و", "ؤ"},
}

// plainOf maps each accented letter to the plain one.
var plainOf = func() map[rune]string {
	m := make(map[rune]string, 400)
	for _, f := range foldTable {
		for _, r := range f.accented {
			m[r] = f.plain
		}
	}
	return m
}()

// foldRune appends r in lower case without its accent. It drops combining marks that are accents or optional vowels, and keeps
// marks that are letters (Devanagari, Thai). Digits of all scripts become ASCII digits, and full-width ASCII characters plain
// ones.
func foldRune(b *strings.Builder, r rune) {
	switch {
	case r < 0x80:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		b.WriteByte(byte(r))
		return
	case 0x0300 <= r && r <= 0x036F, 0x0591 <= r && r <= 0x05C7, 0x064B <= r && r <= 0x065F, r == 0x0670, r == 0x0640:
		return
	case 0xFF01 <= r && r <= 0xFF5E: // a full-width ASCII character
		foldRune(b, r-0xFF01+'!')
		return
	}
	r = unicode.ToLower(r)
	if p, ok := plainOf[r]; ok {
		b.WriteString(p)
		return
	}
	if unicode.IsDigit(r) {
		for zero := r; zero > r-10; zero-- { // looks for the digit 0 of this script; the digits of a script are ten characters in a row
			if !unicode.IsDigit(zero - 1) {
				b.WriteByte(byte('0' + r - zero))
				return
			}
		}
	}
	b.WriteRune(r)
}

// stem removes the ending of a word: of a word in ASCII letters as if it were English, and of a word in Cyrillic as if it were
// Russian. Of an Arabic word it removes the article. Of a short form such as repo, it returns the stem of the longer word. The word
// must be folded: in lower case and without accents. All other words are returned unchanged.
func stem(text string, c script) string {
	switch c {
	case latin:
		if long, ok := shortForms[text]; ok {
			text = long
		}
		if len(text) < 3 || !isASCII(text) {
			return text
		}
		if n := len(text) - 1; text[n] == 's' && text[n-1] != 's' && !strings.ContainsAny(text, "aeiouy") {
			return text[:n] // PRs, DBs: the stemmer would keep the s, as there is no vowel
		}
		return english.Stem(american(text), true)
	case cyrillic:
		return russian.Stem(text, true)
	case arabic:
		if rest, ok := strings.CutPrefix(text, "ال"); ok && len(rest) >= 6 {
			return rest
		}
	}
	return text
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
