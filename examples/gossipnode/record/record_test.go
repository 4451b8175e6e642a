package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

const steps = 2500 // of each peer, if they were alike

// bowl is a task without data: its gradients lead to zero.
type bowl struct{}

func (bowl) Params() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{5000}})
	if err != nil {
		panic(err) // the shape is a constant
	}
	return tensor.NewParams(layout)
}

func (bowl) Gradient(_, _ int, x, grad tensor.Vector) (peer.Result, error) {
	copy(grad, x)
	return peer.Result{Samples: 1}, nil
}

func (bowl) Evaluate(tensor.Vector, bool) (accuracy, loss float64) { return 0, 0 }

// paces are the times of a step of each peer.
func paces() []time.Duration {
	paces := make([]time.Duration, 8)
	for i := range paces {
		paces[i] = time.Duration(10+5*i) * time.Millisecond
	}
	return paces
}

// figures are what a run and its replay are compared by.
type figures struct{ exchanges, bytes float64 }

// recorded has real peers, of which one dies and one leaves on the way, train in virtual time, and records them.
func recorded(t *testing.T, exchange peer.Exchange, path string) (f figures) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{
			Peers: len(paces()), Params: bowl{}.Params, Link: memnet.Link{Delay: 2 * time.Millisecond, Bandwidth: 5e6},
			Configure: func(_ int, c *peer.Config) {
				c.Training.Exchange, c.Training.Work = exchange, peer.Work{StepsPerPeer: steps}
				c.Network.Control.Digests = control.DigestSpacing
				c.Network.Admission.RunKey = []byte("so the steps of fast peers count in full")
			},
		})
		time.Sleep(5 * time.Second) // all have come
		first, last := slices.Clone(flock.Peers), slices.Clone(flock.Peers)
		slices.Reverse(last)
		of := func(role string, among []*peer.Peer) int {
			return slices.Index(flock.Peers, among[slices.IndexFunc(among, func(p *peer.Peer) bool { return p.Stats().Role == role })])
		}
		records, dies, leaves := of("active", first), of("active", last), of("passive", first) // so both roles stay, and nobody takes another
		var running sync.WaitGroup
		var dead atomic.Bool
		var r Recorder
		for i, pace := range paces() {
			p := flock.Peers[i]
			running.Go(func() {
				for {
					err := p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
						time.Sleep(pace)
						return bowl{}.Gradient(i, 0, x, grad)
					})
					if err != nil || i == dies && dead.Load() {
						return
					}
					if i == records {
						r.See(time.Now(), p.Members(), p.Stats())
					}
				}
			})
		}
		time.Sleep(8 * time.Second)
		flock.Network.Crash(flock.Peers[dies].Self()) // Flock.Crash closes it, too, of which others may hear
		dead.Store(true)
		time.Sleep(8 * time.Second)
		flock.Leave(leaves)
		running.Wait()
		if err := r.Write(path); err != nil {
			t.Error(err)
		}
		for _, p := range flock.Peers {
			s := p.Stats().Exchanges
			f.exchanges, f.bytes = f.exchanges+float64(s.Initiated), f.bytes+float64(s.BytesSent)
		}
	})
	return f
}

