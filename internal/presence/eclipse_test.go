package presence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/topology"
)

// siege is a flock in which somebody makes up identities until as many as possible of
// one member's neighbours are his. He knows the rule, and how everybody stands; what
// he does not know is what is kept to oneself.
type siege struct {
	rng    *rand.Rand
	honest []topology.Member
	victim topology.PeerID
}

// newSiege is a flock of 32 actives and 32 passives.
func newSiege(seed uint64, victim topology.Role) *siege {
	s := &siege{rng: rand.New(rand.NewPCG(seed, 6))}
	for i := range 64 {
		role := topology.Active + topology.Role(i%2)
		s.honest = append(s.honest, topology.Member{ID: s.name("honest"), Role: role})
		if role == victim {
			s.victim = s.honest[i].ID
		}
	}
	return s
}

func (s *siege) name(of string) topology.PeerID {
	return topology.PeerID(fmt.Sprintf("%s-%016x", of, s.rng.Uint64()))
}

func (s *siege) isHonest(id topology.PeerID) bool {
	return slices.ContainsFunc(s.honest, func(m topology.Member) bool { return m.ID == id })
}

// overlay is that of the honest and others.
func (s *siege) overlay(t *testing.T, others []topology.Member) *topology.Overlay {
	t.Helper()
	view, err := topology.NewView(slices.Concat(s.honest, others))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

// hostile is the share of a member's neighbours that are made up.
func (s *siege) hostile(ids []topology.PeerID) float64 {
	bad := 0
	for _, id := range ids {
		if !s.isHonest(id) {
			bad++
		}
	}
	return float64(bad) / float64(len(ids))
}

// surround makes up identities of one class, exchanging them as long as that gains
// neighbours of the victim.
func (s *siege) surround(t *testing.T, count int, class topology.Role) []topology.Member {
	t.Helper()
	crew := make([]topology.Member, count)
	for i := range crew {
		crew[i] = topology.Member{ID: s.name("made-up"), Role: class}
	}
	best := s.hostile(s.overlay(t, crew).Neighbours(s.victim))
	for range 1500 {
		if best == 1 {
			break
		}
		at := s.rng.IntN(count)
		old := crew[at]
		crew[at].ID = s.name("made-up")
		if got := s.hostile(s.overlay(t, crew).Neighbours(s.victim)); got >= best {
			best = got
		} else {
			crew[at] = old
		}
	}
	return crew
}

// honestAmong counts the honest among some.
func (s *siege) honestAmong(ids []topology.PeerID) (n int) {
	for _, id := range ids {
		if s.isHonest(id) {
			n++
		}
	}
	return n
}

// lived are the partners of a peer that has lived through exchanges.
var lived = []topology.PeerID{"one", "two", "three"}

// TestAttackEclipse: whoever makes up as many passives as there are honest ones has
// nearly all neighbours of a member that he has picked, and none of the partners that
// it has chosen before: of those at least minAnchors stay. One that comes under siege
// knowing nobody has at least one honest partner most of the time.
func TestAttackEclipse(t *testing.T) {
	t.Parallel()
	const sieges = 12
	var neighbours, before, after, lucky float64
	for seed := range uint64(sieges) {
		s := newSiege(seed, topology.Active)
		settled := anchors{secret: []byte(s.name("secret")), lived: lived}
		settled.hold(s.overlay(t, nil), s.victim)
		crew := s.surround(t, 32, topology.Passive)
		besieged := s.overlay(t, crew)

		plain := besieged.Neighbours(s.victim)
		neighbours += s.hostile(plain) / sieges
		with := settled.hold(besieged, s.victim).Neighbours(s.victim)
		before += s.hostile(with) / sieges
		if got := s.honestAmong(settled.kept); got != minAnchors {
			t.Errorf("siege %d: %d of the partners chosen before are left, want %d", seed, got, minAnchors)
		}
		if got := s.honestAmong(with); got < minAnchors {
			t.Errorf("siege %d: %d honest partners among %d", seed, got, len(with))
		}

		joiner := anchors{secret: []byte(s.name("secret"))}
		with = joiner.hold(besieged, s.victim).Neighbours(s.victim)
		after += s.hostile(with) / sieges
		if s.honestAmong(joiner.kept) > 0 {
			lucky += 1.0 / sieges
		}

		remembering := anchors{secret: []byte(s.name("secret"))}
		for _, m := range s.honest[:8] {
			remembering.proved(m.ID, func(topology.PeerID) bool { return true })
		}
		remembering.hold(besieged, s.victim)
		if got := s.honestAmong(remembering.kept); got != minAnchors {
			t.Errorf("siege %d: of the partners of one that remembers, %d are honest, want %d", seed, got, minAnchors)
		}
	}
	if neighbours < 0.7 {
		t.Errorf("the siege is too weak to show anything: %.2f of the neighbours are hostile", neighbours)
	}
	if before > 0.9 {
		t.Errorf("%.2f of the partners are hostile in spite of anchors", before)
	}
	if lucky < 0.6 {
		t.Errorf("only %.2f of the newcomers have an honest anchor", lucky)
	}
	t.Logf("32 made-up passives against 32 honest ones: %.0f %% of the neighbours are hostile, %.0f %% of the partners with anchors from before, %.0f %% with those of a newcomer, of whom %.0f %% have an honest one",
		100*neighbours, 100*before, 100*after, 100*lucky)
}

// TestAttackEclipseOfAPassive: a passive member takes whoever comes. He who has all its
// neighbours cannot keep away those who have chosen it by lot.
func TestAttackEclipseOfAPassive(t *testing.T) {
	t.Parallel()
	const sieges = 12
	var hostile, chosen float64
	for seed := range uint64(sieges) {
		s := newSiege(seed, topology.Passive)
		held := make(map[topology.PeerID]*anchors)
		for _, m := range s.honest {
			held[m.ID] = &anchors{secret: []byte(s.name("secret")), lived: lived}
			held[m.ID].hold(s.overlay(t, nil), m.ID)
		}
		besieged := s.overlay(t, s.surround(t, 32, topology.Active))
		hostile += s.hostile(besieged.Neighbours(s.victim)) / sieges
		for id, a := range held {
			if slices.Contains(a.hold(besieged, id).Neighbours(id), s.victim) {
				chosen += 1.0 / sieges
			}
		}
	}
	if chosen < 2 {
		t.Errorf("%.1f honest members on average come to the victim by choice", chosen)
	}
	t.Logf("32 made-up actives against 32 honest ones: %.0f %% of a passive's neighbours are hostile; %.1f honest members come to it all the same", 100*hostile, chosen)
}

// TestAnchorsOfNewcomersDiffer: whom a joiner sees first is not its anchor for ever, or
// the first members of a flock would be everybody's.
func TestAnchorsOfNewcomersDiffer(t *testing.T) {
	s := newSiege(1, topology.Active)
	first := s.honest[:0:0]
	for _, m := range s.honest {
		if m.Role == topology.Passive && len(first) < minAnchors {
			first = append(first, m)
		}
	}
	early, err := topology.NewView(append(first, topology.Member{ID: s.victim, Role: topology.Active}))
	if err != nil {
		t.Fatal(err)
	}
	few, err := topology.NewOverlay(early)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i := range 20 {
		a := anchors{secret: []byte{byte(i)}}
		a.hold(few, s.victim)
		a.hold(s.overlay(t, nil), s.victim)
		for _, m := range first {
			if slices.Contains(a.kept, m.ID) {
				same++
			}
		}
	}
	if same > 20*minAnchors/3 {
		t.Errorf("%d of %d anchors are those that were seen first", same, 20*minAnchors)
	}
}

// TestAnchorsStay: anchors change only when they must.
func TestAnchorsStay(t *testing.T) {
	s := newSiege(1, topology.Active)
	a := anchors{secret: []byte("secret"), lived: lived}
	a.hold(s.overlay(t, nil), s.victim)
	first := slices.Clone(a.kept)
	if len(first) != minAnchors {
		t.Fatalf("%d anchors, want %d", len(first), minAnchors)
	}
	var crew []topology.Member
	for range 20 {
		crew = append(crew, topology.Member{ID: s.name("newcomer"), Role: topology.Passive})
		a.hold(s.overlay(t, crew), s.victim)
	}
	if !slices.Equal(a.kept, first) {
		t.Errorf("newcomers have moved the anchors from %v to %v", first, a.kept)
	}
	s.honest = slices.DeleteFunc(s.honest, func(m topology.Member) bool { return m.ID == first[1] })
	a.hold(s.overlay(t, crew), s.victim)
	if len(a.kept) != minAnchors || !slices.Contains(a.kept, first[0]) || !slices.Contains(a.kept, first[2]) || slices.Contains(a.kept, first[1]) {
		t.Errorf("after one of %v has gone, the anchors are %v", first, a.kept)
	}
}
