package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Operator speaks to a run from outside: it trains nothing, is no member and has no place
// in the overlay. Peers obey it if their Config.Operator is its id. Two operators' messages
// never mix: peers know one operator.
//
// What an operator has said is kept by the members, and only there. It is bound to
// the run's name: use a new name, or a new key, for a run that begins afresh.
type Operator struct {
	// Transport has the operator's key, with which messages are signed.
	Transport transport.Transport
	// Run is the name of the run.
	Run string
	// After is a sequence number that was used before: those of Send are higher, even if
	// the member does not know of it because it was cut off from the others.
	After uint64
	// RunKey is the run's, if it has one: an operator shows it too. Where peers have a list,
	// its id must be on it.
	RunKey []byte
}

// stall bounds the wait for the next frame of a member.
const stall = 5 * time.Second

// ErrOperator: a member obeys another operator, or none.
var ErrOperator = errors.New("another operator, or none")

// errForged: what a member holds has not been signed by its author.
var errForged = errors.New("a control message whose signature is wrong")

// converse tells a member messages, as one that may take part.
func (o Operator) converse(ctx context.Context, member transport.PeerID, messages [][]byte) ([][]byte, error) {
	over, err := guarded(o.Transport, o.Run, o.RunKey)
	if err != nil {
		return nil, fmt.Errorf("speaking to run %q: %w", o.Run, err)
	}
	answers, err := orderlog.Said().Ask(ctx, over, o.Run, member, messages, stall)
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok && refusal.Reason == wire.ReasonOperator {
		return nil, fmt.Errorf("%w: %w", ErrOperator, err)
	}
	return answers, withRemedy(err)
}

// guarded is a transport by which somebody from outside shows the run's key.
func guarded(tr transport.Transport, run string, key []byte) (transport.Transport, error) {
	guard, err := admit.New(admit.Config{Run: run, Key: key, Log: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	return guard.Over(tr), nil
}

// withRemedy adds to an error what can be done about it.
func withRemedy(err error) error {
	for cause, reason := range map[error]wire.Reason{
		transport.ErrNotAdmitted: wire.ReasonAdmission, transport.ErrUnknownRun: wire.ReasonRun,
		transport.ErrUnknownProtocol: wire.ReasonVersion, wire.ErrVersion: wire.ReasonVersion,
	} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w. %s", err, reason.Remedy())
		}
	}
	return err
}

// Ask returns the operator's commands that count at a member, checked, so that who is
// about to join can learn what the run is.
func (o Operator) Ask(ctx context.Context, member transport.PeerID) ([]Command, error) {
	answers, err := o.converse(ctx, member, nil)
	if err != nil {
		return nil, err
	}
	return o.read(answers)
}

// Send gives commands to a member, which passes them on to all others, and returns
// once it has taken them; what counts there then is the result. The sequence numbers
// continue those that the member knows, and After; Changes are added to those that it holds. It fails with ErrOperator if the member
// obeys another operator or none.
func (o Operator) Send(ctx context.Context, member transport.PeerID, commands ...Command) ([]Command, error) {
	known, err := o.Ask(ctx, member)
	if err != nil {
		return nil, err
	}
	sequence, held := o.After, map[Kind][]Change{}
	for _, c := range known {
		sequence, held[c.Kind] = max(sequence, c.Sequence), c.Changes
	}
	var said orderlog.Orders
	for _, c := range commands {
		sequence++
		if c.Sequence = sequence; len(c.Changes) > 0 {
			c = c.over(held[c.Kind])
			held[c.Kind] = c.Changes
		}
		m, err := o.sign(c)
		if err != nil {
			return nil, fmt.Errorf("telling run %q: %w", o.Run, err)
		}
		said.Take(m)
	}
	answers, err := o.converse(ctx, member, said.All())
	if err != nil {
		return nil, err
	}
	for _, message := range said.All() {
		if !slices.ContainsFunc(answers, func(held []byte) bool { return bytes.Equal(held, message) }) {
			return nil, fmt.Errorf("%s has not taken all commands: others, given at the same time, have replaced them; ask again", member)
		}
	}
	return o.read(answers)
}

func (o Operator) sign(c Command) (orderlog.Order, error) {
	m, err := c.Message()
	if err != nil {
		return orderlog.Order{}, err
	}
	m.Run, m.Author = o.Run, string(o.Transport.Self())
	return orderlog.Sign(o.Transport, m)
}

// read checks and decodes what a member holds.
func (o Operator) read(messages [][]byte) ([]Command, error) {
	id := o.Transport.Self()
	var commands []Command
	for _, message := range messages {
		var m wire.Control
		if err := m.Decode(message); err != nil {
			return nil, err
		}
		if m.Author != string(id) {
			return nil, fmt.Errorf("%w: the operator there is %s. %s", ErrOperator, m.Author, wire.ReasonOperator.Remedy())
		}
		if m.Run != o.Run || !o.Transport.Verify(id, m.Signed(), m.Signature[:]) {
			return nil, errForged
		}
		if c, err := CommandOf(m); err == nil {
			commands = append(commands, c)
		}
	}
	return commands, nil
}
