package replica

import (
	"errors"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// ReasonOf is the reason on the wire of a machine's refusal.
func ReasonOf(r averaging.Reason) wire.Reason {
	switch r {
	case averaging.WrongRole:
		return wire.ReasonRole
	case averaging.Closing:
		return wire.ReasonClosing
	case averaging.Quarantine:
		return wire.ReasonQuarantine
	case averaging.NotMember:
		return wire.ReasonNotMember
	case averaging.Round, averaging.Unfit:
		return wire.ReasonRound
	}
	return wire.ReasonBusy
}

// RefusedFor is what a refusal for a reason on the wire is to a machine.
func RefusedFor(r wire.Reason) averaging.Reason {
	switch {
	case r.Permanent():
		return averaging.Unfit
	case r == wire.ReasonQuarantine:
		return averaging.Quarantine
	case r == wire.ReasonClosing, r == wire.ReasonProtocol:
		return averaging.Closing
	case r == wire.ReasonRole:
		return averaging.WrongRole
	case r == wire.ReasonRound:
		return averaging.Round
	}
	return averaging.Busy
}

// Blame gives the reason with which to refuse a partner whose frames failed with
// err. It reports false if the partner broke no rule: the stream ended or broke.
func Blame(err error) (wire.Reason, bool) {
	for _, fault := range []error{
		ErrOrder, ErrWindow, ErrImplausible, ErrBound, ErrCodec, ErrBlocks, coding.ErrCode,
	} {
		if errors.Is(err, fault) {
			return wire.ReasonProtocol, true
		}
	}
	return wire.ReasonFor(err)
}
