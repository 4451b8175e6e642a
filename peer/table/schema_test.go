package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// schemaOf reads "a n, b c, d ?": numbers, categories, and columns of which nothing was seen.
func schemaOf(text string) *Schema {
	if text == "" {
		return nil
	}
	s := &Schema{}
	for _, f := range strings.Split(text, ",") {
		parts := strings.Fields(f)
		field := Field{Name: parts[0], Unseen: parts[1] == "?"}
		if parts[1] == "c" {
			field.Kind = Category
		}
		s.Fields = append(s.Fields, field)
	}
	return s
}

func TestSchemaHash(t *testing.T) {
	s := schemaOf("a n,b c")
	if got := s.Hash(); got != "a22d8573ee481659" {
		t.Errorf("the hash of a schema changed: %s", got)
	}
	for _, other := range []string{"a n,b n", "b c,a n", "a n", "a n,b c,d n", "a n,B c"} {
		if schemaOf(other).Hash() == s.Hash() {
			t.Errorf("%q has the same hash", other)
		}
	}
	data, err := json.Marshal(s)
	var back Schema
	if err != nil || json.Unmarshal(data, &back) != nil || back.Hash() != s.Hash() {
		t.Errorf("read back: %+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"fields":[{"name":"a","kind":"date"}]}`), &back); err == nil {
		t.Error("a kind that there is not was read")
	}
}

func TestSchemaDifferences(t *testing.T) {
	s := schemaOf("a n,b c,d n")
	for _, c := range []struct{ other, want string }{
		{"a n,b c,d n", ""},
		{"a n,d n", `column "b" is missing`},
		{"a n,b c,d n,e n", `column "e" is one more`},
		{"a n,b n,d n", `column "b" is a number, not a category`},
		{"b c,a n,d n", `column "a" is at another place; column "b" is at another place`},
		{"x n,a c,d n", `column "a" is a category, not a number; column "b" is missing; column "x" is one more`},
	} {
		var got []string
		for _, d := range s.Differences(schemaOf(c.other)) {
			got = append(got, d.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: got %q, want %q", c.other, got, c.want)
		}
	}
}

func TestAgree(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []string
		agreed  string // or
		refused []string
	}{
		{"alike", []string{"a n,b c", "a n,b c"}, "a n,b c", nil},
		{"one without rows", []string{"", "a n,b c", ""}, "a n,b c", nil},
		{"another order", []string{"a n,b c", "b c,a n"}, "a n,b c", nil},
		{"a column that one has not seen", []string{"a ?,b c", "a c,b ?"}, "a c,b c", nil},
		{"a column that nobody has seen", []string{"a ?", "a ?"}, "a n", nil},
		{"a column less", []string{"", "a n,b c", "a n"}, "", []string{"member 3 of 3", `column "b" is missing`}},
		{"a column more", []string{"a n", "a n,b c"}, "", []string{"member 2 of 2", `column "b" is one more`}},
		{"another kind", []string{"a n", "a c"}, "", []string{"member 2 of 2", `column "a" is a category, not a number`, "same schema"}},
		{"another kind, later", []string{"a n", "a ?", "a c"}, "", []string{"member 3 of 3", `column "a"`}},
		{"another kind than the second's", []string{"a ?", "a n", "a c"}, "", []string{"member 3 of 3", `column "a" is a category, not a number`}},
		{"no rows anywhere", []string{"", ""}, "", []string{"none of 2 members has a table"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			schemas, errs := make([]*Schema, len(c.members)), make([]error, len(c.members))
			Together(len(c.members), func(f Flock, i int) {
				schemas[i], errs[i] = Agree(context.Background(), Scope(f, "schema"), schemaOf(c.members[i]))
			})
			for i := range c.members {
				if len(c.refused) == 0 {
					if errs[i] != nil || !slices.Equal(schemas[i].Fields, schemaOf(c.agreed).Fields) || schemas[i].Hash() != schemas[0].Hash() {
						t.Errorf("member %d: %+v, %v", i, schemas[i], errs[i])
					}
					continue
				}
				for _, want := range c.refused {
					if errs[i] == nil || !strings.Contains(errs[i].Error(), want) {
						t.Errorf("member %d: %v, want %q", i, errs[i], want)
					}
				}
				var e *SchemaError
				if errors.As(errs[i], &e) && !strings.Contains(c.refused[0], fmt.Sprintf("member %d ", e.Member)) {
					t.Errorf("member %d is named, want %s", e.Member, c.refused[0])
				}
			}
		})
	}
}
