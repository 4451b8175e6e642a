package flock

import (
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// credit is how many times the median a member's claim of its own steps may count; the
	// rest is ignored. A lower value would leave out more real steps of fast peers in an
	// unequal flock.
	credit = 2
	// oneLiarIn: one liar in so many members adds nothing. A claim counts for no more than
	// that of the most advanced other member, after one in oneLiarIn has been left out.
	oneLiarIn = 5
	// trust bounds the total where a key or a list admits members: all together may count for up
	// to trust times what the rules above allow, enough for one member that is twenty times as
	// fast as three others. Liars there can end a run no earlier than after a share of 1/trust.
	trust = 5
)

// Plausible is the most steps that one peer can have taken in a flock whose models have
// these ages, which it sorts.
func Plausible(ages []uint64) uint64 {
	if len(ages) == 0 {
		return 0
	}
	slices.Sort(ages)
	middle := len(ages) / 2
	median := ages[middle]
	if len(ages)%2 == 0 {
		low := ages[middle-1]
		median = low + (median-low)/2
	}
	most := min(median, math.MaxUint64/credit) * credit
	if leftOut := len(ages) / oneLiarIn; leftOut > 0 {
		most = min(most, ages[len(ages)-1-leftOut])
	}
	return most
}

// trusted is the ceiling for present members where members are trusted: with it, the sum of the
// claims, this peer's own steps and those of departed members is at most trust times the sum by
// the usual ceiling. It sorts the claims.
func trusted(claims []uint64, ceiling, own, departed uint64) uint64 {
	counts := own
	for _, c := range claims {
		counts = plus(counts, min(c, ceiling))
	}
	left := min(counts, math.MaxUint64/trust) * trust
	left -= min(left, plus(own, departed))
	slices.Sort(claims)
	for i, c := range claims {
		if most := left / uint64(len(claims)-i); c > most {
			return max(ceiling, most)
		}
		left -= c
	}
	return math.MaxUint64
}

// plus adds numbers from other members; on overflow the result is the highest number.
func plus(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}

// agesOf returns the ages of the models of all that train, or, if nobody trains any more, of all that have trained;
// and the claimed steps of all other members, whether they train or not. training is the number that train.
func agesOf(members []transport.Record, self transport.PeerID, own *Own) (training uint64, ages, claims []uint64) {
	all := []uint64{own.Age()}
	if !own.Idle() {
		ages = append(ages, own.Age())
	}
	for _, r := range members {
		if r.Peer == self {
			continue
		}
		all, claims = append(all, r.Age()), append(claims, r.Steps)
		if Trains(r) {
			ages = append(ages, r.Age())
		}
	}
	if training = uint64(len(ages)); training == 0 {
		ages = all
	}
	return training, ages, claims
}

// Trains tells whether a member trains, by its record.
func Trains(r transport.Record) bool { return r.Flags&Idle != Idle && !ServesOnly(r) }

// ServesOnly tells whether a member serves parameters and does not train.
func ServesOnly(r transport.Record) bool { return r.Flags&Idle == Serving }

// works tells whether more steps of a member can be expected.
func works(r transport.Record) bool { return r.Flags&Over == 0 && Trains(r) }

// rests tells whether a member has trained and gave that up for a while: with its next incarnation it goes on.
func rests(r transport.Record) bool { return r.Flags&Idle == Idle && r.Steps > 0 }
