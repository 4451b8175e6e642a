package control

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// DefaultDigests is Config.Digests of peers that have an operator.
	DefaultDigests = 5 * time.Second
	// DigestShare is the time between two digests for each member: all members
	// together publish no more than one in this time, however many they are.
	DigestShare = 500 * time.Millisecond
	// DigestSpacing is the least time between two digests of a member: sooner ones are
	// not passed on.
	DigestSpacing = time.Second
)

// Bounds of what a peer is called, in bytes.
const (
	MaxName    = wire.MaxName
	MaxVersion = wire.MaxVersion
)

// Config says whom a peer obeys and what it tells the others of itself. The zero
// value obeys nobody and tells nothing: it takes no part in the run's topic, which over
// libp2p costs about 50 KiB and six goroutines for each connection, both ends together.
type Config struct {
	// Operator is the id of who may pause, resume and stop the run and change its
	// schedule, the same for all peers; see Operator, the type. Empty is nobody:
	// control messages are then refused.
	Operator seam.PeerID
	// Settings say what this peer was started with (model, data set): what an
	// announcement of the operator says otherwise is logged.
	Settings map[string]string
	// Heard is called for each message of the operator that was not known before, one
	// call at a time. It should return soon, and must not close the peer.
	Heard func(Command)
	// Name is what people call this peer, Version what it was built from: printable text
	// of at most MaxName and MaxVersion bytes. Both go with digests, and prove nothing.
	Name, Version string
	// Digests is the least time between two digests that the peer publishes; in large
	// flocks it is longer (DigestShare). Default: DefaultDigests under an operator, else
	// none. Negative: none.
	Digests time.Duration
}

// Validate tells what is wrong with the settings.
func (c Config) Validate() error {
	var faults []error
	if len(c.Operator) > wire.MaxAuthor {
		faults = append(faults, fmt.Errorf("Operator has %d bytes: give a peer id", len(c.Operator)))
	}
	if c.Digests > 0 && c.Digests < DigestSpacing {
		faults = append(faults, fmt.Errorf("Digests is %s: want at least %s, or less than 0 for none", c.Digests, DigestSpacing))
	}
	for _, text := range []struct {
		field, is string
		most      int
	}{{"Name", c.Name, MaxName}, {"Version", c.Version, MaxVersion}} {
		if len(text.is) > text.most || Printable(text.is) != text.is {
			faults = append(faults, fmt.Errorf("%s is %q: want printable text of at most %d bytes", text.field, text.is, text.most))
		}
	}
	return errors.Join(faults...)
}

// Printable is a text without what could steer a terminal or turn the order of what stands
// beside it: control characters, marks of direction, and bytes that are no UTF-8.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// Stats tells what became of the control messages that a peer was sent, and what the
// operator wants now.
type Stats struct {
	// Taken counts messages of the operator and digests that said something new.
	Taken uint64
	// Known counts repetitions, and what something newer had replaced.
	Known uint64
	// Malformed, Oversize, Foreign (of another run, another operator, or no member)
	// and Forged (with a wrong signature) count what was ignored and not passed on,
	// Hasty digests that came sooner than a member may send them.
	Malformed, Oversize, Foreign, Forged, Hasty uint64
	// Unasked counts operators' messages at a peer that has none.
	Unasked uint64
	// Neighbours is the number of connected processes that pass messages on.
	Neighbours int
	// Paused and Stopped tell what the operator wants.
	Paused, Stopped bool
}
