package peer

import (
	"bytes"
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Operator speaks to a run from outside: it trains nothing, is no member and has no
// place in the overlay. Peers obey it if its id is their Network.Control.Operator. Two
// operators' words never mix: peers know one.
//
// What an operator has said is kept by the members, and only there. It is bound to
// the run's name: use a new name, or a new key, for a run that begins afresh.
type Operator struct {
	// Transport has the operator's key, with which messages are signed. Who only asks
	// may use any other.
	Transport seam.Transport
	// Run is the name of the run.
	Run string
	// ID is the operator that is asked about. Default: the transport's own id.
	ID seam.PeerID
	// After is a sequence number that was used before: those of Send are higher, even if
	// the member does not know of it because it was cut off from the others.
	After uint64
	// Admission is that of the run: an operator shows the run's key too, and where
	// peers have a list its id must be on it.
	Admission Admission
}

// converse tells a member messages, as one that may take part.
func (o Operator) converse(ctx context.Context, member seam.PeerID, messages [][]byte) ([][]byte, error) {
	config := Config{Run: o.Run, Network: Network{Admission: o.Admission, Transport: o.Transport}}
	guard, err := newGuard(config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("speaking to run %q: %w", o.Run, err)
	}
	return converse(ctx, guard.over(o.Transport), o.Run, member, messages, DefaultStall)
}

// Ask returns the operator's commands that count at a member, checked, so that who is
// about to join can learn what the run is.
func (o Operator) Ask(ctx context.Context, member seam.PeerID) ([]Command, error) {
	answers, err := o.converse(ctx, member, nil)
	if err != nil {
		return nil, err
	}
	return o.read(answers)
}

// Send gives commands to a member, which passes them on to all others, and returns
// once it has taken them; what counts there then is the result. The sequence numbers
// continue those that the member knows, and After. It fails with a *RefusedError that
// wraps ErrOperator if the member obeys another operator or none.
func (o Operator) Send(ctx context.Context, member seam.PeerID, commands ...Command) ([]Command, error) {
	known, err := o.Ask(ctx, member)
	if err != nil {
		return nil, err
	}
	sequence := o.After
	for _, c := range known {
		sequence = max(sequence, c.Sequence)
	}
	var said standing
	for _, c := range commands {
		sequence++
		c.Sequence = sequence
		m, err := o.sign(c)
		if err != nil {
			return nil, fmt.Errorf("telling run %q: %w", o.Run, err)
		}
		said.take(m)
	}
	answers, err := o.converse(ctx, member, said.all())
	if err != nil {
		return nil, err
	}
	for _, message := range said.all() {
		if !contains(answers, message) {
			return nil, fmt.Errorf("%s has not taken all commands: others, given at the same time, have replaced them; ask again", member)
		}
	}
	return o.read(answers)
}

func (o Operator) sign(c Command) (ordered, error) {
	m, err := c.encode()
	if err != nil {
		return ordered{}, err
	}
	m.Run, m.Author = o.Run, string(o.Transport.Self())
	text, err := seal(o.Transport, m)
	return ordered{Control: m, bytes: text}, err
}

// read checks and decodes what a member holds.
func (o Operator) read(messages [][]byte) ([]Command, error) {
	id := o.ID
	if id == "" {
		id = o.Transport.Self()
	}
	var commands []Command
	for _, message := range messages {
		var m wire.Control
		if err := m.Decode(message); err != nil {
			return nil, err
		}
		if m.Author != string(id) {
			return nil, &RefusedError{Detail: "the operator there is " + m.Author, reason: wire.ReasonOperator}
		}
		if m.Run != o.Run || !o.Transport.Verify(id, m.Signed(), m.Signature[:]) {
			return nil, errControlForged
		}
		if c, err := commandOf(m); err == nil {
			commands = append(commands, c)
		}
	}
	return commands, nil
}

func contains(messages [][]byte, message []byte) bool {
	for _, m := range messages {
		if bytes.Equal(m, message) {
			return true
		}
	}
	return false
}
