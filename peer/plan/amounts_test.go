package plan

import (
	"encoding/json"
	"errors"
	"testing"
)

// TestAmountsThatAreHardlyAny: a link or a cost next to 0 is refused, and the others are planned without who brings it. With such a link
// a sample takes longer than a number can say, and to plan never ended; with such a cost it takes no time, and the bound was no number.
func TestAmountsThatAreHardlyAny(t *testing.T) {
	good := func(name string) State {
		return State{Members: []Member{{Name: name, Speed: 1e30, Link: 1e-9}}, Tasks: []Task{{Name: "of " + name, Kind: Epoch, Samples: maxSamples, Cost: 1e-9, Bytes: 1e30}}}
	}
	block, err := Encode(good("a"))
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(s *State){
		"a link": func(s *State) { s.Members[0].Link = 1e-300 },
		"a cost": func(s *State) { s.Tasks[0].Cost = 1e-300 },
	} {
		bad := good("b")
		spoil(&bad)
		text, err := json.Marshal(offer{offerVersion, bad})
		if err != nil {
			t.Fatal(err)
		}
		s, left := Merge([][]byte{block, text})
		if err := bad.Validate(); !errors.Is(err, ErrInvalid) || len(left) != 1 || len(s.Members) != 1 {
			t.Errorf("%s: %v; left out are %v", what, err, left)
			continue
		}
		p, err := Make(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(p); err != nil || len(p.Assignments) != 1 {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
}
