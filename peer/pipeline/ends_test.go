package pipeline

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// ending has the ends of a plan stay with the data.
func ending(t testing.TB, plan Plan) Plan {
	t.Helper()
	plan, err := plan.EndsStay()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// ends are a world in which so many members have rows and the ends, and others the stage between. It has a tap.
func ends(t *testing.T, data, middle int) *world {
	w := newWorld(t, ending(t, perceptron(t, 1, 2)))
	w.taps = new(tap)
	for i := range data {
		w.member(string(rune('a'+i)), 0, true, nil)
	}
	for i := range middle {
		w.member(string(rune('m'+i)), 1, false, nil)
	}
	return w
}

// tap keeps what members write.
type tap struct {
	mu  sync.Mutex
	all bytes.Buffer
}

type tapped struct {
	*memnet.Transport
	*tap
}

type tappedStream struct {
	transport.Stream
	tap *tap
}

func (s tappedStream) Write(p []byte) (int, error) {
	s.tap.mu.Lock()
	s.tap.all.Write(p)
	s.tap.mu.Unlock()
	return s.Stream.Write(p)
}

func (t tapped) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	s, err := t.Transport.Open(ctx, to, protocol, run)
	if err != nil {
		return nil, err
	}
	return tappedStream{s, t.tap}, nil
}

func (t tapped) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	return t.Transport.Handle(protocol, run, func(s transport.Stream) { handler(tappedStream{s, t.tap}) })
}

// has tells whether values have gone over the wire, one after the other.
func (t *tap) has(v tensor.Vector) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.all.Bytes(), encode(raw(), v).data)
}

// carried counts the rows, and the labels of micro-batches, of a member's first ones that have gone over the wire. Labels that may be
// other values by chance are not looked for.
func (w *world) carried(member int) (rows, labels, of int) {
	rng := rand.New(rand.NewPCG(uint64(member), 7))
	for range 100 {
		x, y := points(rng, 4)
		if w.taps.has(x[:2]) {
			rows++
		}
		if y[0]*y[1]*y[2]*y[3] > 0 {
			if of++; w.taps.has(y) {
				labels++
			}
		}
	}
	return rows, labels, of
}

// TestEndsStay: where the first and the last stage stay with the data, no row, label or output is ever written to another, and the
// model learns as well.
func TestEndsStay(t *testing.T) {
	learned := func(stay bool) (accuracy float64) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, perceptron(t, 1, 2))
			w.taps, w.steps = new(tap), 1800/sparing
			if stay {
				w.plan, w.steps = ending(t, w.plan), 1200/sparing
			}
			w.flock(2)
			w.over()
			w.tell()
			rows, labels, of := w.carried(0)
			if of < 10 || stay && rows+labels > 0 || !stay && (rows < 50 || labels < of) {
				t.Errorf("the ends stay: %t; %d rows of 100 went over the wire, and labels of %d micro-batches of %d", stay, rows, labels, of)
			}
			for _, m := range w.all {
				rows, stage := m.Counts()
				if m.node.Stats().Exchanges.Completed() == 0 || stage.Done == 0 || rows.Lost+stage.Lost+rows.Again+stage.Again > 0 {
					t.Errorf("%s is idle, or has lost something", m.name)
				}
			}
			accuracy = w.accuracy(w.whole().Vector())
		})
		return accuracy
	}
	plain, stay := learned(false), learned(true)
	t.Logf("accuracy %.3f, %.3f where the ends stay", plain, stay)
	if stay < 0.8 || stay < plain-0.02 {
		t.Errorf("accuracy %.3f, %.3f where the ends stay", plain, stay)
	}
}

