package mask

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// identity is an Ed25519 key, whose id is the public key.
type identity ed25519.PrivateKey

func (i identity) Self() transport.PeerID {
	return transport.PeerID(ed25519.PrivateKey(i).Public().(ed25519.PublicKey))
}

func (i identity) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(ed25519.PrivateKey(i), message), nil
}

func (i identity) Verify(peer transport.PeerID, message, signature []byte) bool {
	return len(peer) == ed25519.PublicKeySize && ed25519.Verify(ed25519.PublicKey(peer), message, signature)
}

// keysOf are the keys of the i-th member in a life.
func keysOf(t testing.TB, run string, i, life byte) *Keys {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = i + 1
	keys, err := NewKeys(run, identity(ed25519.NewKeyFromSeed(seed)), [32]byte{i + 1, life})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// listOf is a list of n participants.
func listOf(n, exponent int) []byte {
	list := binary.LittleEndian.AppendUint16(nil, uint16(int16(exponent)))
	for i := range n {
		list = append(append(list, Tag(transport.PeerID(fmt.Sprint("member ", i)))...), byte(i), 0, 0, 0, 0, 0, 0, 7)
	}
	return list
}

// masksOf are the masks of all of a roster, each of whom is told what other says of it.
func masksOf(n int, roster func(rank int) *Roster) (all []*Masks) {
	for rank := range n {
		r := roster(rank)
		var secrets [][]byte
		for _, other := range r.Neighbours(rank) {
			secrets = append(secrets, fmt.Appendf(nil, "the secret of %d and %d, of 32 bytes", min(rank, other), max(rank, other)))
		}
		all = append(all, New(r, rank, secrets))
	}
	return all
}

// TestMasksCancel shows that masks of all add up to the second masks, whose seeds all tell, or one's neighbours do; in
// small groups, where all are neighbours, and in large ones.
func TestMasksCancel(t *testing.T) {
	for _, n := range []int{3, 4, 7, 64, 65, 200} {
		r := NewRoster("x", 7, listOf(n, 0))
		sum, want := make([]uint64, 5000), make([]uint64, 5000)
		var seeds []byte
		masks := masksOf(n, func(int) *Roster { return r })
		for rank, m := range masks {
			words := make([]uint64, len(sum))
			for i := range words {
				words[i] = uint64(rank * i)
				want[i] += words[i]
			}
			m.Hide(words)
			for i := range sum {
				sum[i] += words[i]
			}
			seed := m.Seed()
			seeds = append(seeds, seed[:]...)
			var pieces [][]byte
			for _, other := range masks {
				if p := other.Piece(rank); p != nil {
					pieces = append(pieces, p)
				}
			}
			if len(pieces) != len(r.Neighbours(rank)) || Join(pieces) != seed {
				t.Errorf("of %d, %d neighbours of %d tell another seed than it tells itself", n, len(pieces), rank)
			}
		}
		if slices.Equal(sum, want) {
			t.Errorf("the sum of %d is open before all have told", n)
		}
		if Open(sum, seeds); !slices.Equal(sum, want) {
			t.Errorf("the sum of %d is %x…, want %x…", n, sum[:2], want[:2])
		}
	}
}

// TestOtherRostersDoNotCancel shows that masks do not add up to nothing if one is told another list, attempt, name or
// exponent than the others.
func TestOtherRostersDoNotCancel(t *testing.T) {
	const n = 5
	list := listOf(n, 3)
	another := slices.Clone(list)
	another[len(another)-1]++ // another nonce of the last
	for what, other := range map[string]*Roster{
		"list": NewRoster("x", 7, another), "attempt": NewRoster("x", 8, list), "name": NewRoster("y", 7, list), "exponent": NewRoster("x", 7, listOf(n, 4)),
	} {
		sum := make([]uint64, 3)
		for _, m := range masksOf(n, func(rank int) *Roster {
			if rank == 2 {
				return other
			}
			return NewRoster("x", 7, list)
		}) {
			m.Hide(sum)
			seed := m.Seed()
			seed.add(sum, -1)
		}
		if slices.Contains(sum, 0) {
			t.Errorf("with another %s the masks add up to %x", what, sum)
		}
	}
}

// TestNeighbours shows that beyond 64 each has about twice the logarithm, that both of a pair say so, and that all
// are connected, without any tenth of them too.
func TestNeighbours(t *testing.T) {
	for _, n := range []int{3, 64, 65, 100, 1000} {
		r := NewRoster("x", 1, listOf(n, 0))
		of := make([][]int, n)
		for rank := range n {
			of[rank] = r.Neighbours(rank)
			want := n - 1
			if n > 64 {
				want = 2 * int(math.Ceil(math.Log2(float64(n))))
			}
			if compact := slices.Compact(slices.Clone(of[rank])); len(compact) != want || slices.Contains(compact, rank) {
				t.Fatalf("of %d, %d has neighbours %v", n, rank, of[rank])
			}
		}
		for rank, others := range of {
			for _, other := range others {
				if !slices.Contains(of[other], rank) {
					t.Fatalf("of %d, %d is not a neighbour of its neighbour %d", n, rank, other)
				}
			}
		}
		for seed := range uint64(20) {
			gone := make(map[int]bool)
			for _, rank := range rand.New(rand.NewPCG(seed, 1)).Perm(n)[:n/10] {
				gone[rank] = true
			}
			if reached := reach(of, gone); reached != n-len(gone) {
				t.Errorf("of %d without %d, %d are connected", n, len(gone), reached)
			}
		}
	}
}

// reach is how many are connected with the first that is not gone.
func reach(of [][]int, gone map[int]bool) int {
	first := 0
	for gone[first] {
		first++
	}
	seen, left := map[int]bool{first: true}, []int{first}
	for len(left) > 0 {
		at := left[0]
		left = left[1:]
		for _, other := range of[at] {
			if !seen[other] && !gone[other] {
				seen[other], left = true, append(left, other)
			}
		}
	}
	return len(seen)
}

// TestFixedPoint shows that a sum is at most n/2 multiples off, beside the rounding to a float64, that integers are
// exact, and that the largest values do not overflow: in vectors of two words a number, and of one.
func TestFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 40).Draw(t, "members")
		numbers := rapid.SampledFrom([]int{1, MostFine + 1}).Draw(t, "numbers")
		top := rapid.IntRange(-1070, 1024).Draw(t, "exponent")
		whole := top >= 0 && top < 52 && rapid.Bool().Draw(t, "integers")
		exponent, values := MinExponent, make([]float64, n)
		for i := range values {
			values[i] = math.Ldexp(rapid.Float64Range(-math.Nextafter(1, 0), math.Nextafter(1, 0)).Draw(t, "value"), top)
			if whole {
				values[i] = math.Trunc(values[i])
			}
			exponent = max(exponent, Exponent(values[i]))
		}
		p := PointOf(exponent, n)
		words, want := make([]uint64, Words(numbers)), new(big.Float).SetPrec(4000)
		for _, v := range values {
			for i, w := range p.Encode(append([]float64{v}, make([]float64, numbers-1)...)) {
				words[i] += w
			}
			want.Add(want, big.NewFloat(v))
		}
		got := p.Decode(words, numbers)[0]
		exact, _ := want.Float64()
		if math.IsInf(exact, 0) || whole {
			if got != exact {
				t.Fatalf("the sum is %g, want %g", got, exact)
			}
			return
		}
		last := p.coarse
		if numbers == 1 {
			last += p.fine
		}
		bound := math.Ldexp(float64(n)/2, -last) + math.Abs(exact)*0x1p-51
		if off := math.Abs(got - exact); off > bound {
			t.Fatalf("the sum of %v is %g, want %g: %g off, at most %g", values, got, exact, off, bound)
		}
	})
}

