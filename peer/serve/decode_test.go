package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

var (
	columns = About{Fields: []table.Field{{Name: "x", Kind: table.Number}, {Name: "color", Kind: table.Category}}, Outputs: 1}
	numbers = About{Width: 3, Outputs: 1}
)

// shown is rows as text, one a line.
func shown(r Rows) string {
	var lines []string
	for i := range r.Len {
		if r.Table == nil {
			lines = append(lines, fmt.Sprint(r.Numbers[i*3:(i+1)*3]))
			continue
		}
		x, color := r.Table.Columns[0], r.Table.Columns[1]
		text := "-"
		if code := color.Codes[i]; code != table.Missing {
			text = color.Values[code]
		}
		lines = append(lines, fmt.Sprint(x.Numbers[i], " ", text))
	}
	return strings.Join(lines, "; ")
}

func TestRowsAsJSON(t *testing.T) {
	for _, c := range []struct {
		about      About
		body, want string
	}{
		{columns, `[{"x":1,"color":"red"},{"color":"blue","x":-2.5e3}]`, "1 red; -2500 blue"},
		{columns, ` {"rows" : [ {"x":1,"color":"red"} , [2,"red"] ] } `, "1 red; 2 red"},
		{columns, `{"x":1,"color":"red"}`, "1 red"},
		{columns, `[1,"red"]`, "1 red"},
		{columns, `[null,null]`, "NaN -"},
		{columns, `{"x":null,"color":7,"others":[1,{"a":[]}]}`, "NaN 7"},
		{columns, `[[1,true],[2,-0],[3,1e21],[4,""]]`, "1 true; 2 0; 3 1e+21; 4 "},
		{numbers, `[[1,2,3],[4,5,6]]`, "[1 2 3]; [4 5 6]"},
		{numbers, `{"rows":[[1,2,3]]}`, "[1 2 3]"},
		{numbers, `[1,2,3.5]`, "[1 2 3.5]"},
		{About{Fields: []table.Field{{Name: "rows", Kind: table.Number}, {Name: "b", Kind: table.Category}}}, `{"rows":1,"b":"x"}`, "1 x"},
	} {
		rows, err := decode(strings.NewReader(c.body), c.about, 10)
		if err != nil || shown(rows) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.body, shown(rows), err, c.want)
		}
	}
}

func TestWhatIsNoRows(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000)
	for _, c := range []struct {
		about     About
		body, say string
	}{
		{columns, ``, "EOF"}, {columns, `nonsense`, "invalid"}, {columns, `7`, "want an array of rows"}, {columns, `[]`, "no row"},
		{columns, `{}`, `no column "x"`}, {columns, `{"rows":[]}`, "no row"}, {columns, `{"rows":7}`, "no array"},
		{columns, `{"rows":[[1,"a"]],"more":1}`, "more"}, {columns, `{"rows":[[1,"a"]],"more"`, "more"}, {columns, `{"rows":[[1,"a"]]`, "EOF"}, {columns, `[[1,"a"]] 7`, "something follows"}, {columns, `[[1,"a"]]]`, "invalid"},
		{columns, `[[1,"a"],]`, "invalid"}, {columns, `[[1,"a"]`, "EOF"}, {columns, `[[1,"a"],3]`, "beside"}, {columns, `[3,[1,"a"]]`, "beside"},
		{columns, `[{"x":1}]`, `row 1: no column "color"`}, {columns, `[{"x":1,"color":"a"},{"x":"1","color":"a"}]`, `row 2: column "x" is "1": want a number`},
		{columns, `[[1,["a"]]]`, `column "color": want a text`}, {columns, `[[NaN,"a"]]`, "invalid"}, {columns, `[[1e999,"a"]]`, "1e999"},
		{columns, `[[1,"a",2]]`, "3 values: want 2"}, {columns, `[1,"a",2]`, "more values than the 2"}, {columns, `[[[1,"a"]]]`, "1 values"},
		{numbers, `[{"x":1}]`, "want an array of 3 numbers"}, {numbers, `[[1,2,null]]`, "want a number"}, {numbers, `[[1,2,"3"]]`, "want a number"},
		{numbers, `[[1,2,1e39]]`, "want a number"}, {numbers, `[[1,2]]`, "2 values: want 3"},
		{numbers, "[" + strings.Repeat("[1,2,3],", 10) + "[1,2,3]]", "too many rows for one request: at most 10"},
		{columns, deep, "depth"}, {columns, `{"rows":` + deep, "depth"}, {columns, `{"x":` + deep, "depth"}, {columns, strings.Repeat(`{"x":`, 1_000_000), "depth"},
	} {
		if _, err := decode(strings.NewReader(c.body), c.about, 10); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%.60s: %v, want %q", c.body, err, c.say)
		}
	}
}

// TestValuesAreBounded: rows of many values are fewer, on the way in and out.
func TestValuesAreBounded(t *testing.T) {
	for _, about := range []About{{Width: maxValues / 2, Outputs: 1}, {Width: 1, Outputs: maxValues / 2}} {
		one := "[" + strings.Repeat("0,", about.Width-1) + "0]"
		if _, err := decode(strings.NewReader("["+one+","+one+"]"), about, MaxRows); err != nil {
			t.Error(err)
		}
		if _, err := decode(strings.NewReader("["+one+","+one+","+one+"]"), about, MaxRows); err == nil || !strings.Contains(err.Error(), "at most 2") {
			t.Errorf("%d × 3 values: %v", about.Width, err)
		}
	}
}

// FuzzRows: what is read is JSON, of as many rows as it has and values of the kinds of their columns.
func FuzzRows(f *testing.F) {
	for _, body := range []string{`[{"x":1,"color":"red"}]`, `{"rows":[[1,"a"],[null,null]]}`, `[1,"red"]`, `[[1,2,3]]`, `{"x":1,"color":"\ud800"}`, `[[1,"a"]]x`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, about := range []About{columns, numbers} {
			r, err := decode(strings.NewReader(body), about, 100)
			if err != nil {
				continue
			}
			if !json.Valid([]byte(body)) || r.Len < 1 || r.Len > 100 {
				t.Fatalf("%q is %d rows", body, r.Len)
			}
			if about.Fields == nil {
				for _, v := range r.Numbers {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) || len(r.Numbers) != 3*r.Len {
						t.Fatalf("%q: %v", body, r.Numbers)
					}
				}
				continue
			}
			x, color := r.Table.Columns[0], r.Table.Columns[1]
			if r.Table.Rows != r.Len || len(x.Numbers) != r.Len || len(color.Codes) != r.Len {
				t.Fatalf("%q: %+v", body, r.Table)
			}
			shown(r) // each code has a value
		}
	})
}
