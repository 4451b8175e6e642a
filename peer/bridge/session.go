package bridge

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/tensor"
)

// session is the state of a bridge for one trainer.
type session struct {
	config  Config
	control io.WriteCloser
	handed  *os.File // the memory that came with the connection

	peer     *peer.Peer // nil before hello
	key      ed25519.PrivateKey
	layout   *tensor.Layout
	memory   *memory
	base     tensor.Vector // the values that were last handed over
	rounding rounding
	interval commitInterval
	since    time.Time // when the bridge last answered
	closed   bool      // the peer has left its run
	met      bool      // another member was seen
}

func (s *session) answered() { s.since = time.Now() }

// converse answers line after line.
func (s *session) converse(ctx context.Context, lines <-chan []byte) error {
	for {
		var line []byte
		select {
		case line = <-lines:
		case <-ctx.Done():
			err := context.Cause(ctx)
			if errors.Is(err, errTooLong) {
				refusal := refuse(CodeSyntax, "send one request a line", "%v", err).ends()
				return errors.Join(refusal, send(s.control, reply{Refused: refusal}))
			}
			if !errors.Is(err, ErrGone) {
				err = fmt.Errorf("serving a trainer: %w", err)
			}
			return err
		}
		answer, last, err := s.answer(ctx, line)
		var refusal *Refusal
		if err != nil {
			if ctx.Err() != nil {
				continue // the trainer has gone, or Serve has ended the conversation, which gives the error
			}
			refusal = refusalOf(err)
			answer, last = reply{Refused: refusal}, refusal.Fatal
			s.config.Log.Warn("refused a trainer's request", zap.Error(err))
		}
		sent := send(s.control, answer)
		switch {
		case last && refusal != nil:
			return refusal
		case last:
			return nil // the trainer has left in good order, even if the answer did not reach it
		case sent != nil && ctx.Err() == nil:
			return fmt.Errorf("%w: %w", ErrGone, sent)
		}
		s.answered()
	}
}

// answer does what a line asks for; last is true if the conversation ends with it.
func (s *session) answer(ctx context.Context, line []byte) (answer any, last bool, err error) {
	if len(line) > MaxLine && s.peer != nil {
		return nil, false, refuse(CodeSyntax, "send one request a line", "a line of %d bytes, at most %d", len(line), MaxLine).ends()
	}
	q, err := parse(line)
	if err != nil {
		return nil, false, err
	}
	switch {
	case q.Op == "hello" && s.peer != nil:
		return nil, false, refuse(CodeOrder, "start another bridge for another model", "hello was said before")
	case q.Op == "hello":
		answer, err = s.hello(ctx, q)
		return answer, false, err
	case q.Op == "leave" && s.peer == nil:
		return committed{reply: reply{OK: true}}, true, nil
	case s.peer == nil:
		return nil, false, refuse(CodeOrder, "send hello first", "%s before hello", q.Op)
	}
	switch q.Op {
	case "commit":
		answer, err = s.commit(ctx, q)
	case "save":
		answer, err = s.save(q.Path)
	case "stats":
		stats := s.peer.Stats()
		answer = statsReply{reply{OK: true}, figuresOf(stats, s.joined(stats))}
	case "merge", "leave":
		last = q.Op == "leave"
		answer, err = s.merge()
	default:
		err = refuse(CodeSyntax, "want hello, commit, save, stats, merge or leave", "no such op: %q", q.Op)
	}
	return answer, last && err == nil, err
}

