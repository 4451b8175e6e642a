package sim_test

import (
	"slices"
	"testing"
)

// pulls are what the honest saw of their partners over a training.
type pulls struct {
	honest, liar float64        // the largest of an honest partner, the least of a liar
	named        map[string]int // by how many each partner was named
	met          map[string]int // how many exchanged with each often enough to tell
}

// watch looks at the pulls that the honest have seen so far.
func (seen *pulls) watch(f *flock, b patientFlock, liars []int) {
	clear(seen.met)
	for i, r := range f.replicas {
		if slices.Contains(liars, i) {
			continue
		}
		for _, pull := range r.Biases(b.peers) {
			seen.met[pull.Partner]++
			if _, news := r.OneSided(pull.Partner); news {
				seen.named[pull.Partner]++
			}
			if b.isLiar(liars, pull.Partner) {
				seen.liar = min(seen.liar, pull.Ratio)
			} else {
				seen.honest = max(seen.honest, pull.Ratio)
			}
		}
	}
}

func (patientFlock) isLiar(liars []int, partner string) bool {
	return slices.ContainsFunc(liars, func(i int) bool { return string(nameOf(i)) == partner })
}

// TestALiarOfOneDirectionIsNamed: who pushes whomever it meets always the same way is named
// by most of these. Honest partners are not, however unlike their data. Most of these flocks are
// those of TestAPatientLiarCostsLittle.
func TestALiarOfOneDirectionIsNamed(t *testing.T) {
	t.Parallel()
	d := loadBesieged(t)
	flocks := []patientFlock{
		{peers: 16, every: 1, dirichlet: 0.1},
		{peers: 16, every: 4, dirichlet: 0.1},
		{peers: 4, every: 4, dirichlet: 0.1},
		{peers: 16, every: 4},
		{peers: 16, every: 1, codec: "lattice6+4"},
		{peers: 16, liars: 1, every: 4, dirichlet: 0.1},
		{peers: 16, liars: 3, every: 1},
		{peers: 16, liars: 3, every: 1, codec: "lattice6+4"},
	}
	if *tables {
		flocks = append(flocks,
			patientFlock{peers: 16, every: 4, dirichlet: 0.1, codec: "lattice6+4"},
			patientFlock{peers: 16, liars: 1, every: 1, dirichlet: 0.1},
		)
	}
	for _, b := range flocks {
		b.epochs = 2
		seen := d.withstand(t, b).pulls
		liars, met := b.lying(t), map[string]int{}
		for _, liar := range liars {
			met[string(nameOf(liar))] = seen.met[string(nameOf(liar))]
		}
		t.Logf("%d of %d lie, an exchange every %d steps, Dirichlet %g, %s: honest partners pull %.2f at most, liars %.2f at least; of liars met by %v, named by %v",
			b.liars, b.peers, b.every, b.dirichlet, cmpOr(b.codec, "raw"), seen.honest, seen.liar, met, seen.named)
		for partner := range seen.named {
			if !b.isLiar(liars, partner) {
				t.Errorf("%s is honest, and was named", partner)
			}
		}
		for _, liar := range liars {
			name := string(nameOf(liar))
			if 2*seen.named[name] <= seen.met[name] {
				t.Errorf("%s lies, and of %d that have met it often %d have named it", name, seen.met[name], seen.named[name])
			}
		}
	}
}
