package read

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

func TestJSONLines(t *testing.T) {
	r := opened(t, Config{}, written(t, "x.jsonl", "\xEF\xBB\xBF"+`{"a": 1, "b" : "x"}
{"b":"say \"\u00e9\"","a":"2.5"}

  { "a":null , "c":true }  `+"\r\n"+`{}
{"a":"NA","b":"","c":false,"a":3e2}`))
	same(t, mustAll(t, r.Rows), `0 1 "x" -`, `1 2.5 "say \"é\"" -`, `2 - - "true"`, `3 - - -`, `4 300 - "false"`)
	if names := fmt.Sprint(r.Schema().Names()); names != "[a b c]" {
		t.Errorf("columns %s", names)
	}
}

func TestDamagedJSONLines(t *testing.T) {
	schema := &table.Schema{Fields: []table.Field{{Name: "a"}, {Name: "b", Kind: table.Category}}}
	for _, c := range []struct {
		line   string
		damage Damage
	}{
		{`{"a":1,"b":`, Damage{Reason: "no JSON object"}},
		{`[1,2]`, Damage{Reason: "no JSON object"}},
		{`{"a":"x"}`, Damage{Column: "a", Reason: "not a number"}},
		{`{"a":1,"d":2}`, Damage{Column: "d", Reason: "a column that is not in the schema"}},
		{`{"a":1,"b":{"c":1}}`, Damage{Column: "b", Reason: "an object or an array within a row"}},
		{`{"a":1e999}`, Damage{Column: "a", Reason: "an infinite number"}},
	} {
		path := written(t, "x.jsonl", "{\"a\":1}\n"+c.line+"\n{\"a\":2}\n")
		r := opened(t, Config{Schema: schema}, path)
		same(t, mustAll(t, r.Rows), "0 1 -", "2 2 -")
		c.damage.File, c.damage.Line, c.damage.Row, c.damage.Text = path, 2, 1, c.line
		if d := r.Damaged(); d.Count != 1 || d.First[0] != c.damage {
			t.Errorf("got %+v, want %+v", d, c.damage)
		}
	}
	r := opened(t, Config{Tolerance: -1}, written(t, "x.jsonl", "{\"a\":1}\n{\"a\":"))
	_, err := all(r.Rows)
	refused(t, err, "x.jsonl line 2", "the last line is cut off")
}

// Any line is read as encoding/json reads it, or is damaged.
func FuzzJSONLine(f *testing.F) {
	f.Add(`{"a":1,"b":"x"}`)
	f.Add(`{ "a" : "\u0041\\\"" , "b":null}`)
	f.Add(`{"a":-1.5e3,"a":true,"":[{}]}`)
	f.Add(`{"a":"}`)
	f.Fuzz(func(t *testing.T, line string) {
		g := &texts{}
		_, wrong := object([]byte(" " + line)[1:], g)
		var want map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if !json.Valid([]byte(line)) || d.Decode(&want) != nil || line[0] != '{' {
			if wrong == "" {
				t.Fatalf("%q was read: %v", line, g.values)
			}
			return
		}
		if wrong != "" {
			return // an array or an object within
		}
		for name, v := range want {
			text := fmt.Sprint(v)
			if v == nil {
				text = "<nil>"
			}
			if got, ok := g.values[name]; !ok || got != text {
				t.Fatalf("%q: %q is %q, not %q", line, name, got, text)
			}
		}
		if len(want) != len(g.values) {
			t.Fatalf("%q: %d values, not %d", line, len(g.values), len(want))
		}
	})
}

// texts is a sink that keeps the values of a row as texts.
type texts struct {
	sink
	names  []string
	values map[string]string
}

func (s *texts) blank() { s.values = map[string]string{} }

func (s *texts) place(name []byte) int {
	s.names = append(s.names, string(name))
	return len(s.names) - 1
}

func (s *texts) none(column int) { s.values[s.names[column]] = "<nil>" }

func (s *texts) field(column int, value []byte) string {
	s.values[s.names[column]] = string(value)
	return ""
}
