package search

import "strings"

// mention is a path, web address, e-mail address or arithmetic expression in a query, recognized by its form.
type mention struct {
	// words are English words for what is mentioned, such as "file" or "url".
	words string
	// text is a host name without www and the top-level domain, since what is left may name a server or a tool. It is empty for
	// a mention without a web address.
	text string
	// path means that the mention is a path of a file or folder, or the name of a file.
	path bool
}

// formats maps the endings of file names to English words for such files.
var formats = func() map[string]string {
	m := map[string]string{}
	for _, f := range []struct{ endings, words string }{
		{"md markdown txt text rst log", "file text"},
		{"json jsonl yaml yml toml xml ini conf env", "file"},
		{"html htm", "file html"},
		{"py go js ts tsx jsx java c h cpp rs rb php sh css sql kt swift cs lua r", "file code"},
		{"csv tsv", "csv file"},
		{"xlsx xls xlsm ods", "excel spreadsheet sheet"},
		{"docx doc odt rtf", "word document docx"},
		{"pptx ppt odp", "powerpoint presentation slide"},
		{"pdf", "pdf document"},
		{"epub", "book document"},
		{"png jpg jpeg gif webp bmp tiff svg ico heic", "image"},
		{"wav mp3 flac ogg m4a aac", "audio"},
		{"mp4 avi mov mkv webm", "video"},
		{"zip tar gz tgz 7z rar bz2", "archive compress"},
		{"db sqlite sqlite3", "database sqlite"},
		{"ipynb", "notebook"},
		{"parquet", "file data"},
	} {
		for e := range strings.FieldsSeq(f.endings) {
			m[e] = f.words
		}
	}
	return m
}()

// topDomains are top-level domains by which a host name without a scheme is recognized.
var topDomains = wordSet("com org net io dev ai edu gov co cn de uk fr jp ru br app tv eu ca au nl")

// libraries are names that, with .js behind them, look like files but are libraries: Node.js, Vue.js.
var libraries = wordSet("node next nuxt vue react angular express three d3 chart socket ember backbone p5 alpine solid discord anime moment plotly")

// recognise reads a word of a query as a mention; it returns false if the word is none.
func recognise(w string) (mention, bool) {
	w = strings.Trim(w, ".,;!?\"'()[]{}<>`“”‘’«»，。、；：！？（）「」")
	if scheme, rest, ok := strings.Cut(w, "://"); ok && len(scheme) > 1 && len(scheme) < 12 {
		if scheme == "file" {
			return pathMention(rest), true
		}
		host, tail, _ := strings.Cut(rest, "/")
		m := mention{words: "url web page fetch", text: hostWords(host)}
		if f, ok := formats[ending(tail)]; ok && ending(tail) != "html" {
			m.words += " " + f
		}
		return m, true
	}
	if name, host, ok := strings.Cut(w, "@"); ok && name != "" && strings.Contains(host, ".") {
		return mention{words: "email"}, true
	}
	if isSum(w) {
		return mention{words: "calculate math"}, true
	}
	rooted := strings.HasPrefix(w, "/") || strings.HasPrefix(w, "~/") || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../")
	if len(w) > 1 && (rooted || len(w) > 3 && w[1] == ':' && w[2] == '\\') {
		return pathMention(w), true
	}
	if e := ending(w); e != "" {
		if e == "js" && libraries[strings.ToLower(strings.TrimSuffix(w[:len(w)-3], "."))] {
			return mention{}, false
		}
		if _, ok := formats[e]; ok && len(e) > 1 && w != "."+e {
			return pathMention(w), true
		}
		if host, _, _ := strings.Cut(w, "/"); topDomains[ending(host)] && isASCII(host) {
			return mention{words: "website url domain", text: hostWords(host)}, true
		}
	}
	return mention{}, false
}

// isSum reports whether w looks like arithmetic or a percentage: 3*4, 2^10, 15%.
func isSum(w string) bool {
	if w == "" || strings.Trim(w, "0123456789.,+*^=%()xX×÷-") != "" {
		return false
	}
	return strings.ContainsAny(w, "0123456789") && strings.ContainsAny(w, "+*^=%×÷")
}

func pathMention(p string) mention {
	if f, ok := formats[ending(p)]; ok {
		return mention{words: f, path: true}
	}
	return mention{words: "directory", path: true}
}

// ending returns the part of a name after its last dot, in lower case; "" if there is none or if it is too long for an ending.
func ending(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || i+1 == len(name) || len(name)-i > 10 || strings.ContainsRune(name[i:], '/') {
		return ""
	}
	return strings.ToLower(name[i+1:])
}

// hostWords returns a host name without www and the top-level domain.
func hostWords(host string) string {
	labels := strings.Split(strings.ToLower(host), ".")
	if len(labels) > 1 {
		labels = labels[:len(labels)-1]
	}
	if labels[0] == "www" {
		labels = labels[1:]
	}
	return strings.Join(labels, " ")
}
