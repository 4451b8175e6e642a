package sums

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// signer is an identity whose signatures anybody could make.
type signer ID

func (s signer) Self() ID { return ID(s) }

func (s signer) Sign(message []byte) ([]byte, error) { return signatureOf(ID(s), message), nil }

func (s signer) Verify(peer ID, message, signature []byte) bool {
	return slices.Equal(signatureOf(peer, message), signature)
}

func signatureOf(id ID, message []byte) []byte {
	signature := make([]byte, 64)
	copy(signature, id)
	copy(signature[32:], message)
	return signature
}

// keysOf are the keys of a member.
func keysOf(id ID) *mask.Keys {
	var random [32]byte
	copy(random[:], id)
	keys, err := mask.NewKeys("run", signer(id), random)
	if err != nil {
		panic(err)
	}
	return keys
}

// hides makes the sums of a world masked, or leaves them as they are.
func (w *world) hides(masked bool) *world {
	for _, m := range w.members {
		m.Keys = keysOf(m.self)
	}
	w.masked = masked
	return w
}

// hidden makes a call masked, if it adds and the world's sums are, and over the world's shape.
func (m *member) hidden(call Call) Call {
	if call.Op != Add {
		return call
	}
	if m.world.masked {
		call.Op, call.Exponent = Masked, mask.Exponent(call.Vector...)
		call.Nonce = mask.Nonce(fmt.Appendf(nil, "%02d%6.6s", m.index, call.Name))
	}
	call.Op = call.Op.Over(m.world.shape)
	return call
}

// TestMaskedSums shows masked sums of all lengths, the same as sums without masks where all are integers.
func TestMaskedSums(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, length := range []int{0, 1, 2, 3, 4, 5, 1000, 1001, 1002, 40000, 40001, 40002} {
			w := newWorld(t, uint64(n), n).hides(true).over(uint64(length))
			for _, m := range w.members {
				for i := range 2 {
					m.calls = append(m.calls, m.hidden(callOf(m, i, length)))
				}
				w.after(w.upTo(time.Second), m.next)
			}
			w.run(time.Minute)
			if n >= mask.Least {
				w.check(uint64(n), 2)
				continue
			}
			for _, m := range w.members {
				if r := m.results; len(r) != 2 || !errors.Is(r[0].Err, ErrTooFew) {
					t.Errorf("%d members have %+v", n, r)
				}
			}
		}
	}
}

// TestManyMasked shows a masked sum of more than have masks with all others, also where one does not tell its seed.
func TestManyMasked(t *testing.T) {
	const n = 80
	for i := range 6 {
		silent := i%2 == 1
		w := newWorld(t, 1, n).hides(true).over(uint64(i / 2))
		for _, m := range w.members {
			m.calls = []Call{m.hidden(Call{Name: "x", Vector: []float64{1, float64(m.index)}, Timeout: time.Minute})}
			w.after(w.upTo(20*time.Millisecond), m.next)
		}
		if silent {
			w.members[n/2].lie = says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { return Stage(w.Stage) != Told })
		}
		w.run(2 * time.Minute)
		for _, m := range w.members {
			if m.lie != nil {
				continue
			}
			if len(m.results) != 1 || m.results[0].Err != nil || !slices.Equal(m.results[0].Vector, []float64{n, n * (n - 1) / 2}) {
				t.Fatalf("one silent: %t, over a %s: %s has %+v", silent, w.shape, m.self, m.results)
			}
		}
	}
}

// TestTooManyMasked shows that a masked sum of more than a list holds fails, with a text that says so.
func TestTooManyMasked(t *testing.T) {
	s := newSolo(t)
	all := []ID{s.self}
	for i := range mask.Most + 1 {
		all = append(all, name(i))
	}
	s.View(0, all)
	status := brought{Exponent: 1}
	masks, _ := binary.Append(nil, binary.LittleEndian, status)
	for question := uint32(0); question < 2; question++ { // the second time as an answer
		for _, id := range all[1:] {
			s.hears(id, wire.SumStatus, wire.Sum{Op: uint8(Masked), Masks: masks, Question: question})
		}
	}
	s.now = time.Second
	s.Tick(s.now) // it waits no more for itself
	if w := s.told(all[1], wire.SumFault); w == nil || w.Op != codeOf(ErrMismatch) || !strings.Contains(w.Detail, "at most 1024") {
		t.Errorf("%s is told %+v", all[1], w)
	}
}

