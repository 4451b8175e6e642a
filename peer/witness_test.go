package peer_test

import (
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// offences are the faults for which a partner is kept away.
var offences = []error{
	wire.ErrMagic, wire.ErrVersion, wire.ErrFlags, wire.ErrType, wire.ErrTooLong, wire.ErrChecksum, wire.ErrMessage,
	replica.ErrOrder, replica.ErrWindow, replica.ErrImplausible, replica.ErrBound, coding.ErrSize, coding.ErrNotFinite,
}

// talkFaults are all faults that an exchange may fail of.
var talkFaults = append([]error{
	wire.ErrTruncated, replica.ErrSettled, errTimeout, io.ErrUnexpectedEOF, network.ErrReset, memnet.ErrReset,
}, offences...)

// witness hears what a peer reports.
type witness struct {
	t       *testing.T
	partner transport.PeerID
	logged  *observer.ObservedLogs

	mu                            sync.Mutex
	failed, offended, quarantined int           // offended: failed of an offence
	seen                          map[error]int // faults, by kind
}

func (w *witness) hooks() peer.Hooks {
	return peer.Hooks{Exchanged: w.hearExchanged, Quarantined: w.hearQuarantined}
}

func (w *witness) hearExchanged(x peer.Exchanged) {
	partner, err := x.Partner, x.Err
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed++
	known := peer.IsRefusal(err) || peer.IsAbort(err)
	for _, kind := range talkFaults {
		if is(err, kind) {
			w.seen[kind]++
			known = true
		}
	}
	if !known || partner != w.partner {
		w.t.Errorf("a fault of no type, or of peer %s: %v", partner, err)
	}
	if offence(err) {
		w.offended++
	}
}

func (w *witness) hearQuarantined(partner transport.PeerID, term time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quarantined++
	if partner != w.partner || term < firstTerm || term > mostTerm || !offence(err) {
		w.t.Errorf("peer %s is kept away for %s for %v", partner, term, err)
	}
}

func offence(err error) bool {
	return slices.ContainsFunc(offences, func(kind error) bool { return is(err, kind) })
}

// saw tells whether one of these faults was found.
func (w *witness) saw(kinds []error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		if w.seen[kind] > 0 {
			return true
		}
	}
	return len(kinds) == 0
}

// check holds what a peer tells of itself against what it has reported and logged.
func (w *witness) check(t *testing.T, kind tampering, s stats.Peer) {
	t.Helper()
	x := s.Exchanges
	if expected := kind.expected(s.Role); !w.saw(expected) {
		t.Errorf("the %s peer saw %v, never %v", s.Role, w.seen, expected)
	}
	if int(x.Failed) != w.failed || int(x.Quarantines) != w.quarantined || w.quarantined != w.offended {
		t.Errorf("the %s peer counts %d failures and %d quarantines; it told of %d, %d of them for an offence, and of %d",
			s.Role, x.Failed, x.Quarantines, w.failed, w.offended, w.quarantined)
	}
	if x.Lost > 0 {
		t.Errorf("the %s peer has given up %d slices", s.Role, x.Lost)
	}
	if kind.harmless && w.quarantined > 0 {
		t.Errorf("the %s peer takes what breaks no rule for an offence", s.Role)
	}
	if warned := w.warned(); warned < w.quarantined {
		t.Errorf("the %s peer logged %d warnings that name partner and remedy, want %d", s.Role, warned, w.quarantined)
	}
	t.Logf("%s: %d steps, %d exchanges, saw %v; %d failed, %d declined, %d quarantines, %d slices settled",
		s.Role, s.Steps, x.Completed(), w.seen, x.Failed, x.Declined, x.Quarantines, x.Settled)
}

// warned is how many warnings were logged that name partner and remedy, those included
// that the log was spared: the peer has been closed, and has told their number.
func (w *witness) warned() (n int) {
	lines := w.logged.FilterField(zap.String("peer", string(w.partner))).FilterFieldKey("remedy").All()
	for _, told := range w.logged.FilterMessage("lines were left out of the log").All() {
		if line, _ := told.ContextMap()["line"].(string); slices.ContainsFunc(lines, func(l observer.LoggedEntry) bool { return l.Message == line }) {
			n-- // it is a count and no line
			lines = append(lines, told)
		}
	}
	for _, l := range lines {
		left, _ := l.ContextMap()["left_out"].(uint64)
		n += 1 + int(left)
	}
	return n
}