// hello makes the trainer's peer, and hands over the model with which the trainer begins.
func (s *session) hello(ctx context.Context, q request) (any, error) {
	if q.Version != Version {
		return nil, refuse(CodeVersion, "use a client and a bridge of the same release", "protocol version %d: this bridge speaks %d", q.Version, Version)
	}
	layout, rounding, err := layoutOf(q.Layout)
	if err != nil {
		return nil, err
	}
	if int64(layout.Len()) > MaxValues {
		return nil, refuse(CodeLayout, "share fewer ranges", "the layout has %d values, at most %d", layout.Len(), int64(MaxValues))
	}
	m, err := openMemory(q.Memory, s.handed, layout.Len())
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx, q, layout, m); err != nil {
		return nil, errors.Join(err, m.close())
	}
	s.layout, s.memory, s.rounding = layout, m, rounding
	s.base = slices.Clone(m.values)
	over := false
	switch err := s.peer.Trade(ctx, m.values, s.base, peer.Made{}); { // when it has joined
	case errors.Is(err, peer.ErrRunOver):
		over = true
	case err != nil:
		if refusal := otherModel(layout, err); refusal != nil {
			err = refusal
		}
		return nil, refusalOf(err).ends()
	default:
		if err := s.handOver(); err != nil {
			return nil, err
		}
	}
	answer := welcome{
		reply: reply{OK: true}, Version: Version, Peer: string(s.peer.Self()), Addresses: s.peer.JoinAddresses(),
		Values: layout.Len(), Start: s.start(q.Join), status: s.status(),
	}
	answer.Over = answer.Over || over
	return answer, nil
}

// begin makes the peer, with a copy of the trainer's values.
func (s *session) begin(ctx context.Context, q request, layout *tensor.Layout, m *memory) error {
	if err := m.load(); err != nil {
		return err
	}
	if len(q.Frozen) > description.MaxValue {
		return refuse(CodeSyntax, "give a digest", "frozen has %d bytes, at most %d", len(q.Frozen), description.MaxValue)
	}
	params, err := tensor.WrapParams(layout, slices.Clone(m.values))
	if err != nil {
		return fmt.Errorf("taking over the trainer's model: %w", err)
	}
	if at := firstNotFinite(params.Vector()); at >= 0 {
		return refuse(CodeNotFinite, "give a model with finite values", "value %d, in range %q, is NaN or infinite", at, rangeAt(layout, at))
	}
	if s.key, err = q.Resume.key(); err != nil {
		return err
	}
	s.peer, err = s.config.Start(ctx, Hello{
		Run: q.Run, Join: q.Join, Listen: q.Listen, Settings: q.Settings, Frozen: q.Frozen, Params: params, Identity: s.key, Checkpoint: q.Resume.checkpoint(), Partners: q.Resume.partners(),
		Last: q.Resume.last(), resume: q.Resume,
	})
	if err != nil {
		s.peer = nil
		return fmt.Errorf("starting the trainer's peer: %w", err)
	}
	return nil
}

// start names where this peer's model came from.
func (s *session) start(join []string) string {
	switch state := s.peer.Stats().State; {
	case state.Servers > 0:
		return "copied"
	case state.Kept:
		return "resumed"
	case len(join) == 0:
		return "founder"
	}
	return "joined"
}

// commit adds the trainer's steps, and hands over the model.
func (s *session) commit(ctx context.Context, q request) (any, error) {
	began := time.Now()
	if s.closed {
		return nil, refuse(CodeOrder, "start another bridge to train on", "a commit after merge")
	}
	made, err := q.made()
	if err != nil {
		return nil, err
	}
	if err := s.memory.load(); err != nil {
		return nil, err
	}
	answer := committed{reply: reply{OK: true}}
	before := s.peer.Stats().Steps
	switch err := s.peer.Trade(ctx, s.memory.values, s.base, made); {
	case errors.Is(err, peer.ErrRunOver): // the trainer's memory must not keep the steps that it made after the end of the run
		if err := s.fetch(); err != nil {
			return nil, err
		}
	case errors.Is(err, optim.ErrNotFinite):
		return nil, s.notFinite(err)
	case err != nil:
		return nil, err
	default:
		if err := s.handOver(); err != nil {
			return nil, err
		}
		answer.Added = made.Steps == 0 || s.peer.Stats().Steps > before
	}
	took := time.Since(began)
	s.interval.committed(made.Steps, began.Sub(s.since), took, time.Duration(q.Spent)*time.Microsecond)
	answer.Waited, answer.status = took.Microseconds(), s.status()
	return answer, nil
}