// TestOneThatTellsNoSeed shows that a sum of four or more is made all the same, since its neighbours tell the seed of
// one that has the sum and does not tell its own, and the next without it; and that of three it fails, and names it.
func TestOneThatTellsNoSeed(t *testing.T) {
	keeps := says(wire.SumStatus, func(_ *member, w *wire.Sum) bool {
		if Stage(w.Stage) == Told {
			w.Stage, w.Masks = uint8(Holding), w.Masks[:len(w.Masks):len(w.Masks)]
		}
		return true
	})
	for n := 3; n < 7; n++ {
		w := newWorld(t, uint64(n), n).hides(true)
		for _, m := range w.members {
			m.calls = []Call{m.hidden(callOf(m, 0, 100)), m.hidden(callOf(m, 1, 100))}
			w.after(w.upTo(20*time.Millisecond), m.next)
		}
		w.members[n-1].lie = keeps
		w.run(time.Hour)
		for _, m := range w.members[:n-1] {
			first, second := m.results[0], m.results[1]
			switch {
			case n == 3 && (!errors.Is(first.Err, ErrTooFew) || !strings.Contains(first.Err.Error(), string(w.members[2].self))):
				t.Errorf("of three %s has %v", m.self, first.Err)
			case n > 3 && (first.Err != nil || first.Peers != n || first.Vector[99] != float64(uint64(1)<<n-1)):
				t.Errorf("of %d %s has %v of %d, %v", n, m.self, first.Vector, first.Peers, first.Err)
			case n > 4 && (second.Err != nil || second.Peers != n-1):
				t.Errorf("of %d %s then has a sum of %d, %v", n, m.self, second.Peers, second.Err)
			}
		}
		if w.now > 3*time.Minute {
			t.Errorf("two sums of %d took %s", n, w.now)
		}
	}
}

// TestOneThatClaimsToHaveTold shows that a sum of four or more is made without one that says it has told the seed of an
// attempt that nobody else knows, and so is the next.
func TestOneThatClaimsToHaveTold(t *testing.T) {
	claims := says(wire.SumStatus, func(_ *member, w *wire.Sum) bool {
		if b, sound := readBrought(w); sound && Op(w.Op).masked() {
			b.tells, w.Stage, w.Attempt = tells{Size: 4, Seed: mask.Seed{1}}, uint8(Told), 77<<16
			w.Masks, _ = binary.Append(nil, binary.LittleEndian, b)
		}
		return true
	})
	for n := 4; n < 8; n++ {
		w := newWorld(t, uint64(n), n).hides(true)
		for _, m := range w.members {
			m.calls = []Call{m.hidden(callOf(m, 0, 100)), m.hidden(callOf(m, 1, 100))}
			w.after(w.upTo(20*time.Millisecond), m.next)
		}
		w.members[n-1].lie = claims
		w.run(time.Hour)
		for _, m := range w.members[:n-1] {
			if len(m.results) != 2 || m.longest > 3*time.Minute {
				t.Errorf("of %d %s has %d results, the last after %s", n, m.self, len(m.results), m.longest)
			}
			for _, r := range m.results {
				if r.Err != nil || r.Peers != n-1 {
					t.Errorf("of %d %s has %+v", n, m.self, r)
				}
			}
		}
	}
}

// TestAStreamThatBreaksWhileSeedsAreTold shows that a sum is made without the seed of a silent one also where a stream
// between two others has broken once all held it: neither of these is thrown out.
func TestAStreamThatBreaksWhileSeedsAreTold(t *testing.T) {
	for n := 4; n < 8; n++ {
		w := newWorld(t, uint64(n), n).hides(true)
		for _, m := range w.members {
			m.calls = []Call{m.hidden(callOf(m, 0, 100))}
			w.after(w.upTo(20*time.Millisecond), m.next)
		}
		w.members[n-1].lie = says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { return Stage(w.Stage) != Told })
		w.after(3*time.Second, func() {
			m := w.members[1]
			if own := m.open["sum 0"].own; own.stage != Told || !own.current.has(w.members[0].self) {
				t.Fatalf("of %d %s is at stage %d, with partners %s", n, m.self, own.stage, own.current.partners)
			}
			m.Broken(w.now, w.members[0].self)
			m.settle()
		})
		w.run(2 * time.Minute)
		for _, m := range w.members[:n-1] {
			if r := m.results; len(r) != 1 || r[0].Err != nil || r[0].Peers != n {
				t.Errorf("of %d %s has %+v", n, m.self, r)
			}
		}
	}
}

