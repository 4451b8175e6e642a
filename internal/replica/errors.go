package replica

import "errors"

// Errors of an exchange, to be tested with errors.Is. The exchange ends. Nothing of the
// frame has been applied, except its acknowledgement, and slices that both sides have
// applied stay applied. For all but the last two errors the partner has broken the
// protocol.
var (
	// ErrOrder: a frame names a slice or a count that does not follow.
	ErrOrder = errors.New("frame out of order")
	// ErrWindow: the partner sends beyond the agreed window.
	ErrWindow = errors.New("more slices in flight than agreed")
	// ErrImplausible: the partner's values cannot be a model: NaN, infinite, or farther
	// away than any model of the run could be.
	ErrImplausible = errors.New("implausible values")
	// ErrBound: the partner's difference is longer than the bound that this side
	// has announced.
	ErrBound = errors.New("difference beyond the announced bound")
	// ErrCodec: a slice is coded with a codec that was not agreed.
	ErrCodec = errors.New("codec that was not agreed")
	// ErrBlocks: a set names invalid blocks: blocks that do not exist, were not asked for
	// or not sent.
	ErrBlocks = errors.New("blocks that make no sense")
	// ErrSettled: the partner has already asked for the outcome of this exchange and has
	// the answer: nothing more may be applied.
	ErrSettled = errors.New("the exchange has been settled")
	// ErrDiverged: this side's own values are not finite, or too large to be plausible to
	// others: its training has diverged.
	ErrDiverged = errors.New("own values are not finite, or far too large")
)
