package stats

import "math/bits"

// maxAges bounds the buckets of Ages: the last holds all ages from 2^18 steps on.
const maxAges = 20

// Ages counts exchanges by the steps that the trainer took while they were under way:
// so old was, at most, what they averaged when it came into the model.
type Ages struct {
	// Counts are the numbers of exchanges per bucket: Counts[0] those during which no
	// step was taken, Counts[i] those of 2^(i-1) to 2^i − 1 steps, the last those of
	// more too.
	Counts [maxAges]uint64
	// Sum is that of all ages.
	Sum uint64
}

// Add counts an exchange of an age.
func (a *Ages) Add(steps uint64) {
	a.Counts[min(bits.Len64(steps), maxAges-1)]++
	a.Sum += steps
}

// Bound is the most steps of a bucket.
func (Ages) Bound(bucket int) uint64 { return 1<<bucket - 1 }

// Traffic is what moved in exchanges that were coded alike.
type Traffic struct{ Sent, Received uint64 }

// Counters are counts of a peer's exchanges that tell causes apart. Transfers, of which
// the strategies beside AD-PSGD and D-PSGD consist, count as exchanges.
type Counters struct {
	// Samples is the number of samples that gradients were computed from.
	Samples uint64
	// Refused and Declined count proposals, of this peer and to it, by the reason for
	// which they were refused; Failed and Dropped exchanges that broke off, of those
	// that this peer began and of those that it served, by cause.
	Refused, Declined, Failed, Dropped map[string]uint64
	// TransportRefused counts the streams, datagrams and connections that were refused or
	// gave way to others, and MembershipRefused the messages about members that were not
	// heard, by cause; of adapters that count them, as the default ones do.
	TransportRefused, MembershipRefused map[string]uint64
	// Traffic is by the coarsest codec of an exchange: a policy may code small layers
	// finer. What came to no exchange, or was said before one, is under "none".
	Traffic map[string]Traffic
	// RowsHeld are rows of this peer that others take, and RowsTaken rows of others that it takes: see package rows.
	RowsHeld, RowsTaken Rows
	// Age is by how many steps what exchanges averaged was late.
	Age Ages
	// Rounds are the times from a proposal to its answer, Durations those of completed
	// exchanges at either side.
	Rounds, Durations Histogram
}
