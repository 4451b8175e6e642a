package stats

// Rows counts rows of members that hold them for others (package rows), each as often as it was handed out.
type Rows struct {
	// Of the rows HandedOut, Trained are those of which a gradient was computed, and Lost those that did not arrive, or whose
	// taker died.
	HandedOut, Trained, Lost uint64
	// Returned are those that came back unseen; they count as never handed out. TakenBack are those that a holder has kept for
	// one that did not ask for them, and divided among others then.
	Returned, TakenBack uint64
}

// Outstanding are those of the rows handed out whose fate is not known yet.
func (r Rows) Outstanding() uint64 { return r.HandedOut - r.Trained - r.Lost }

// Out counts rows that are handed out.
func (r *Rows) Out(n int) {
	r.HandedOut += uint64(n)
}

// Back counts what became of rows.
func (r *Rows) Back(trained, lost, returned int) {
	r.Trained += uint64(trained)
	r.Lost += uint64(lost)
	r.Returned += uint64(returned)
	r.HandedOut -= uint64(returned)
}

// Add adds what other counts have grown by, from before to now.
func (r *Rows) Add(before, now Rows) {
	r.HandedOut, r.Trained, r.Lost = r.HandedOut+now.HandedOut-before.HandedOut, r.Trained+now.Trained-before.Trained, r.Lost+now.Lost-before.Lost
	r.Returned, r.TakenBack = r.Returned+now.Returned-before.Returned, r.TakenBack+now.TakenBack-before.TakenBack
}