// TestPredictWhereEndsStay: outputs, and the whole model, are for those who have the ends, and for nobody else.
func TestPredictWhereEndsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ending(t, perceptron(t, 1, 2)))
		w.taps = new(tap)
		w.member("a", 0, false, nil)
		w.member("m", 1, false, nil)
		x, _ := points(rand.New(rand.NewPCG(4, 4)), 30)
		want, start := make(tensor.Vector, 30*4), w.plan.Whole.Init(3).Vector()
		w.plan.Whole.Predict(start, want, x)
		got, err := w.all[0].Predict(t.Context(), x)
		if err != nil || !tensor.Identical(got, want) || w.taps.has(want[:2]) || w.taps.has(x[:2]) {
			t.Errorf("%v, other outputs: %t, rows or outputs went over the wire: %t", err, err == nil, w.taps.has(want[:2]) || w.taps.has(x[:2]))
		}
		if whole, err := w.all[0].Whole(t.Context()); err != nil || !tensor.Identical(whole.Vector(), start) {
			t.Errorf("%v, another model: %t", err, err == nil)
		}
		if _, err := w.all[1].Predict(t.Context(), x); !errors.Is(err, ErrEnds) {
			t.Errorf("predicting without the ends: %v", err)
		}
		if _, err := w.all[1].Whole(t.Context()); !errors.Is(err, ErrEnds) {
			t.Errorf("copying the ends: %v", err)
		}
		if got, err := fetch(t.Context(), w.all[1].service, w.all[0].node.Self(), w.plan, 0); err == nil {
			t.Errorf("a member without the ends gets %d values of them", got.values.n)
		}
	})
}

// waitsFor tells whether a micro-batch of another has gone on to it from this member's stage, and has not come back.
func (m *member) waitsFor(other *member) bool {
	synctest.Wait() // nobody computes
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.Pipeline.steps.stages {
		for _, h := range s.held {
			if h.id.Source == other.node.Self() && h.onwards.n > 0 && h.errors == nil {
				return true
			}
		}
	}
	return false
}

// TestMembersDieWhereEndsStay: who has rows takes along its own micro-batches alone, which are counted; members of the stage between
// come and go, and what they had is sent again.
func TestMembersDieWhereEndsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ends(t, 3, 2)
		done := func() (n uint64) {
			for _, m := range w.all {
				rows, _ := m.Counts()
				n += rows.Done
			}
			return n
		}
		goesOn := func(after string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			before := done()
			time.Sleep(5 * time.Second)
			if n := done() - before; n < 500 {
				t.Errorf("%s: %d micro-batches came back in 5 s", after, n)
			}
			for _, m := range w.all {
				if rows, _ := m.Counts(); rows.Lost > 0 {
					t.Errorf("%s: %s has lost %d of its own", after, m.name, rows.Lost)
				}
			}
		}
		goesOn("at first")
		for !w.all[3].waitsFor(w.all[2]) && !w.all[4].waitsFor(w.all[2]) {
			time.Sleep(time.Millisecond)
		}
		w.crash(w.all[2])
		w.all = append(w.all[:2], w.all[3:]...) // a, b, m, n
		goesOn("after the death of one with rows")
		lost := uint64(0)
		for _, m := range w.all[2:] {
			_, stage := m.Counts()
			lost += stage.Lost
		}
		if most := uint64(2*len(w.plan.Stages) + 1); lost == 0 || lost > most {
			t.Errorf("the stage between has lost %d micro-batches, want the dead member's, of which there were %d at most", lost, most)
		}
		w.crash(w.all[2])
		w.all = append(w.all[:2], w.all[3:]...) // a, b, n
		goesOn("after the death of one between")
		again := uint64(0)
		for _, m := range w.all[:2] {
			_, stage := m.Counts()
			again += stage.Again
		}
		if again == 0 {
			t.Error("nothing was sent again")
		}
		n := w.node("o")
		place, err := Choose(t.Context(), n, w.plan)
		if err != nil || place.Stage != 1 {
			t.Fatalf("chose %+v, %v", place, err)
		}
		came := w.trains("o", n, place.Stage, w.plan.Init(1, 3), false, nil)
		goesOn("with a newcomer")
		if _, stage := came.Counts(); stage.Done == 0 {
			t.Error("the newcomer has nothing to do")
		}
		w.tell()
	})
}

