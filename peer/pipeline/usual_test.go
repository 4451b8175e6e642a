package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestWhatIsUsual: liars among the first, or many later, do not decide what is usual, and it follows honest errors.
func TestWhatIsUsual(t *testing.T) {
	errors := func(size float32) tensor.Vector { return tensor.Vector{size, -size} }
	rng := rand.New(rand.NewPCG(1, 2))
	honest := func(u *usual, size float64) bool {
		return u.check("a", 0, 1, errors(float32(size*math.Exp(rng.NormFloat64())))) == nil
	}
	u := newUsual()
	accepted := 0
	for i := range 3000 {
		if i%3 == 0 && u.check("a", 0, 1, errors(float32(90*math.Sqrt(max(u.mean, 1e-6))))) == nil {
			accepted++
		}
		if i%3 > 0 && !honest(&u, 0.01) {
			t.Fatalf("honest errors are refused after %d", i)
		}
	}
	if is := math.Sqrt(u.mean); is > 0.1 || accepted == 0 {
		t.Errorf("a liar of three who sends 90 times what is usual makes %g of 0.01, %d accepted", is, accepted)
	}
	if u.check("a", 0, 1, errors(1e3)) == nil || u.check("a", 0, -1e7, errors(0.01)) == nil {
		t.Error("what cannot be is accepted")
	}
	for range 20 * memory {
		honest(&u, 1e-5)
	}
	if u.check("a", 0, 1, errors(0.05)) != nil || u.check("a", 0, 1, errors(1e3)) == nil {
		t.Error("of a model that has learned, a hard example is refused, or what cannot be accepted")
	}
	u.forget("liar", 0)
	if u.check("liar", doubtFor-1, 1, errors(0.01)) == nil || u.check("liar", doubtFor, 1, errors(0.01)) != nil {
		t.Error("who made a step fail is believed at once, or not after a while")
	}
	for i := range 10 * maxDoubted {
		u.forget(transport.PeerID(fmt.Sprint("liar ", i)), time.Duration(i)*doubtFor)
	}
	if len(u.doubted) > maxDoubted {
		t.Errorf("%d members are remembered", len(u.doubted))
	}
	u.forget("", 0)
	for range learnedFrom {
		honest(&u, 1e-4)
	}
	refused := 0
	for refused < 2000 && !honest(&u, 0.1) {
		refused++
	}
	if refused == 0 || refused == 2000 {
		t.Errorf("errors that have grown are accepted after %d", refused)
	}
}
