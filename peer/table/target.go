package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Target is what a learner is to predict. ParseTarget makes one: a column's name alone (a
// number, or its classes if it is a Category), or a comparison that is true or not.
type Target struct {
	Column string `json:"column"`
	// Op is "", ">", ">=", "<", "<=", "=" or "!=".
	Op    string `json:"op,omitempty"`
	Value string `json:"value,omitempty"`
	// Classes says that each number of a column of numbers is a class; without Op only.
	Classes bool `json:"classes,omitempty"`
}

// opposite maps each comparison to its negation.
var opposite = map[string]string{">": "<=", ">=": "<", "<": ">=", "<=": ">", "=": "!=", "!=": "="}

// ParseTarget reads "COLUMN", "COLUMN>15" (also >=, <, <=) or "COLUMN=VALUE" (also !=). Spaces
// around the parts are ignored.
func ParseTarget(text string) (Target, error) {
	at := strings.IndexAny(text, "<>=!")
	if at < 0 {
		at = len(text)
	}
	t := Target{Column: strings.TrimSpace(text[:at])}
	rest := text[at:]
	for _, op := range []string{">=", "<=", "!=", "==", ">", "<", "="} {
		if strings.HasPrefix(rest, op) {
			t.Op, t.Value = op, strings.TrimSpace(rest[len(op):])
			break
		}
	}
	if t.Op == "==" {
		t.Op = "="
	}
	const wanted = `want a column's name, or a comparison such as "delay>15" or "carrier=UA"`
	switch {
	case t.Column == "":
		return Target{}, fmt.Errorf("the target %q names no column: %s", text, wanted)
	case rest != "" && (t.Op == "" || t.Value == "" || strings.ContainsAny(t.Value[:1], "<>=!")):
		return Target{}, fmt.Errorf("the target %q compares column %q with nothing: %s", text, t.Column, wanted)
	case t.ordered():
		if _, err := t.number(); err != nil {
			return Target{}, err
		}
	}
	return t, nil
}

func (t Target) String() string { return t.Column + t.Op + t.Value }

// ordered says whether the target compares by size.
func (t Target) ordered() bool { return strings.ContainsAny(t.Op, "<>") }

// number is the value that the target compares with.
func (t Target) number() (float64, error) {
	v, err := strconv.ParseFloat(t.Value, 64)
	if err != nil || math.IsNaN(v) {
		return 0, fmt.Errorf("the target %q compares with %q, which is no number", t, t.Value)
	}
	return v, nil
}

// MaxClasses is how many classes a target may have.
const MaxClasses = 1000

// Reasons why a target cannot be learned; a *TargetError wraps one of them. Filters, shards and splits wrap ErrNoColumn too.
var (
	ErrNoColumn       = errors.New("the table has no such column")
	ErrTargetKind     = errors.New("the column is of another kind")
	ErrNoTarget       = errors.New("no row has a value of the target")
	ErrOneClass       = errors.New("all rows are of one class")
	ErrTooManyClasses = errors.New("there are too many classes")
)

// TargetError says why a target cannot be learned.
type TargetError struct {
	Target Target
	Err    error
	detail string
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("the target %q: %v%s", e.Target, e.Err, e.detail)
}

func (e *TargetError) Unwrap() error { return e.Err }

// check checks that a schema has the target's column, with the right kind.
func (t Target) check(schema *Schema) (Kind, error) {
	at := schema.Find(t.Column)
	if at < 0 {
		return 0, &TargetError{t, ErrNoColumn, fmt.Sprintf(" (it has %s)", strings.Join(schema.Names(), ", "))}
	}
	kind := schema.Fields[at].Kind
	if kind == Category && t.ordered() {
		return 0, &TargetError{t, ErrTargetKind, fmt.Sprintf(": %q is a category, which cannot be compared with %q", t.Column, t.Op)}
	}
	if kind == Number && t.Op != "" {
		if _, err := t.number(); err != nil {
			return 0, &TargetError{t, ErrTargetKind, fmt.Sprintf(": %q is a number, and %q is none", t.Column, t.Value)}
		}
	}
	return kind, nil
}

// Fit reads the target of all rows of all members once, and agrees on its classes. All
// members call it with the agreed schema, including those without rows. If the target has
// only one class in the whole flock, or no value at all, every member gets a *TargetError.
func (t Target) Fit(ctx context.Context, flock Flock, schema *Schema, rows Source) (*Labels, error) {
	flock = Careful(flock)
	kind, fault := t.check(schema)
	l := &Labels{Target: t}
	var counts map[string]int64 // of this member's rows; "" for all that have a number
	var missing int64
	named := t.Op == "" && (kind == Category || t.Classes) // each value is a class
	switch {
	case fault != nil:
	case named:
		counts, missing, fault = t.values(ctx, rows)
	default:
		if t.Op != "" {
			l.Classes = []string{Target{Column: t.Column, Op: opposite[t.Op], Value: t.Value}.String(), t.String()}
		}
		counts, missing, fault = l.count(ctx, rows)
	}
	err := Ready(ctx, flock, "ready", fault, t)
	if err == nil && named {
		l.Classes, err = t.classes(ctx, flock, counts)
	}
	if err != nil {
		return nil, err
	}
	vector := []float64{float64(missing)}
	if l.Classes == nil {
		vector = append(vector, float64(counts[""]))
	}
	for _, class := range l.Classes {
		vector = append(vector, float64(counts[class]))
	}
	sums, _, err := flock.Sum(ctx, "counts", vector)
	if err != nil {
		return nil, fmt.Errorf("counting the rows of the target %q: %w", t, err)
	}
	if err := Counts("counts", MaxCount, sums...); err != nil {
		return nil, err
	}
	return l.counted(sums)
}

// values counts the rows of each value of a column of categories; it stops when there are
// too many of them.
func (t Target) values(ctx context.Context, rows Source) (counts map[string]int64, missing int64, err error) {
	counts = map[string]int64{}
	for b, err := range rows(ctx) {
		if err != nil {
			return nil, 0, err
		}
		c, err := t.column(b)
		if err != nil {
			return nil, 0, err
		}
		_, none := CountValues(counts, c, MaxClasses)
		missing += none
	}
	return counts, missing, nil
}

// classes are the values that any member has, sorted.
func (t Target) classes(ctx context.Context, flock Flock, counts map[string]int64) ([]string, error) {
	all, err := GatherJSON(ctx, flock, "classes", slices.Sorted(maps.Keys(counts)))
	if err != nil {
		return nil, fmt.Errorf("gathering the classes of the target %q: %w", t, err)
	}
	classes := slices.Concat(all...)
	slices.Sort(classes)
	classes = slices.Compact(classes)
	if len(classes) > MaxClasses {
		return nil, &TargetError{t, ErrTooManyClasses, fmt.Sprintf(": %d, at most %d (is %q a name rather than a class?)", len(classes), MaxClasses, t.Column)}
	}
	return classes, nil
}

// column finds the target's column.
func (t Target) column(b *Batch) (*Column, error) {
	if c := b.Find(t.Column); c != nil && c.Kind == Number && t.Classes && t.Op == "" {
		return c.asCategory(), nil
	} else if c != nil {
		return c, nil
	}
	return nil, &TargetError{t, ErrNoColumn, ""}
}
