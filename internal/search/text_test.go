package search

import (
	"slices"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	tests := []struct {
		in   string
		want string // words; parts in brackets
	}{
		{"read_text_file", "read text file"},
		{"get-weather", "get weather"},
		{"camelCase", "camelcase[camel case]"},
		{"HTTPServer", "httpserver[http server]"},
		{"getHTTPServerURL", "gethttpserverurl[get http server url]"},
		{"list PRs", "list prs"},
		{"URLsOpen", "urlsopen[urls open]"},
		{"GitHub", "github[git hub]"},
		{"mp3 s3 k8s base64", "mp3 s3 k8s base64[base 64]"},
		{"python3", "python3[python 3]"},
		{"2024-05-01", "2024 05 01"},
		{"Café Zürich Łódź Straße", "cafe zurich lodz strasse"},
		{"cafe\u0301", "cafe"},
		{"ＦＵＬＬ　ｗｉｄｔｈ", "full width"},
		{"Ёлка и Съезд", "елка и съезд"},
		{"读取 文件.txt", "读取 文件 txt"},
		{"用Python读取文件", "用 python 读取文件"},
		{"ファイルを読む", "ファイルを読む"},
		{"파일 삭제", "파일 삭제"},
		{"الملفات", "الملفات"},
		{"Ελλάδα", "ελλαδα"},
		{"हिन्दी भाषा", "हिन्दी भाषा"},
		{"٣٤", "34"},
		{"a\x00b\xffc", "a b c"},
		{"", ""},
	}
	for _, tt := range tests {
		var got []string
		scan(tt.in, func(w word) {
			s := w.text
			if w.parts != nil {
				s += "[" + strings.Join(w.parts, " ") + "]"
			}
			got = append(got, s)
		})
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("scan(%q) = %q, want %q", tt.in, s, tt.want)
		}
	}
}

func TestStem(t *testing.T) {
	tests := []struct {
		script script
		same   []string
	}{
		{latin, []string{"file", "files"}},
		{latin, []string{"create", "creating", "created", "creates"}},
		{latin, []string{"repository", "repositories"}},
		{latin, []string{"pr", "prs"}},
		{cyrillic, []string{"файл", "файла", "файлы", "файлов"}},
		{arabic, []string{"ملف", "الملف"}},
	}
	for _, tt := range tests {
		for _, w := range tt.same[1:] {
			if got, want := stem(w, tt.script), stem(tt.same[0], tt.script); got != want {
				t.Errorf("stem(%q) = %q, want %q as of %q", w, got, want, tt.same[0])
			}
		}
	}
}

func TestThesaurus(t *testing.T) {
	tests := []struct{ word, finds string }{
		{"make", "create"}, {"add", "create"}, {"new", "create"},
		{"drop", "delete"}, {"remove", "delete"},
		{"fetch", "get"}, {"retrieve", "get"}, {"read", "get"},
		{"show", "list"}, {"enumerate", "list"},
		{"lookup", "search"}, {"query", "find"},
		{"edit", "update"}, {"modify", "change"},
		{"post", "send"},
		{"pr", "pull_request"}, {"pull_request", "pr"},
		{"mr", "merge_request"}, {"folder", "directory"}, {"dir", "folder"},
		{"doc", "document"}, {"dm", "message"}, {"photo", "image"}, {"img", "picture"}, {"sql", "database"},
		{"xlsx", "excel"}, {"pptx", "powerpoint"}, {"docx", "word"},
		{"rain", "weather"},
	}
	for _, tt := range tests {
		from, to := stems(tt.word)[0], stems(tt.finds)[0]
		if !slices.Contains(thesaurus()[from], to) {
			t.Errorf("%s does not find %s: %v", tt.word, tt.finds, thesaurus()[from])
		}
	}
	if slices.Contains(thesaurus()["weather"], "rain") {
		t.Error("weather finds rain: related words go one way")
	}
}

func TestTranslate(t *testing.T) {
	tests := []struct {
		in     string
		script script
		want   string
	}{
		{"读取文件", dense, "read file"},
		{"天気予報", dense, "weather forecast"},
		{"파일", dense, "file"},
		{"файлов", cyrillic, "file"},
		{"read", latin, ""},
		{"红绿", dense, ""},
	}
	for _, tt := range tests {
		var words []string
		if tt.script == dense {
			for _, f := range translateRun(tt.in) {
				words = append(words, f.english[0])
			}
		} else if e := translate(stem(tt.in, tt.script), tt.script); e != nil {
			words = e[:1]
		}
		if got := strings.Join(words, " "); got != tt.want {
			t.Errorf("translate(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSplitClauses(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"read the csv, then plot it", []string{"read the csv,", "then plot it"}},
		{"Find the file and send it to Bob", []string{"Find the file", "and send it to Bob"}},
		{"companies, people and products", []string{"companies, people and products"}},
		{"Save it in a.md. Then stop.", []string{"Save it in a.md", "Then stop."}},
		{"version 1.2 of the API", []string{"version 1.2 of the API"}},
		{"读取文件，然后发送邮件", []string{"读取文件", "发送邮件"}},
		{"прочитай файл и отправь письмо", []string{"прочитай файл", "и отправь письмо"}},
		{"", nil},
	}
	for _, tt := range tests {
		if got := splitClauses(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("splitClauses(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestRecognise(t *testing.T) {
	tests := []struct {
		in   string
		want mention
		ok   bool
	}{
		{"/srv/a/b.md", mention{words: "file text", path: true}, true},
		{"`report.xlsx`,", mention{words: "excel spreadsheet sheet", path: true}, true},
		{"~/notes", mention{words: "directory", path: true}, true},
		{`C:\x\y.pdf`, mention{words: "pdf document", path: true}, true},
		{"https://www.youtube.com/watch?v=1", mention{words: "url web page fetch", text: "youtube"}, true},
		{"www.example.org", mention{words: "website url domain", text: "example"}, true},
		{"bob@example.com", mention{words: "email"}, true},
		{"15%", mention{words: "calculate math"}, true},
		{"(3+4)*2", mention{words: "calculate math"}, true},
		{"2024-05-01", mention{}, false},
		{"1920x1080", mention{}, false},
		{"Node.js", mention{}, false},
		{"e.g.", mention{}, false},
		{"3.14", mention{}, false},
		{"and/or", mention{}, false},
		{"...", mention{}, false},
	}
	for _, tt := range tests {
		if got, ok := recognise(tt.in); ok != tt.ok || got != tt.want {
			t.Errorf("recognise(%q) = %+v, %v, want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}
