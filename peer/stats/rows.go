package stats

// Rows counts rows of members that hold them for others (package rows), each as often as it was handed out. HandedOut is
// Trained + Lost + Outstanding at each moment.
type Rows struct {
	HandedOut uint64
	// Trained are those of which a gradient was computed, Lost those that did not arrive, or whose taker died, and Outstanding
	// those whose fate is not known yet.
	Trained, Lost, Outstanding uint64
	// Returned are those that came back unseen; they count as never handed out. TakenBack are those that a holder has kept for
	// one that did not ask for them, and divided among others then.
	Returned, TakenBack uint64
}

// Out counts rows that are handed out.
func (r *Rows) Out(n int) {
	r.HandedOut += uint64(n)
	r.Outstanding += uint64(n)
}

// Back counts what became of rows.
func (r *Rows) Back(trained, lost, returned int) {
	r.Trained += uint64(trained)
	r.Lost += uint64(lost)
	r.Returned += uint64(returned)
	r.HandedOut -= uint64(returned)
	r.Outstanding -= uint64(trained + lost + returned)
}

// Add adds the counts of others.
func (r *Rows) Add(of Rows) {
	r.HandedOut, r.Trained, r.Lost, r.Outstanding = r.HandedOut+of.HandedOut, r.Trained+of.Trained, r.Lost+of.Lost, r.Outstanding+of.Outstanding
	r.Returned, r.TakenBack = r.Returned+of.Returned, r.TakenBack+of.TakenBack
}