// notFinite says where a commit's values are not finite, if they still are.
func (s *session) notFinite(err error) *Refusal {
	refusal := refusalOf(err)
	if at := firstNotFinite(s.memory.values); at >= 0 {
		refusal.Detail = fmt.Sprintf("value %d, in range %q, is NaN or infinite; nothing was added", at, rangeAt(s.layout, at))
	}
	return refusal
}

// handOver gives the trainer the values of base, rounded to its types.
func (s *session) handOver() error {
	s.rounding.round(s.base, s.memory.values)
	return s.memory.store()
}

// fetch replaces the trainer's model by the peer's.
func (s *session) fetch() error {
	if _, err := s.peer.Snapshot(s.base, 0); err != nil {
		return fmt.Errorf("reading the model in the end: %w", err)
	}
	copy(s.memory.values, s.base)
	return s.handOver()
}

// joined tells whether another member was ever seen: a founder is alone until the first one joins.
func (s *session) joined(now stats.Peer) bool {
	s.met = s.met || now.Members > 1 || now.Exchanges.Completed() > 0
	return s.met
}

// status is the current state of the run.
func (s *session) status() status {
	stats := s.peer.Stats()
	left := uint64(0)
	if stats.Target > 0 {
		left = max(stats.Target, stats.FlockSteps+1) - stats.FlockSteps
	}
	return status{
		Interval: s.interval.steps(left, stats.Members), Progress: stats.Progress, Steps: stats.Steps,
		FlockSteps: stats.FlockSteps, Members: stats.Members, Joined: s.joined(stats), Over: stats.Over,
		Resume: resume{Seed: s.key.Seed(), Peer: s.peer.Self(), Incarnation: stats.Incarnation, Age: stats.Age, FlockSteps: stats.FlockSteps, Own: stats.Steps, Partners: partnersOf(s.peer.Members(), s.peer.Self())},
	}
}

// save writes the peer's model to a file.
func (s *session) save(path string) (any, error) {
	if err := write(path, s.peer, s.layout); err != nil {
		return nil, err
	}
	return saved{reply{OK: true}, s.layout.Len()}, nil
}

// merge makes the peer leave the run in good order, and hands over the final model.
func (s *session) merge() (any, error) {
	answer := committed{reply: reply{OK: true}, status: s.status()}
	if !s.closed {
		s.closed = true
		if err := s.peer.Close(); err != nil {
			s.config.Log.Warn("leaving the run", zap.Error(err))
		}
		if err := s.fetch(); err != nil {
			return nil, err
		}
	}
	stats := s.peer.Stats()
	answer.Added, answer.Merged, answer.Over = true, stats.Merged, stats.Over
	return answer, nil
}

// end leaves the run, unless the peer has left it, and releases the memory.
func (s *session) end() error {
	var faults []error
	if s.peer != nil && !s.closed {
		if err := s.peer.Close(); err != nil {
			faults = append(faults, fmt.Errorf("leaving the run: %w", err))
		}
	}
	if s.memory != nil {
		faults = append(faults, s.memory.close())
	}
	return errors.Join(faults...)
}

// firstNotFinite is the place of the first value that is NaN or infinite, -1 if none is.
func firstNotFinite(v tensor.Vector) int {
	if tensor.Finite(v) {
		return -1
	}
	return slices.IndexFunc(v, func(x float32) bool { return x-x != 0 })
}

// rangeAt is the name of the range in which a value is.
func rangeAt(layout *tensor.Layout, at int) string {
	for i := range layout.Count() {
		if r := layout.At(i); at < r.Offset+r.Len {
			return r.Name
		}
	}
	return ""
}
