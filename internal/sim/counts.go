package sim

// Counts are what has happened at a peer.
type Counts struct {
	// Steps are those of its trainer.
	Steps int
	// Initiated and Served are the exchanges and transfers completed at this side, Failed those
	// that broke off, Refused the proposals that others turned down and Declined
	// those that it turned down itself.
	Initiated, Served, Failed, Refused, Declined int
	// InDoubt are the slices left in doubt; of those, Applied and Dropped were
	// settled since.
	InDoubt, Applied, Dropped int
	// Quarantines are how often a partner was found to break the rules.
	Quarantines int
	// Retransmitted are the blocks of lattices that failed and had to be sent again, in the
	// exchanges that it initiated.
	Retransmitted int
	// Sent are the bytes written, and Moved those that the exchanges which it initiated
	// and completed took both ways, for Values, each counted once for each way.
	Sent, Moved, Values int64
	// Across are the bytes written to peers at other sites.
	Across int64
	// Updates are those of a machine that averages gradients, Messages the messages that
	// machines received.
	Updates, Messages int
}
