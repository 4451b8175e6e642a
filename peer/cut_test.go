package peer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
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
	most   int   // bytes that pass before a cut, about what an exchange takes
	wanted int64 // cuts to make
	made   atomic.Int64
	armed  atomic.Bool // streams opened from then on are cut
}

func (c *cutter) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	stream, err := c.Transport.Open(ctx, to, protocol, run)
	if err != nil || protocol != transport.ProtocolExchange {
		return stream, err
	}
	return c.cut(stream), nil
}

// OpenLane cuts lanes as Open does first streams.
func (c *cutter) OpenLane(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string, lane int) (transport.Stream, error) {
	stream, err := c.Transport.OpenLane(ctx, to, protocol, run, lane)
	if err != nil {
		return nil, err
	}
	return c.cut(stream), nil
}

// cut makes a stream one that is cut, if there are cuts to make.
func (c *cutter) cut(stream transport.Stream) transport.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed.Load() || c.made.Load() >= c.wanted {
		return stream
	}
	cut := &cutStream{Stream: stream, made: &c.made}
	cut.budget.Store(int64(c.random.IntN(c.most)))
	return cut
}

// cutStream is reset once its budget of bytes is used up: of a frame that is being
// written, the bytes within the budget still go out.
type cutStream struct {
	transport.Stream
	budget atomic.Int64
	cut    atomic.Bool
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
	if s.cut.CompareAndSwap(false, true) {
		s.made.Add(1)
		s.Reset()
	}
}

// restless makes a peer that asks a partner which failed again at once.
func restless(c averaging.Config) (averaging.Machine, error) {
	c.RetryAfter = time.Millisecond
	return averaging.NewADPSGD(c)
}

// cutPair is two peers that train and exchange while their streams are cut.
type cutPair struct {
	t       *testing.T
	peers   [2]*peer.Peer
	cutters [2]*cutter
	sum     []float64 // what the two models' sum should be
}

const cutSliceLen = 64

// cutCodecs are what streams that are cut carry, each with about the bytes that an
// exchange takes.
var cutCodecs = []struct {
	name string
	most int
}{{"raw", 18000}, {"bf16", 9000}, {"lattice6+4", 6000}}

// cutsEach is how many streams are cut with each codec: a thousand with all.
const cutsEach = 334 / sparing

func startCutPair(t *testing.T, codec string, most, lanes int, networks [2]peer.Network, join func(i int) []string) *cutPair {
	pair := &cutPair{t: t}
	for i := range pair.peers {
		pair.cutters[i] = &cutter{Transport: networks[i].Transport, random: rand.New(rand.NewPCG(7, uint64(i))), most: most, wanted: cutsEach}
		networks[i].Transport = pair.cutters[i]
		params := newModel()
		if pair.sum == nil {
			pair.sum = make([]float64, len(params.Vector()))
		}
		for k, v := range params.Vector() {
			pair.sum[k] += float64(v)
		}
		pair.peers[i] = start(t, peer.Config{
			Run:      "digits",
			Params:   params,
			Join:     join(i),
			Network:  networks[i],
			Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: codec}, SliceLen: cutSliceLen, Lanes: lanes, Machine: restless}},
		})
	}
	for _, p := range pair.peers { // before the first step, so that neither copies the other's model
		if err := p.WaitMembers(t.Context(), len(pair.peers)); err != nil {
			t.Fatal(err)
		}
	}
	return pair
}

// arm has streams cut once both peers have completed an exchange: before, a latecomer
// may still be busy joining, and cuts leave nothing in doubt.
func (c *cutPair) arm() {
	for _, p := range c.peers {
		if p.Stats().Exchanges.Completed() == 0 {
			return
		}
	}
	for _, cutter := range c.cutters {
		cutter.armed.Store(true)
	}
}

// train applies random steps of known sum at one peer until the cuts are made, and some
// more.
func (c *cutPair) train(i int, pace func()) []float64 {
	random := rand.New(rand.NewPCG(11, uint64(i)))
	delta, total := make(tensor.Vector, len(c.sum)), make([]float64, len(c.sum))
	for more := 50; more > 0; {
		for k := range delta {
			delta[k] = float32(random.IntN(65)-32) / 1024
			total[k] += float64(delta[k])
		}
		if err := c.peers[i].Apply(c.t.Context(), delta, peer.Result{}); err != nil {
			c.t.Error(err)
			break
		}
		pace()
		c.arm()
		if c.spent() {
			more--
		}
	}
	return total
}

