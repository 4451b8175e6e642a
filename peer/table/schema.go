package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Schema is the names and kinds of the columns of a table, in order. All members of a run
// must have the same; Agree checks that. It is written and read by encoding/json.
type Schema struct {
	Fields []Field `json:"fields"`
}

// Field is one column of a Schema.
type Field struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Unseen says that no value of the column was seen when its kind was inferred: it counts
	// as a Number unless another member has seen one.
	Unseen bool `json:"unseen,omitempty"`
}

// Find is the index of the column with a name, -1 if there is none.
func (s *Schema) Find(name string) int {
	return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
}

// Names are the columns' names.
func (s *Schema) Names() []string {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	return names
}

// Hash is 16 hexadecimal digits that two schemas share if they have the same columns of the
// same kinds in the same order: the start of the SHA-256 of a line for each column, its kind,
// a space and its quoted name.
func (s *Schema) Hash() string {
	h := sha256.New()
	for _, f := range s.Fields {
		fmt.Fprintf(h, "%s %q\n", f.Kind, f.Name)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Differences returns how another schema differs from this one, a Difference for each column:
// first those that are missing there or of another kind, in this order, then those that only
// the other has. Columns in another order come last, and only if nothing else differs.
func (s *Schema) Differences(other *Schema) []Difference {
	var all []Difference
	for _, f := range s.Fields {
		switch i := other.Find(f.Name); {
		case i < 0:
			all = append(all, Difference{Column: f.Name, What: Lacking})
		case other.Fields[i].Kind != f.Kind:
			all = append(all, Difference{Column: f.Name, What: OtherKind, Want: f.Kind, Have: other.Fields[i].Kind})
		}
	}
	for _, f := range other.Fields {
		if s.Find(f.Name) < 0 {
			all = append(all, Difference{Column: f.Name, What: Extra})
		}
	}
	if len(all) > 0 {
		return all
	}
	for i, f := range s.Fields {
		if i < len(other.Fields) && other.Fields[i].Name != f.Name {
			all = append(all, Difference{Column: f.Name, What: OtherPlace})
		}
	}
	return all
}

// What is how a column differs.
type What string

// How a column of another schema differs.
const (
	Lacking    What = "is missing"
	Extra      What = "is one more"
	OtherKind  What = "is of another kind"
	OtherPlace What = "is at another place"
)

// Difference is one column that differs between two schemas. Want and Have matter for
// OtherKind.
type Difference struct {
	Column     string
	What       What
	Want, Have Kind
}

func (d Difference) String() string {
	if d.What == OtherKind {
		return fmt.Sprintf("column %q is a %s, not a %s", d.Column, d.Have, d.Want)
	}
	return fmt.Sprintf("column %q %s", d.Column, d.What)
}

// SchemaError says that a table or a member has the wrong columns.
type SchemaError struct {
	// Where names what differs: a file, or "member 3 of 4", counted from 1.
	Where string
	// Member is the number of the member that differs, from 1 in the order of Gather; 0 if
	// it is no member.
	Member      int
	Differences []Difference
}

// maxShown is how many differences an error spells out.
const maxShown = 5

func (e *SchemaError) Error() string {
	var text []string
	kinds := false
	for i, d := range e.Differences {
		kinds = kinds || d.What == OtherKind
		if i < maxShown {
			text = append(text, d.String())
		}
	}
	if more := len(e.Differences) - len(text); more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	remedy := ""
	if kinds {
		remedy = " (kinds were inferred from what each saw first: give all the same schema, or repair the values that are no numbers)"
	}
	if e.Where == "" {
		return "other columns: " + strings.Join(text, ", ") + remedy
	}
	return e.Where + " has other columns: " + strings.Join(text, ", ") + remedy
}

// Agree checks that all members of a flock have the same columns, and returns the schema with
// which all of them must read, in the order of the first member that has columns. A member
// without rows passes nil, and gets the schema of the others; likewise, a member that saw no
// value of a column gets its kind from the others. If a member lacks a column, has an extra
// one, or has one of another kind, every member gets the same *SchemaError, which names the
// member and the column.
//
// Kinds that differ are refused, although a category can hold numbers: one text among the numbers of
// one member would turn the column into categories for everybody, unnoticed. To allow that, give the
// kind when reading.
func Agree(ctx context.Context, flock Flock, schema *Schema) (*Schema, error) {
	if schema == nil {
		schema = &Schema{}
	}
	all, err := GatherJSON(ctx, flock, "schema", *schema)
	if err != nil {
		return nil, fmt.Errorf("gathering the schemas of all members: %w", err)
	}
	var agreed *Schema
	for i := range all {
		theirs := &all[i]
		if len(theirs.Fields) == 0 {
			continue
		}
		if agreed == nil {
			agreed = theirs
			continue
		}
		if apart := agreed.apart(theirs); len(apart) > 0 {
			return nil, &SchemaError{Where: fmt.Sprintf("member %d of %d", i+1, len(all)), Member: i + 1, Differences: apart}
		}
		agreed = agreed.with(theirs)
	}
	if agreed == nil {
		return nil, fmt.Errorf("none of %d members has a table", len(all))
	}
	for i := range agreed.Fields {
		agreed.Fields[i].Unseen = false
	}
	return agreed, nil
}

// apart are the differences because of which the rows of both cannot be read alike.
func (s *Schema) apart(other *Schema) (apart []Difference) {
	for _, d := range s.Differences(other) {
		unseen := d.What == OtherKind && (s.Fields[s.Find(d.Column)].Unseen || other.Fields[other.Find(d.Column)].Unseen)
		if d.What != OtherPlace && !unseen {
			apart = append(apart, d)
		}
	}
	return apart
}

// with is the schema that the rows of both can be read with, in the order of s: a column that only
// one of them has seen is as that one saw it.
func (s *Schema) with(other *Schema) *Schema {
	joined := &Schema{Fields: slices.Clone(s.Fields)}
	for i, f := range joined.Fields {
		if f.Unseen {
			joined.Fields[i] = other.Fields[other.Find(f.Name)]
		}
	}
	return joined
}