// TestAReplayIsLikeTheRun: a recorded run trains again in virtual time, with as many exchanges and bytes within a
// twentieth, with the deaths and departures at their times.
func TestAReplayIsLikeTheRun(t *testing.T) {
	exchange := peer.Exchange{Pace: averaging.Pace{Every: 8}}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	was := recorded(t, exchange, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, times := range map[string]int{`"did":"crash"`: 1, `"did":"leave"`: 1, `"did":"arrive"`: 0, `"did":"link"`: 1, `"peers":8,"active":[`: 1} {
		if strings.Count(string(text), what) != times {
			t.Errorf("%d times %s in\n%s", strings.Count(string(text), what), what, strings.Join(slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.Contains(l, `"step"`) }), "\n"))
		}
	}
	world, err := peertest.ReadRecording(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	done, err := peertest.Simulate(t.Context(), peertest.Simulation{
		Peers: world.Peers, Task: bowl{}, Work: peer.Work{StepsPerPeer: steps}, Exchange: exchange, World: peertest.World{Replay: world},
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]float64{"exchanges": {was.exchanges, float64(done.Traffic.Exchanges)}, "bytes": {was.bytes, float64(done.Traffic.Bytes)}} {
		t.Logf("%s: %.0f in the run, %.0f in the replay, %+.1f %%", what, pair[0], pair[1], 100*(pair[1]/pair[0]-1))
		if off := pair[1]/pair[0] - 1; off > 0.05 || off < -0.05 || pair[0] == 0 {
			t.Errorf("the replay has %+.1f %% of %s", 100*off, what)
		}
	}
	if done.Traffic.Lost != 2 {
		t.Errorf("%d are lost in the replay, want 2", done.Traffic.Lost)
	}
}

// TestARecordIsBounded: however long a run is, and whoever comes and goes, no more than so many lines are kept, and the file
// can be read.
func TestARecordIsBounded(t *testing.T) {
	var r Recorder
	now := time.Unix(1e9, 0)
	for look := range maxLines {
		members := []control.Member{{ID: "a", Steps: uint64(look + 1)}, {ID: "holder", State: control.Idle}}
		if look%2 == 0 {
			members = append(members, control.Member{ID: "b", Steps: 1})
		}
		r.See(now.Add(time.Duration(look)*every), members, stats.Peer{})
	}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := r.Write(path); err != nil || len(r.lines) != maxLines || len(r.seen) != 2 {
		t.Fatalf("%v, %d lines of %d members", err, len(r.lines), len(r.seen))
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if world, err := peertest.ReadRecording(file); err != nil || world.Peers != 2 {
		t.Errorf("%+v, %v", world, err)
	}
}

// TestNobodySpoilsARecord: what one member says of itself, or how many there are, makes no file that cannot be read.
func TestNobodySpoilsARecord(t *testing.T) {
	var r Recorder
	now, steps := time.Unix(1e9, 0), uint64(0)
	for look := range 30 {
		at := now.Add(time.Duration(look) * every)
		steps += 900_000 // in all more than are read
		members := []control.Member{{ID: "honest", Steps: uint64(1 + look)}, {ID: "fast", Steps: steps}, {ID: "liar", Steps: 1 + uint64(look%2)<<63}}
		members[0].Exchanges, members[1].Exchanges, members[2].Exchanges = uint64(1+look), 1, 1+uint64(look%2)<<40
		for i := range 2 * topology.MaxMembers / 30 {
			members = append(members, control.Member{ID: transport.PeerID(fmt.Sprint("a stranger, ", look, ", ", i)), Role: topology.Active})
		}
		r.See(at, members, stats.Peer{Exchanges: stats.Exchanges{Links: []stats.Link{{Rate: 2e6, Round: time.Millisecond}, {Rate: math.Inf(1)}, {}}}})
	}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if world, err := peertest.ReadRecording(bytes.NewReader(text)); err != nil || world.Peers != topology.MaxMembers {
		t.Fatalf("%v, %d members", err, len(r.seen))
	}
	if !strings.Contains(string(text), `"Bandwidth":2000000,`) {
		t.Error("another bandwidth than that of the one link that is known")
	}
	for did, most := range map[string]int{`"did":"step","peer":0,`: 29, `"did":"exchange","peer":0,`: 29, `"did":"step","peer":1,`: 18, `"did":"step","peer":2,`: 0} {
		if n := strings.Count(string(text), did); n < most || n > 0 && most == 0 {
			t.Errorf("%d lines of %s", n, did)
		}
	}
}

// TestRecordsThatCannotBe: steps beyond all bounds are refused before memory is taken for them.
func TestRecordsThatCannotBe(t *testing.T) {
	for _, times := range []string{"-1", "9223372036854775807", "16777217"} {
		text := `{"world":1,"peers":1}` + "\n" + `{"did":"step","took":1,"times":1}` + "\n" + `{"did":"step","took":1,"times":` + times + "}\n"
		if _, err := peertest.ReadRecording(strings.NewReader(text)); !errors.Is(err, peertest.ErrRecording) {
			t.Errorf("%s times: %v", times, err)
		}
	}
}
