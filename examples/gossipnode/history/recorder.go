package history

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// MaxEvents bounds the events that a peer writes into a trace: about 25 MB.
	MaxEvents = 200_000
	// leastWait is the least wait that is an event of its own.
	leastWait = 100 * time.Microsecond
	// linesOfARun bounds the lines of a history: one for each such part of the time trained.
	linesOfARun = 200
	// traceHead begins a trace; the format lets its end be missing, so that a process may be killed.
	traceHead = "[\n"
)

// Begin makes the files of --history and --trace, empty unless a run may go on.
func Begin(history, trace string, goesOn bool) error {
	r, err := Open(history, trace, !goesOn, zap.NewNop())
	if err == nil {
		r.Close()
	}
	return err
}

// Recorder writes how one peer gets on. What cannot be written is left out and logged once: the training goes on. It is safe for
// concurrent use.
type Recorder struct {
	history, trace *files.Lines // nil if there is none
	log            *zap.Logger
	warned         sync.Once
	accuracy       atomic.Uint64 // of the last evaluation, as bits
	written        time.Duration // when the last line of the history was

	mu     sync.Mutex
	id     string
	events []byte // not written yet
	count  int
	idle   time.Time // when the last gradient was done
}

// Open opens the files; one without a name is left out.
func Open(history, trace string, anew bool, log *zap.Logger) (r *Recorder, err error) {
	r = &Recorder{log: log}
	r.accuracy.Store(math.Float64bits(math.NaN()))
	if history != "" {
		if r.history, err = files.Append(history, anew, ""); err != nil {
			return nil, fmt.Errorf("--history: %w", err)
		}
	}
	if trace != "" {
		if r.trace, err = files.Append(trace, anew, traceHead); err != nil {
			r.Close()
			return nil, fmt.Errorf("--trace: %w", err)
		}
	}
	return r, nil
}

// Close writes what is left, and closes the files.
func (r *Recorder) Close() {
	if r.trace != nil {
		r.flush()
	}
	r.fault(cmp.Or(r.history.Close(), r.trace.Close()))
}

func (r *Recorder) fault(err error) {
	if err != nil {
		r.warned.Do(func() {
			r.log.Warn("how the run goes cannot be written down; the training goes on, and what can be written later is", zap.Error(err))
		})
	}
}

// Evaluated notes an accuracy on held-out data.
func (r *Recorder) Evaluated(accuracy float64) { r.accuracy.Store(math.Float64bits(accuracy)) }

// Progress writes a line of the history if one is due, and the trace so far. The calls come from one goroutine.
func (r *Recorder) Progress(s stats.Peer, trained time.Duration, last bool) {
	if r.history != nil && (last || r.written == 0 || trained-r.written >= trained/linesOfARun) {
		r.written = trained
		r.Happened(s, trained, Event{})
	}
	if r.trace != nil {
		r.flush()
	}
}

// Happened writes a line of the history about something that has happened. The calls come from the goroutine of Progress.
func (r *Recorder) Happened(s stats.Peer, trained time.Duration, what Event) {
	if r.history == nil {
		return
	}
	distance := s.Exchanges.ConsensusDistance
	if s.Exchanges.Completed() == 0 {
		distance = math.NaN()
	}
	r.fault(r.history.Write(Line{
		Peer: cmp.Or(s.Name, "peer") + " " + s.Self.Short(), Seconds: trained.Seconds(), Step: s.Steps, Loss: cli.Number(s.Loss), Accuracy: cli.Number(math.Float64frombits(r.accuracy.Load())),
		Distance: cli.Number(distance), Bytes: s.Exchanges.BytesSent, Members: s.Members, Event: what,
	}.Encoded()))
}

// Computed adds a gradient that was computed, and the wait before it, to the trace.
func (r *Recorder) Computed(began, ended time.Time) {
	if r.trace == nil {
		return
	}
	r.mu.Lock()
	if wait := began.Sub(r.idle); !r.idle.IsZero() && wait >= leastWait {
		r.event("wait", 1, r.idle, wait)
	}
	r.event("compute", 1, began, ended.Sub(began))
	r.idle = ended
	r.mu.Unlock()
}

// Exchanged adds an exchange that has ended now to the trace.
func (r *Recorder) Exchanged(partner transport.PeerID, inbound bool, took time.Duration) {
	if r.trace == nil {
		return
	}
	row := 2
	if inbound {
		row = 3
	}
	r.mu.Lock()
	r.event("exchange with "+partner.Short(), row, time.Now().Add(-took), took)
	r.mu.Unlock()
}

// Named says whose events these are.
func (r *Recorder) Named(name string, self transport.PeerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id = strconv.FormatUint(self.Fingerprint()>>32, 10) // a number that a double holds
	r.events = fmt.Appendf(r.events, `{"name":"process_name","ph":"M","pid":%s,"args":{"name":%q}},`+"\n", r.id, name+" "+self.Short())
	for row, name := range []string{1: "trainer", 2: "exchanges begun", 3: "exchanges served"} {
		if name != "" {
			r.events = fmt.Appendf(r.events, `{"name":"thread_name","ph":"M","pid":%s,"tid":%d,"args":{"name":%q}},`+"\n", r.id, row, name)
		}
	}
}

// event adds an event. The lock is held.
func (r *Recorder) event(name string, row int, from time.Time, took time.Duration) {
	if r.id == "" {
		return // before it is known whose events these are
	}
	if r.count++; r.count > MaxEvents {
		if r.count == MaxEvents+1 {
			r.log.Warn("the trace is full: later events are left out", zap.Int("events", MaxEvents))
		}
		return
	}
	r.events = fmt.Appendf(r.events, `{"name":%q,"ph":"X","ts":%d,"dur":%d,"pid":%s,"tid":%d},`+"\n", name, from.UnixMicro(), took.Microseconds(), r.id, row)
}

// flush writes the events so far.
func (r *Recorder) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) > 0 {
		r.fault(r.trace.Write(r.events))
		r.events = r.events[:0]
	}
}
