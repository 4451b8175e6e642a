package replica_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestRefusalsArriveAsTheyWereMeant: what a machine refuses for is what the other machine
// hears, but for what only one of the two can know.
func TestRefusalsArriveAsTheyWereMeant(t *testing.T) {
	for said, heard := range map[averaging.Reason]averaging.Reason{
		averaging.Busy: averaging.Busy, averaging.WrongRole: averaging.WrongRole, averaging.Closing: averaging.Closing,
		averaging.Quarantine: averaging.Quarantine, averaging.Round: averaging.Round,
		averaging.NotMember: averaging.Busy,  // the next partner is asked, and this one again later
		averaging.Unfit:     averaging.Round, // for good is only what another configuration is refused for
	} {
		if got := replica.RefusedFor(replica.ReasonOf(said)); got != heard {
			t.Errorf("a refusal for %s is heard as one for %s, want %s", said, got, heard)
		}
	}
	for reason := range wire.Reason(64) {
		if (replica.RefusedFor(reason) == averaging.Unfit) != reason.Permanent() {
			t.Errorf("%s: permanent %v, heard as %s", reason, reason.Permanent(), replica.RefusedFor(reason))
		}
	}
}

// TestOnlyWhoBreaksARuleIsBlamed: a stream that ends, or a fault of this side's own, is
// nobody's offence.
func TestOnlyWhoBreaksARuleIsBlamed(t *testing.T) {
	for err, theirs := range map[error]bool{
		replica.ErrOrder: true, replica.ErrImplausible: true, coding.ErrNotFinite: true, wire.ErrType: true, wire.ErrMessage: true,
		replica.ErrDiverged: false, replica.ErrSettled: false, replica.ErrTooLarge: false, io.EOF: false, io.ErrUnexpectedEOF: false,
	} {
		if _, got := replica.Blame(fmt.Errorf("an exchange: %w", err)); got != theirs {
			t.Errorf("%v: the partner is blamed %v, want %v", err, got, theirs)
		}
	}
}
