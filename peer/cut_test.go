package peer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// cutter is a transport whose exchanges break: each stream that it opens is reset
// after a random number of bytes, in either direction, until it has made its cuts.
type cutter struct {
	transport.Transport
	mu     sync.Mutex
	random *rand.Rand
	most   int // bytes that pass before a cut, about what an exchange takes
	made   atomic.Int64
	armed  atomic.Bool // streams opened from then on are cut
}

func (c *cutter) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	stream, err := c.Transport.Open(ctx, to, protocol, run)
	if err != nil || protocol != transport.ProtocolExchange || !c.armed.Load() || c.spent() {
		return stream, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cut := &cutStream{Stream: stream, made: &c.made}
	cut.budget.Store(int64(c.random.IntN(c.most)))
	return cut, nil
}

func (c *cutter) spent() bool { return c.made.Load() >= cutsEach }

// cutStream is reset once its budget of bytes is used up: of a frame that is being
// written, the bytes within the budget still go out.
type cutStream struct {
	transport.Stream
	budget atomic.Int64
	once   sync.Once
	made   *atomic.Int64
}

func (s *cutStream) Write(b []byte) (int, error) {
	if left := s.budget.Add(-int64(len(b))); left < 0 {
		s.Stream.Write(b[:max(int64(len(b))+left, 0)])
		s.end()
	}
	return s.Stream.Write(b)
}

func (s *cutStream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	if s.budget.Add(-int64(n)) < 0 {
		s.end()
	}
	return n, err
}

func (s *cutStream) end() {
	s.once.Do(func() {
		s.made.Add(1)
		s.Reset()
	})
}

// restless makes a peer that asks a partner which failed again at once.
func restless(c averaging.Config) (averaging.Machine, error) {
	c.RetryAfter = time.Millisecond
	return averaging.NewADPSGD(c)
}

const (
	cutSliceLen = 64
	// cutsEach is how many streams are cut with each codec: a thousand with all.
	cutsEach = 334 / sparing
)

// TestCutsAnywhereLoseNothingOverLoopback: over real sockets, a thousand streams
// are cut at random bytes while both ends train.
func TestCutsAnywhereLoseNothingOverLoopback(t *testing.T) {
	t.Parallel()
	for codec, most := range map[string]int{"raw": 18000, "bf16": 9000, "lattice6+4": 6000} { // about the bytes of an exchange
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			var pair cutPair
			var join []string
			for i := range pair.peers {
				tr, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tr.Close() })
				pair.cutters[i] = &cutter{Transport: tr, most: most, random: rand.New(rand.NewPCG(7, uint64(i)))}
				pair.peers[i] = start(t, peer.Config{
					Run: "digits", Params: newModel(), Join: join, Network: peer.Network{Transport: pair.cutters[i]},
					Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: codec}, SliceLen: cutSliceLen, Machine: restless}},
				})
				join = tr.JoinAddresses()
			}
			pair.run(t)
		})
	}
}

// cutPair is two peers that train and exchange while their streams are cut.
type cutPair struct {
	peers   [2]*peer.Peer
	cutters [2]*cutter
}

// armed has streams cut once both peers have completed an exchange: before, a latecomer may still be
// busy joining, and cuts leave nothing in doubt. It tells whether the side that initiates has made its cuts.
func (c *cutPair) armed() (spent bool) {
	for i, p := range c.peers {
		if p.Stats().Exchanges.Completed() == 0 {
			return false
		}
		spent = spent || c.cutters[i].spent()
	}
	for _, cutter := range c.cutters {
		cutter.armed.Store(true)
	}
	return spent
}

// train applies random steps of known sum at one peer until the cuts are made, and some more.
func (c *cutPair) train(t *testing.T, i int) (total []float64) {
	random := rand.New(rand.NewPCG(11, uint64(i)))
	delta := make(tensor.Vector, newModel().Layout().Len())
	total = make([]float64, len(delta))
	pause := time.Millisecond
	if underRace {
		pause *= 4 // steps in between would take what cuts wait for
	}
	for more := 50; more > 0; time.Sleep(pause) {
		for k := range delta {
			delta[k] = float32(random.IntN(65)-32) / 1024
			total[k] += float64(delta[k])
		}
		if err := c.peers[i].Apply(t.Context(), delta, peer.Result{}); err != nil {
			t.Error(err)
			break
		}
		if c.armed() {
			more--
		}
	}
	return total
}

// run trains both, lets what is in doubt be settled, and compares the sum of the
// two models with what it should be.
func (c *cutPair) run(t *testing.T) {
	for _, p := range c.peers { // before the first step, so that neither copies the other's model
		if err := p.WaitMembers(t.Context(), len(c.peers)); err != nil {
			t.Fatal(err)
		}
	}
	var both sync.WaitGroup
	var steps [2][]float64
	for i := range c.peers {
		both.Go(func() { steps[i] = c.train(t, i) })
	}
	both.Wait()
	var doubted uint64
	soon(t, "nothing is in doubt any more", func() bool {
		waiting := uint64(0)
		doubted = 0
		for _, p := range c.peers {
			s := p.Stats().Exchanges
			waiting += s.InDoubt
			doubted += s.Settled
			if s.Lost > 0 || s.Quarantines > 0 {
				t.Fatalf("%d slices lost, %d quarantines", s.Lost, s.Quarantines)
			}
		}
		return waiting == 0
	})
	if doubted == 0 {
		t.Fatal("no slice was in doubt: the test tests nothing")
	}
	var off, all float64
	var models [2]tensor.Vector
	for i, p := range c.peers { // lets the exchange in flight end
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		models[i] = parameters(t, p)
	}
	for k, initial := range newModel().Vector() {
		want := 2*float64(initial) + steps[0][k] + steps[1][k]
		got := float64(models[0][k]) + float64(models[1][k])
		off += (got - want) * (got - want)
		all += want * want
	}
	relative := math.Sqrt(off / all)
	t.Logf("off by %.3g after %d cuts; %d slices were in doubt and settled", relative, c.cutters[0].made.Load()+c.cutters[1].made.Load(), doubted)
	if relative > 1e-6 { // rounding of thousands of float32 additions
		t.Errorf("the sum of the models is off by %.3g of itself", relative)
	}
}