// TestEndsOfOthers: a member has only its own micro-batches, of as many examples as they have, and only such as are on their way, in
// its last stage; and its first stage is nobody else's. Two stages have nothing between them, and rows are for members of the ends.
func TestEndsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ends(t, 1, 1)
		time.Sleep(2 * time.Second)
		middle, self := w.all[1], w.all[0].node.Self()
		x := encode(raw(), make(tensor.Vector, 4*w.plan.Stages[2].In().Len()))
		for _, source := range []transport.PeerID{self, middle.node.Self()} {
			p := parcel{examples: 4, values: x, targets: coded{codec: raw()}}
			p.id.Source = source
			_, before := w.all[0].Counts()
			middle.send(t.Context(), self, 2, p, func(o outcome, err error) {
				if err != nil || o.answer == 0 {
					t.Errorf("what is not on its way has an answer %d, %v", o.answer, err)
				}
			})
			time.Sleep(100 * time.Millisecond)
			if _, after := w.all[0].Counts(); after.Lost > before.Lost {
				t.Error("what is not on its way comes to the last stage")
			}
		}
		data := w.all[0].Pipeline.rows
		feed := make(tensor.Vector, 4*inputs)
		for _, examples := range []int{1, 3} {
			o, err := data.put(t.Context(), feed, tensor.Vector{3, 3, 3, 3})
			if err != nil {
				t.Fatal(err)
			}
			p := parcel{id: o.id, examples: examples, back: examples * w.plan.Stages[2].In().Len(), values: encode(raw(), make(tensor.Vector, examples*w.plan.Stages[2].In().Len())), targets: coded{codec: raw()}}
			answered := make(chan outcome, 1)
			middle.send(t.Context(), self, 2, p, func(o outcome, err error) {
				if err != nil {
					t.Error(err)
				}
				answered <- o
			})
			if got := <-answered; got.answer != stages.GivenUp {
				t.Errorf("a micro-batch of 4 examples that comes back as one of %d has the answer %d", examples, got.answer)
			}
		}
		middle.send(t.Context(), self, 0, parcel{examples: 4, values: encode(raw(), make(tensor.Vector, 4*inputs)), targets: coded{codec: raw()}}, func(o outcome, err error) {
			if err != nil || o.answer == 0 {
				t.Errorf("another's rows have an answer %d, %v", o.answer, err)
			}
		})
		time.Sleep(time.Second)
		if _, err := New(middle.node, middle.trainer, Config{Plan: w.plan, Stage: 1, Feed: func(context.Context) (x, y tensor.Vector, err error) { return nil, nil, nil }}); !errors.Is(err, peer.ErrConfig) {
			t.Errorf("rows without the ends: %v", err)
		}
	})
	if _, err := perceptron(t, 1).EndsStay(); err == nil {
		t.Error("both of two stages stay")
	}
}

// TestWhoLingersBetweenTwoSteps: where the run is over for a member that has read that its first stage is to step, and not yet that its last
// is, both begin the next round together. Were the last to have begun it before, it would have more to compute than there is room for.
func TestWhoLingersBetweenTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ending(t, deep(t, 1, 4)))
		n := w.node("a")
		trainer, err := n.Train(t.Context(), peer.Training{Params: w.plan.Init(0, 3), Stage: w.plan.Stage(0), Optimizer: &optim.SGD{}, Exchange: peer.Exchange{Machine: byAllReduce}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(n, trainer, Config{Plan: w.plan, Rounds: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(); trainer.Close(); n.Close() })
		p.mu.Lock()
		for _, s := range p.steps.stages {
			s.carryOut(s.machine.Enter(p.now(), 0))
			s.carryOut(s.machine.RoundOver(p.now(), 0))
		}
		p.mu.Unlock()
		first := <-p.jobs
		first.stage.desk.due = true
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Linger(ctx) }()
		synctest.Wait()
		end()
		<-ended
		for _, s := range p.steps.stages {
			if s.desk.due || len(p.jobs) > 0 {
				t.Errorf("stage %d waits still: %v, %d jobs", s.index, s.desk.due, len(p.jobs))
			}
		}
	})
}