// spent tells whether the side that initiates has made its cuts.
func (c *cutPair) spent() bool {
	for _, cutter := range c.cutters {
		if cutter.made.Load() >= cutter.wanted {
			return true
		}
	}
	return false
}

// run trains both, lets what is in doubt be settled, and compares the sum of the
// two models with what it should be.
func (c *cutPair) run(pace func(), rest func() bool) {
	c.t.Helper()
	var both sync.WaitGroup
	var steps [2][]float64
	for i := range c.peers {
		both.Go(func() { steps[i] = c.train(i, pace) })
	}
	both.Wait()
	doubted, waiting := uint64(0), uint64(1) // until they are counted
	for waiting > 0 && rest() {
		doubted, waiting = 0, 0
		for _, p := range c.peers {
			s := p.Stats().Exchanges
			waiting += s.InDoubt
			doubted += s.Settled
			if s.Lost > 0 || s.Quarantines > 0 {
				c.t.Fatalf("%d slices lost, %d quarantines", s.Lost, s.Quarantines)
			}
		}
	}
	if waiting > 0 {
		c.t.Fatalf("%d slices are still in doubt", waiting)
	}
	if made := c.cutters[0].made.Load() + c.cutters[1].made.Load(); made < c.cutters[0].wanted || doubted == 0 {
		c.t.Fatalf("%d cuts left %d slices in doubt: the test tests nothing", made, doubted)
	}
	for _, p := range c.peers { // lets the exchange in flight end
		if err := p.Close(); err != nil {
			c.t.Error(err)
		}
	}
	models := [2]tensor.Vector{make(tensor.Vector, len(c.sum)), make(tensor.Vector, len(c.sum))}
	var off, all float64
	for i, p := range c.peers {
		p.Snapshot(models[i], 0)
	}
	for k, want := range c.sum {
		want += steps[0][k] + steps[1][k]
		got := float64(models[0][k]) + float64(models[1][k])
		off += (got - want) * (got - want)
		all += want * want
	}
	if relative := math.Sqrt(off / all); relative > 1e-6 { // rounding of thousands of float32 additions
		c.t.Errorf("the sum of the models is off by %.3g of itself after %d cuts", relative, c.cutters[0].made.Load()+c.cutters[1].made.Load())
	} else {
		c.t.Logf("off by %.3g after %d cuts; %d slices were in doubt and settled",
			relative, c.cutters[0].made.Load()+c.cutters[1].made.Load(), doubted)
	}
}

// TestCutsAnywhereLoseNothingOverLoopback: over real sockets, a thousand streams
// are cut at random bytes while both ends train.
func TestCutsAnywhereLoseNothingOverLoopback(t *testing.T) {
	t.Parallel()
	for _, codec := range cutCodecs {
		t.Run(codec.name, func(t *testing.T) {
			t.Parallel()
			var networks [2]peer.Network
			for i := range networks {
				tr, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tr.Close() })
				networks[i].Transport = tr
			}
			pair := startCutPair(t, codec.name, codec.most, 1, networks, func(i int) []string {
				if i == 0 {
					return nil
				}
				return networks[0].Transport.(*p2pnet.Transport).JoinAddresses()
			})
			const patience = 2 * time.Minute
			var deadline time.Time // of the rest, which begins once the cuts are made
			pair.run(func() { time.Sleep(time.Millisecond) }, func() bool {
				if deadline.IsZero() {
					deadline = time.Now().Add(patience)
				}
				time.Sleep(10 * time.Millisecond)
				return time.Now().Before(deadline)
			})
		})
	}
}

// TestCutsAnywhereLoseNothingInVirtualTime is the same over a network in memory, and
// with several lanes.
func TestCutsAnywhereLoseNothingInVirtualTime(t *testing.T) {
	t.Parallel()
	for _, codec := range cutCodecs {
		for _, lanes := range []int{1, 3} {
			t.Run(fmt.Sprint(codec.name, lanes), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					network := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
					networks := [2]peer.Network{inMemory(t, network, "0", "digits"), inMemory(t, network, "1", "digits")}
					pair := startCutPair(t, codec.name, codec.most, lanes, networks, func(i int) []string { return []string{"mem:0"}[:i] })
					rests := 0
					pair.run(func() { time.Sleep(10 * time.Millisecond) }, func() bool {
						time.Sleep(time.Second)
						rests++
						return rests < 300
					})
				})
			})
		}
	}
}
