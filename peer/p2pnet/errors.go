package p2pnet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Errors of this package, beside those of package transport.
var (
	// ErrAddress: the text is no address that can be joined or listened on. The
	// message says what is wrong and shows the right forms.
	ErrAddress = errors.New("bad address")
	// ErrTooManyStreams: the other process already serves its limit of streams of this peer
	// and protocol, or lacks memory for streams.
	ErrTooManyStreams = errors.New("the other process serves no more streams of this peer")
	// ErrRunName: the name of a run is longer than transport.MaxRunName.
	ErrRunName = fmt.Errorf("a run's name has at most %d bytes", transport.MaxRunName)
)

// IdentityChangedError says that a host:port proved another identity than the
// one remembered for it. Either an attacker answers in its place, or the process
// there was given a new key.
type IdentityChangedError struct {
	Address    string
	Remembered []transport.PeerID
	Proved     transport.PeerID
	// File is Config.Known, empty if identities are remembered in memory only.
	File string
}

func (e *IdentityChangedError) Error() string {
	names := make([]string, len(e.Remembered))
	for i, id := range e.Remembered {
		names[i] = string(id)
	}
	remedy := "restart this process to forget the old identity"
	if e.File != "" {
		remedy = fmt.Sprintf("remove the lines of %s from %s", e.Address, e.File)
	}
	return fmt.Sprintf("%s answers as %s but was known as %s: somebody may be in between; if the peer there was given a new key, %s",
		e.Address, e.Proved, strings.Join(names, ", "), remedy)
}

// WrongIdentityError says that an address given with an id proved another one.
// errors.Is takes it for transport.ErrUnreachable: the wanted peer did not answer.
type WrongIdentityError struct {
	Wanted, Proved transport.PeerID
}

func (e *WrongIdentityError) Error() string {
	return fmt.Sprintf("the process there is %s, not %s: correct the id after /p2p/ or the address before it", e.Proved, e.Wanted)
}

// Unwrap makes the error a transport.ErrUnreachable.
func (e *WrongIdentityError) Unwrap() error { return transport.ErrUnreachable }

// brief puts the many lines of a dialler's error into one. The text is for
// people; errors.Is and errors.As see the whole error.
type brief struct{ error }

func (e brief) Unwrap() error { return e.error }

func (e brief) Error() string {
	dial, ok := errors.AsType[*swarm.DialError](e.error)
	if !ok {
		return e.error.Error()
	}
	var causes several
	for _, one := range dial.DialErrors {
		causes = append(causes, one.Cause)
	}
	if len(causes) == 0 && dial.Cause != nil {
		causes = several{dial.Cause}
	}
	return causes.Error()
}

// several writes more than one failure on one line.
type several []error

func (e several) Unwrap() []error { return e }

func (e several) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "; ")
}

// unreachable wraps the failure of a dial, so that it is a transport.ErrUnreachable.
func unreachable(err error) error {
	if errors.Is(err, transport.ErrUnreachable) {
		return err
	}
	return fmt.Errorf("%w: %w", transport.ErrUnreachable, brief{err})
}