// TestNumbersThatAreNothingAlike shows that a short vector keeps a count of rows and a small number beside the total of a
// column of times, and that a long one tells that it does not.
func TestNumbersThatAreNothingAlike(t *testing.T) {
	const n = 3
	own := []float64{1100 * 1.7e18, 1100, 0.25, 1e-9, -1100 * 1.7e18}
	p := PointOf(Exponent(own...), n)
	words := make([]uint64, Words(len(own)))
	for range n {
		for i, w := range p.Encode(own) {
			words[i] += w
		}
	}
	for i, got := range p.Decode(words, len(own)) {
		if want := n * own[i]; math.Abs(got-want) > 1e-6*math.Abs(want) || i == 1 && got != want {
			t.Errorf("the sum of %g is %g", own[i], got)
		}
	}
	if !p.Enough(len(own)) || p.Enough(MostFine+1) || PointOf(98, n).Enough(2) || !PointOf(98, n).Enough(1) || !PointOf(60, n).Enough(MostFine+1) {
		t.Error("what is told of bits is wrong")
	}
}

// TestSecrets shows that two members find the same secret, and that a card counts for nobody but who has signed it, in
// the run for which it is signed.
func TestSecrets(t *testing.T) {
	a, b, c := keysOf(t, "run", 0, 0), keysOf(t, "run", 1, 0), keysOf(t, "run", 2, 0)
	ab, ba := a.Secret(b.own.Self(), b.Card), b.Secret(a.own.Self(), a.Card)
	if len(ab) == 0 || !slices.Equal(ab, ba) || !slices.Equal(ab, a.Secret(b.own.Self(), b.Card)) {
		t.Errorf("the secrets are %x and %x", ab, ba)
	}
	again := keysOf(t, "run", 1, 1) // b in another life
	if s := a.Secret(b.own.Self(), again.Card); len(s) == 0 || slices.Equal(s, ab) {
		t.Errorf("in another life the secret is %x", s)
	}
	spoilt := b.Card
	spoilt[0] ^= 1
	zero := Card{}
	copy(zero[publicSize:], ed25519.Sign(ed25519.PrivateKey(b.own.(identity)), b.statement(b.own.Self(), &zero)))
	for what, s := range map[string][]byte{
		"of another": a.Secret(c.own.Self(), b.Card), "that is spoilt": a.Secret(b.own.Self(), spoilt),
		"of another run": a.Secret(b.own.Self(), keysOf(t, "walk", 1, 0).Card), "of zeros": a.Secret(b.own.Self(), zero),
	} {
		if s != nil {
			t.Errorf("a card %s gives the secret %x", what, s)
		}
	}
}

// BenchmarkHide hides a million numbers of one of four.
func BenchmarkHide(b *testing.B) {
	m := masksOf(4, func(int) *Roster { return NewRoster("x", 7, listOf(4, 0)) })[1]
	words := make([]uint64, 1<<20)
	b.SetBytes(8 << 20)
	for b.Loop() {
		m.Hide(words)
	}
}