// placed is what a place of an attempt says to the member m, to whom the others are ids, in the order of ranks.
func placed(s *solo, attempt uint64, exponent int, ids ...ID) wire.Sum {
	list, cards, own := binary.LittleEndian.AppendUint16(nil, uint16(int16(exponent))), []byte(nil), 0
	for rank, id := range ids {
		list = append(append(list, mask.Tag(id)...), 1, 2, 3, 4, 5, 6, 7, 8)
		if id == s.self {
			own = rank
			continue
		}
		card := keysOf(id).Card
		cards = append(cards, card[:]...)
	}
	w := wire.Sum{Attempt: attempt, Size: uint32(len(ids)), Rank: uint32(own), Op: uint8(Masked), Masks: append(list, cards...)}
	for _, rank := range partners(schedule(Masked, own, len(ids), 0)) {
		w.Partners = append(w.Partners, string(ids[rank]))
	}
	return w
}

// hides is the member m among a, b, c and d, which calls a masked sum of at least so many.
func hides(t *testing.T, least int) *solo {
	s := newSolo(t, "a", "b", "c", "d")
	s.Keys = keysOf("m")
	s.Call(0, Call{Name: "x", Op: Masked, Vector: []float64{1}, Least: least, Timeout: time.Second, Exponent: 1, Nonce: mask.Nonce{1, 2, 3, 4, 5, 6, 7, 8}})
	return s
}

// TestPlacesThatHideTooLittle shows which places of a masked sum are not taken.
func TestPlacesThatHideTooLittle(t *testing.T) {
	sound := func(s *solo) wire.Sum { return placed(s, 7, 1, "m", "a", "b", "c") }
	for what, c := range map[string]struct {
		least int
		place func(s *solo) wire.Sum
		taken bool
	}{
		"sound":                  {3, sound, true},
		"fewer than it asks for": {5, sound, false},
		"of two":                 {1, func(s *solo) wire.Sum { return placed(s, 7, 1, "m", "a") }, false},
		"with a stranger":        {1, func(s *solo) wire.Sum { return placed(s, 7, 1, "m", "a", "b", "z") }, false},
		"with one twice":         {1, func(s *solo) wire.Sum { return placed(s, 7, 1, "m", "a", "b", "a") }, false},
		"for less than it has":   {1, func(s *solo) wire.Sum { return placed(s, 7, 0, "m", "a", "b", "c") }, false},
		"beyond all floats":      {1, func(s *solo) wire.Sum { return placed(s, 7, 1025, "m", "a", "b", "c") }, false},
		"with another's nonce": {1, func(s *solo) wire.Sum {
			w := sound(s)
			w.Masks[2+mask.TagSize]++
			return w
		}, false},
		"with a key that nobody signed": {1, func(s *solo) wire.Sum {
			w := sound(s)
			w.Masks[len(w.Masks)-1]++
			return w
		}, false},
		"with fewer keys": {1, func(s *solo) wire.Sum {
			w := sound(s)
			w.Masks = w.Masks[:len(w.Masks)-1]
			return w
		}, false},
		"without a list": {1, func(s *solo) wire.Sum {
			w := sound(s)
			w.Masks = nil
			return w
		}, false},
		"with partners at other ranks": {1, func(s *solo) wire.Sum {
			w := sound(s)
			slices.Reverse(w.Partners)
			return w
		}, false},
	} {
		s := hides(t, c.least)
		s.hears("a", wire.SumPlace, c.place(s))
		if p := s.open["x"].own; (p.stage == Placed) != c.taken || !c.taken && p.current != nil {
			t.Errorf("a place %s: taken %t, want %t", what, p.stage == Placed, c.taken)
		}
	}
}

