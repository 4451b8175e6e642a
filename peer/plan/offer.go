package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MaxOffer is the most bytes that a member brings.
const MaxOffer = 4 << 20

const offerVersion = 1

// offer is a state with one member, as it is encoded.
type offer struct {
	Version int `json:"version"`
	State
}

// Encode makes the block for Gather, of a state whose one member is the one that brings it.
func Encode(s State) ([]byte, error) {
	block, err := json.Marshal(offer{offerVersion, s})
	if err == nil {
		_, err = decode(block)
	}
	return block, err
}

// decode reads the block of one member, and takes nothing that Encode would not make.
func decode(block []byte) (State, error) {
	var o offer
	decoder := json.NewDecoder(bytes.NewReader(block[:min(len(block), MaxOffer)]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil || len(block) > MaxOffer || decoder.More() {
		return State{}, fmt.Errorf("%w: %d bytes: want one object of %d bytes at most: %w", ErrInvalid, len(block), MaxOffer, err)
	}
	if o.Version != offerVersion || len(o.Members) != 1 {
		return State{}, fmt.Errorf("%w: version %d, %d members: want version %d and one member", ErrInvalid, o.Version, len(o.Members), offerVersion)
	}
	return o.State, o.Validate()
}

// Merge makes one state of the blocks that Gather returned. Where blocks differ in what a task or the weights are, or
// claim to be of one member, the first counts; a block that is invalid is left out, with an error that has its number,
// and its member if that can be read. If there is too much to plan, those that bring the most are left out. All members
// do the same. Now is the median: no one clock counts.
func Merge(blocks [][]byte) (s State, left []error) {
	offers, faults := make([]State, len(blocks)), make([]error, len(blocks))
	members := map[string]bool{}
	for i, block := range blocks {
		if offers[i], faults[i] = decode(block); faults[i] != nil {
			continue
		}
		if name := offers[i].Members[0].Name; members[name] {
			faults[i] = fmt.Errorf("%w: it is a second one of this member", ErrInvalid)
		} else {
			members[name] = true
		}
	}
	bound(offers, faults)
	var times []float64
	tasks := map[string]bool{}
	for i, o := range offers {
		if faults[i] != nil {
			left = append(left, fmt.Errorf("block %d of %.40q: %w", i, append(o.Members, Member{})[0].Name, faults[i]))
			continue
		}
		for _, t := range o.Tasks {
			if !tasks[t.Name] {
				tasks[t.Name], s.Tasks = true, append(s.Tasks, t)
			}
		}
		if s.Weights == (Weights{}) {
			s.Weights = o.Weights
		}
		s.Members, s.Done, s.Missed, times = append(s.Members, o.Members[0]), append(s.Done, o.Done...), append(s.Missed, o.Missed...), append(times, o.Now)
	}
	if slices.Sort(times); len(times) > 0 {
		s.Now = times[len(times)/2]
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Tasks, func(a, b Task) int { return strings.Compare(a.Name, b.Name) })
	return s, left
}

// bound leaves out the largest offers where all of them are more than can be planned: else one member could have the
// others left out.
func bound(offers []State, faults []error) {
	size := func(i int) int { return len(offers[i].Tasks) + len(offers[i].Done) + len(offers[i].Missed) }
	order := make([]int, len(offers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return size(a) - size(b) })
	tasks, parts := map[string]bool{}, 0
	for _, i := range order {
		if faults[i] != nil {
			continue
		}
		o, more := offers[i], 0
		for _, t := range o.Tasks {
			if !tasks[t.Name] {
				more++
			}
		}
		if parts += len(o.Done) + len(o.Missed); parts > maxParts || (len(tasks)+more)*len(offers) > maxPairs {
			parts, faults[i] = parts-len(o.Done)-len(o.Missed), fmt.Errorf("%w: there is too much to plan", ErrInvalid)
			continue
		}
		for _, t := range o.Tasks {
			tasks[t.Name] = true
		}
	}
}
