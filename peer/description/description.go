// Package description says what a run is: its data, model, work, optimizer and whatever
// else its members have to have in common, as names and values. The first peer of a run
// signs its description; members pass it on to those who join, so that one that is set up
// otherwise hears so before it trains, and one that is not set up can take it over
// (peer.Admission.Inquire).
//
// A description is what somebody says of a run, not a proof: it keeps honest members from
// mistakes. Who may take part is for peer.Admission. Docs/design/032 has the reasons.
package description

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Bounds of a description.
const (
	// MaxFields is the most fields of one.
	MaxFields = 64
	// MaxName and MaxValue are the most bytes of a field's name and value.
	MaxName  = 40
	MaxValue = 400
	// MaxText is the most bytes of a description as text.
	MaxText = 4 << 10
)

// ErrInvalid: a text is no description, or is not signed by whom it names.
var ErrInvalid = errors.New("no valid description of a run")

// Description says what a run is. The zero value says nothing.
type Description struct {
	// Run is the name of the run.
	Run string `json:"run"`
	// Fields are in the order of their names, each of which is there once.
	Fields []Field `json:"fields"`
}

// Field is one thing that the members of a run have in common.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Local: members may differ in it, which costs nobody but themselves.
	Local bool `json:"local,omitempty"`
}

// Of is the description of a run with these fields, put in order.
func Of(run string, fields ...Field) Description {
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return Description{Run: run, Fields: fields}
}

// Value is that of a field; ok is false if there is none of that name.
func (d Description) Value(name string) (value string, ok bool) {
	for _, f := range d.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// Validate reports all faults at once.
func (d Description) Validate() error {
	var faults []error
	if len(d.Fields) > MaxFields {
		faults = append(faults, fmt.Errorf("%d fields, more than %d", len(d.Fields), MaxFields))
	}
	for i, f := range d.Fields {
		if f.Name == "" || len(f.Name) > MaxName || !printable(f.Name) {
			faults = append(faults, fmt.Errorf("field %d: name %q, want 1 to %d bytes of plain text", i, f.Name, MaxName))
		}
		if len(f.Value) > MaxValue || !printable(f.Value) {
			faults = append(faults, fmt.Errorf("field %q: a value of %d bytes, want at most %d of plain text", f.Name, len(f.Value), MaxValue))
		}
		if i > 0 && d.Fields[i-1].Name >= f.Name {
			faults = append(faults, fmt.Errorf("field %q after %q: want each name once, in order", f.Name, d.Fields[i-1].Name))
		}
	}
	if text, err := json.Marshal(d); err == nil && len(text) > MaxText {
		faults = append(faults, fmt.Errorf("%d bytes of text, more than %d", len(text), MaxText))
	}
	return errors.Join(faults...)
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// Difference is a field in which two descriptions differ.
type Difference struct {
	Field string `json:"field"`
	Here  string `json:"here"`
	There string `json:"there"`
	// Local: it is one in which members may differ.
	Local bool `json:"local,omitempty"`
}

// String describes it for people.
func (d Difference) String() string {
	return fmt.Sprintf("%s is %s here and %s there", d.Field, shown(d.Here), shown(d.There))
}

func shown(value string) string { return cmp.Or(value, "empty") }

// Differences are the fields in which a description differs from that of another member.
// Of what one of the two does not name nothing is known: members of different builds may
// have different fields.
func (d Description) Differences(there Description) (differences []Difference) {
	for _, f := range d.Fields {
		for _, t := range there.Fields {
			if f.Name == t.Name && f.Value != t.Value {
				differences = append(differences, Difference{f.Name, f.Value, t.Value, f.Local || t.Local})
			}
		}
	}
	return differences
}

// Only is the description with the fields of these names alone: a member that says nothing of
// the others is not compared by them.
func (d Description) Only(names ...string) Description {
	d.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f Field) bool { return !slices.Contains(names, f.Name) })
	return d
}

// Split parts the differences that would harm models or work from those of which to warn.
func Split(differences []Difference) (harmful, local []Difference) {
	for _, d := range differences {
		if d.Local {
			local = append(local, d)
		} else {
			harmful = append(harmful, d)
		}
	}
	return harmful, local
}

// MismatchError tells that a member of the run describes it otherwise than this peer.
type MismatchError struct {
	// Peer is the member.
	Peer transport.PeerID
	// Differences are those that would harm models or work; none is local.
	Differences []Difference
}

// Error lists each difference.
func (e *MismatchError) Error() string {
	texts := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		texts[i] = d.String()
	}
	return fmt.Sprintf("%s describes the run otherwise: %s", e.Peer, strings.Join(texts, "; "))
}