// TestSeedsAreToldOnce shows that a member that has told its seed takes no other place in a sum of the name, not even
// if the call is made anew, does not give the attempt up, and tells for no second one that is silent.
func TestSeedsAreToldOnce(t *testing.T) {
	s := hides(t, 3)
	s.hears("a", wire.SumPlace, placed(s, 7, 1, "m", "a", "b", "c"))
	p := s.open["x"].own
	s.hears("a", wire.SumReveal, wire.Sum{Attempt: 7})
	if p.stage != Placed {
		t.Error("it tells a seed before it has the sum")
	}
	p.stage = Holding
	tells := func(w wire.Sum) tells {
		s.hears("a", wire.SumReveal, w)
		b, _ := readBrought(s.told("a", wire.SumStatus))
		return b.tells
	}
	if b := tells(wire.Sum{Attempt: 7}); p.stage != Told || b.Size != 4 || b.Missing != 0 || b.Seed != p.masks.Seed() {
		t.Fatalf("it tells %+v", b)
	}
	s.hears("a", wire.SumReveal, wire.Sum{Attempt: 7, Size: 4, Rank: 0})
	if p.Missing != 0 {
		t.Error("it tells for itself")
	}
	if b := tells(wire.Sum{Attempt: 7, Size: 4, Rank: 2}); b.Missing != 3 || !bytes.Equal(b.Piece[:], p.masks.Piece(2)) {
		t.Errorf("it tells %+v of one that is silent", b)
	}
	if s.hears("a", wire.SumReveal, wire.Sum{Attempt: 7, Size: 4, Rank: 1}); p.Missing != 3 {
		t.Error("it tells for two")
	}
	s.hears("a", wire.SumVoid, wire.Sum{Attempt: 7})
	s.hears("a", wire.SumPlace, placed(s, 9, 1, "m", "a", "b", "c"))
	if p.stage != Told || p.attempt != 7 {
		t.Errorf("it has a place in attempt %d, and is at %d", p.attempt, p.stage)
	}
	s.Cancel(0, "x")
	s.Outcomes()
	s.Call(0, Call{Name: "x", Op: Masked, Vector: []float64{1}})
	if out := s.Outcomes(); s.open["x"] != nil || len(out) != 1 || !errors.Is(out[0].Result.Err, ErrOver) {
		t.Errorf("it may sum again: %+v", out)
	}
}

// TestEnoughTellTheirOwn shows that a member tells for one that is silent only if as many as it asks for tell their own.
func TestEnoughTellTheirOwn(t *testing.T) {
	for least, want := range map[int]uint32{1: 3, 3: 3, 4: 0} {
		s := hides(t, least)
		s.hears("a", wire.SumPlace, placed(s, 7, 1, "m", "a", "b", "c"))
		p := s.open["x"].own
		p.stage = Holding
		if s.hears("a", wire.SumReveal, wire.Sum{Attempt: 7, Size: 4, Rank: 2}); p.Missing != want {
			t.Errorf("at least %d: it tells for %d, want %d", least, p.Missing, want)
		}
	}
}

// TestSeedsThatAreNotRight shows that a COMMIT with other seeds, or without, is an error.
func TestSeedsThatAreNotRight(t *testing.T) {
	for _, seeds := range [][]byte{nil, make([]byte, 3*16), make([]byte, 4*16)} {
		s := hides(t, 3)
		s.hears("a", wire.SumPlace, placed(s, 7, 1, "m", "a", "b", "c"))
		s.open["x"].own.stage = Holding
		s.Outcomes()
		s.hears("a", wire.SumCommit, wire.Sum{Attempt: 7, Term: 1, Op: uint8(Masked), Masks: seeds})
		if out := s.Outcomes(); len(out) != 1 || out[0].Result == nil || !errors.Is(out[0].Result.Err, ErrOver) || out[0].Result.Vector != nil {
			t.Errorf("%d bytes of seeds: %+v", len(seeds), out)
		}
	}
}

// FuzzMasks has a participant and a coordinator of a masked sum hear any bytes.
func FuzzMasks(f *testing.F) {
	s := newSolo(&testing.T{}, "a", "b", "c", "d")
	f.Add(placed(s, 7, 1, "m", "a", "b", "c").Masks, uint32(4))
	f.Add(make([]byte, binary.Size(brought{})), uint32(3))
	f.Fuzz(func(t *testing.T, masks []byte, size uint32) {
		s := hides(t, 3)
		place := placed(s, 7, 1, "m", "a", "b", "c")
		place.Masks = masks
		s.hears("a", wire.SumPlace, place)
		s.hears("a", wire.SumReveal, wire.Sum{Attempt: 7, Size: size})
		l := leads(t, "o")
		l.Cancel(0, "x")
		for _, id := range []ID{"n", "o"} {
			for _, stage := range []Stage{Waiting, Holding, Told} {
				l.Receive(0, id, wire.Sum{Kind: wire.SumStatus, Name: "y", Op: uint8(Masked), Stage: uint8(stage), Attempt: 9, Masks: masks})
			}
		}
	})
}
