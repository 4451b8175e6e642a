package control

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// DefaultDigests is Config.Digests of peers that have an operator.
	DefaultDigests = 5 * time.Second
	// DigestShare is the time between two digests for each member: all members
	// together publish no more than one in this time, however many they are.
	DigestShare = 500 * time.Millisecond
	// DrainWithin bounds the time that closing a peer takes after the operator has asked it to leave.
	DrainWithin = 5 * time.Second
	// DigestSpacing is the least time between two digests of a member: sooner ones are
	// not passed on.
	DigestSpacing = time.Second
	// EvaluationSpacing is the least time between two evaluations that a member tells.
	EvaluationSpacing = 200 * time.Millisecond
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
	Operator transport.PeerID
	// Name is what people call this peer: printable text of at most MaxName bytes. It goes with
	// digests, as Version does, and proves nothing.
	Name string
	// Changed is called with what the operator says of members, on a goroutine of the peer, one call at a time, and
	// should return soon: that this one is to leave (Drain), to train (Train) or not (Rest), which peers a list is to have (Admit) or
	// not (Expel), and by which weight a holder is to give rows to a peer (Weigh; see rows.Holder.Weigh).
	// The library only passes it on. The program saves and closes the peer, which then takes no longer than DrainWithin,
	// and writes the file of Network.Admission.Allow, which is read again. An expelled peer is asked to leave, too.
	// Default: such commands have no effect here, as a line of the log says.
	Changed func(why string, changes []Change)
	// Digests is the least time between two digests that the peer publishes, DigestSpacing or
	// more; in large flocks it is longer (DigestShare). Default: DefaultDigests under an operator, else
	// none. Negative: none.
	Digests time.Duration
}

// version is set by the linker for a build that the go command knows no version of.
var version string

// Version is what this program was built from, as members tell it: printable text of at most MaxVersion bytes,
// empty if it is not known. The go command says so, or the linker, by
// -X github.com/seed-97356399/murmuration/peer/control.version=….
func Version() string {
	built := version
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		built = cmp.Or(built, info.Main.Version)
	}
	built = Printable(built)
	return strings.ToValidUTF8(built[:min(len(built), MaxVersion)], "")
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
	if len(c.Name) > MaxName || Printable(c.Name) != c.Name {
		faults = append(faults, fmt.Errorf("Name is %q: want printable text of at most %d bytes", c.Name, MaxName))
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
