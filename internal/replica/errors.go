package replica

import "errors"

// Errors of an exchange, to be tested with errors.Is. The exchange ends; of the
// frame nothing has been applied, other than what it acknowledges, and slices that
// both sides have applied stay applied. After all but the last two, the partner has
// broken a rule.
var (
	// ErrOrder: a frame names a slice or a count that does not follow.
	ErrOrder = errors.New("frame out of order")
	// ErrWindow: the partner sends beyond the agreed window.
	ErrWindow = errors.New("more slices in flight than agreed")
	// ErrAbsurd: the partner's values are no model's: NaN, infinite, or farther away
	// than any model of the run could be.
	ErrAbsurd = errors.New("absurd values")
	// ErrBound: the partner's difference is longer than the bound that this side
	// has announced.
	ErrBound = errors.New("difference beyond the announced bound")
	// ErrCodec: a slice is coded with what was not agreed.
	ErrCodec = errors.New("codec that was not agreed")
	// ErrBlocks: a set of blocks names some that make no sense: that do not exist, were
	// not asked for or not sent.
	ErrBlocks = errors.New("blocks that make no sense")
	// ErrSettled: the partner has asked for the outcome of this exchange already
	// and been told: nothing more may be applied.
	ErrSettled = errors.New("the exchange has been settled")
	// ErrDiverged: this side's own values are not finite, or so large that others would
	// take them for no model's: its training has diverged.
	ErrDiverged = errors.New("own values are not finite, or far too large")
)
