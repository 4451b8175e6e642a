package flock

import (
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// credit is how many times the median a member's word on its own steps may
	// count: what it claims beyond is ignored. A lower one would leave out more of
	// what the fast peers of an unequal flock have really done.
	credit = 2
	// oneLiarIn is among how many members one may lie and add nothing: nobody's word
	// counts for more than that of the most advanced of the others, of whom so many are
	// left out.
	oneLiarIn = 5
	// trust is how many times as much as by these rules all members together may count for
	// where a key or a list says who takes part: what one does that is twenty times as fast as
	// three others. Liars there end a run no earlier than after a share of 1/trust.
	trust = 5
)

// Plausible is the most that one peer can have done in a flock whose models have these
// ages, which it sorts.
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

// trusted is the most that one of the members present can have done, of what each claims, where
// they are trusted: all fit into trust times what counts by the ceiling of others, with what this
// peer has done itself and those that have departed. It sorts the claims.
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

// plus adds numbers that others have said: it stays at the highest.
func plus(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}

// agesOf are those of the models of all that train, or of all that have where nobody does any more,
// and claims the steps of all others: what one says that does not train counts too. Training is how many train.
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

// Trains tells whether a member does, by its record.
func Trains(r transport.Record) bool { return r.Flags&Idle != Idle }

// works tells whether more steps of a member are to be expected.
func works(r transport.Record) bool { return r.Flags&Over == 0 && Trains(r) }
