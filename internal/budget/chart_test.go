package budget

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/base/chart"
	"mcpx/internal/base/terminal"
)

// element is a start tag of an image.
type element struct {
	name       string
	attributes map[string]string
}

// elements parses an image, which must be well-formed XML.
func elements(t *testing.T, image []byte) (list []element, text string) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(image))
	var all strings.Builder
	for {
		next, err := decoder.Token()
		if err == io.EOF {
			return list, all.String()
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, image)
		}
		switch next := next.(type) {
		case xml.StartElement:
			e := element{next.Name.Local, make(map[string]string)}
			for _, a := range next.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			list = append(list, e)
		case xml.CharData:
			all.Write(next)
		}
	}
}

func (e element) number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(e.attributes[name])
	if err != nil {
		t.Fatalf("%s of %v: %v", name, e, err)
	}
	return n
}

func TestChart(t *testing.T) {
	r := measured(t)
	for i := range 20 {
		r.Results.Classes = append(r.Results.Classes, Class{Name: fmt.Sprintf(`k%d <&>"' `, i) + "\x00\xff\uffff", Documents: 1, Received: 1})
	}
	image := Chart(r)
	if !bytes.Equal(image, Chart(r)) {
		t.Error("the same report gives other bytes")
	}
	list, text := elements(t, image)
	width, height := list[0].number(t, "width"), list[0].number(t, "height")
	for _, e := range list {
		switch e.name {
		case "rect":
			if e.number(t, "x")+e.number(t, "width") > width || e.number(t, "y")+e.number(t, "height") > height || e.number(t, "width") < 2 {
				t.Errorf("outside of %d x %d: %v", width, height, e)
			}
		case "text":
			if y := e.number(t, "y"); y < 10 || y > height {
				t.Errorf("outside of %d x %d: %v", width, height, e)
			}
		case "svg", "title", "desc":
		default:
			t.Errorf("unexpected %s", e.name)
		}
	}
	for _, want := range []string{"connected directly", "3 servers", "4 tools", terminal.Number(r.Catalogue.Total.Direct), terminal.Number(r.Catalogue.Total.Surface), "table", "others", `k3 <&>"'`, "o200k_base"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the image", want)
		}
	}
}

// TestChart_Lengths checks that the lengths of bars are proportional to their figures.
func TestChart_Lengths(t *testing.T) {
	r := &Report{Catalogue: &Catalogue{
		Servers: make([]Server, 1), Total: Server{Direct: 1000, Surface: 250},
		Growth: []Step{{Servers: 1, Tools: 2, Direct: 1000, Surface: 250}},
	}}
	list, _ := elements(t, Chart(r))
	var widths []int
	for _, e := range list {
		if e.name == "rect" && e.number(t, "x") == chart.Left {
			widths = append(widths, e.number(t, "width"))
		}
	}
	if len(widths) != 2 || widths[0]/4 != widths[1] {
		t.Errorf("got bars of %v pixels, want two, the second a quarter of the first", widths)
	}
}

// TestReport_FieldsDocumented checks that each field of the JSON report has a comment in report.go.
func TestReport_FieldsDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "report.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if s, ok := node.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				seen++
				if field.Doc == nil || field.Tag == nil || !strings.HasPrefix(field.Doc.Text(), field.Names[0].Name+" ") {
					t.Errorf("%s has no comment that begins with its name, or no JSON name", field.Names[0].Name)
				}
			}
		}
		return true
	})
	if seen < 30 {
		t.Errorf("only %d fields", seen)
	}
}
