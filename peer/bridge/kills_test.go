package bridge_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/tensor"
)

// The default is a hundred kills of each kind.
var (
	kills = flag.Int("kills", 100, "how often the trainer is killed, and the bridge")
	seed  = flag.Uint64("seed", 1, "seed of the moments at which they are killed")
)

// killed is a trainer with a step of 1 in one value after the other, which can say what it has committed.
type killed struct {
	*trainer
	random *rand.Rand
	resume json.RawMessage
	made   uint64 // steps made, over all lives
}

// step makes a step, in the memory.
func (k *killed) step() {
	v := k.read()
	v[k.made%uint64(len(v))]++
	k.made++
	k.write(v)
}

// commit commits the step; an answer that comes is noted.
func (k *killed) commit() {
	k.t.Helper()
	k.step()
	a := k.say(`{"op":"commit","steps":1}`)
	if !a.Added {
		k.t.Fatalf("%+v", a)
	}
	k.resume = a.Resume
}

// half sends a random beginning of a commit's line, perhaps all of it, and hears no answer. It
// reports whether the line was whole.
func (k *killed) half() bool {
	k.step()
	line := `{"op":"commit","steps":1}` + "\n"
	n := k.random.IntN(len(line) + 1)
	fmt.Fprint(k.control, line[:n])
	time.Sleep(time.Duration(k.random.IntN(3)) * time.Millisecond)
	return n == len(line)
}

// again begins another life of the trainer's peer, from the values in the memory.
func (k *killed) again(w world, name string, file *os.File, join string) {
	k.t.Helper()
	v := k.read()
	k.trainer = w.with(k.t, name, file, v)
	hello := fmt.Sprintf(`{"op":"hello","v":1,"run":"digits","join":[%s],"layout":[{"name":"w","shape":[%d]}]`, join, len(v))
	if k.resume != nil {
		hello += `,"resume":` + string(k.resume)
	}
	a := k.say("%s}", hello)
	if !a.OK || k.resume != nil && a.Start != "resumed" && a.Start != "founder" {
		k.t.Fatalf("another life: %+v", a)
	}
	k.resume = a.Resume
}

func newFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestKilledBridges: a bridge dies at a random moment, in a commit or between two, and the next
// goes on with the trainer's values: every step that the trainer has made is there once, and counted
// once, but for one whose commit was cut short, which is in the values and perhaps not counted.
func TestKilledBridges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, file := alone(), newFile(t)
		k := &killed{trainer: w.with(t, "only", file, make(tensor.Vector, 40)), random: rand.New(rand.NewPCG(*seed, 1))}
		a := k.hello("f32", "")
		k.resume = a.Resume
		cut := uint64(0)
		for range *kills {
			for range k.random.IntN(5) {
				k.commit()
			}
			if k.random.IntN(2) == 0 {
				k.half()
				cut++
			}
			w.network.Crash(k.peer.Self())
			k.there.Close()
			<-k.ended
			k.control.Close()
			k.again(w, "only", file, "")
		}
		k.commit()
		var sum float64
		for _, v := range k.read() {
			sum += float64(v)
		}
		a = k.say(`{"op":"commit"}`)
		if sum != float64(k.made) || a.Steps > k.made || a.Steps+cut < k.made || a.Flock != a.Steps {
			t.Errorf("%v in the values, %d steps counted, %d of the flock; made were %d, of which %d were cut short", sum, a.Steps, a.Flock, k.made, cut)
		}
	})
}

// TestKilledTrainers: a trainer dies at a random moment, with exchanges all the time; its peer leaves
// in good order, and what was committed is in the sum of the models exactly once.
func TestKilledTrainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{network: memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}}), configure: func(c *peer.Config) { c.Training.Exchange.Pace.Every = 1 }}
		other := w.trainer(t, "other", make(tensor.Vector, 40))
		other.hello("f32", "")
		file, random := newFile(t), rand.New(rand.NewPCG(*seed, 2))
		k := &killed{trainer: w.with(t, "killed", file, make(tensor.Vector, 40)), random: random}
		if a := k.hello("f32", `"mem:other"`); !a.OK {
			t.Fatalf("%+v", a)
		}
		committed, model, met := 0.0, make(tensor.Vector, 40), uint64(0)
		for n := range *kills {
			commits := 1 + random.IntN(4)
			if n == 0 {
				commits = 40 // or one step more of the other is so large a part of all that the next life copies its model
			}
			for i := range commits {
				if n == 0 && i == commits-1 {
					time.Sleep(time.Second) // gossip tells each what the other has done: a life that knew nothing of it copies
				}
				k.commit()
				committed++
				if a := other.say(`{"op":"commit","steps":1}`); !a.OK {
					t.Fatalf("%+v", a)
				}
				time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond)
			}
			before := k.peer.Stats().Steps
			if random.IntN(2) == 0 {
				k.half()
			}
			k.control.Close()
			if err := <-k.ended; !errors.Is(err, bridge.ErrGone) {
				t.Fatalf("Serve: %v", err)
			}
			committed += float64(k.peer.Stats().Steps - before) // a whole line may count, or not
			met += k.peer.Stats().Exchanges.Completed()
			time.Sleep(time.Second)
			if _, err := k.peer.Snapshot(model, 0); err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, v := range model {
				sum += float64(v)
			}
			if _, err := other.peer.Snapshot(model, 0); err != nil {
				t.Fatal(err)
			}
			for _, v := range model {
				sum += float64(v)
			}
			if math.Abs(sum-committed) > 1e-2 {
				t.Fatalf("after %d kills the models' sum is %v, and %v was committed", n+1, sum, committed)
			}
			// A supervisor starts the trainer again: it begins where its peer has ended, as that member.
			if _, err := k.peer.Snapshot(model, 0); err != nil {
				t.Fatal(err)
			}
			k.write(model)
			stats := k.peer.Stats()
			k.resume = fmt.Appendf(nil, `{"seed":%s,"incarnation":%d,"age":%d,"flock_steps":%d,"own":%d}`,
				seedOf(t, k.resume), stats.Incarnation, stats.Age, stats.FlockSteps, stats.Steps)
			w.network.Crash(k.peer.Self()) // its process has ended
			k.again(w, "killed", file, `"mem:other"`)
		}
		if met < uint64(*kills) {
			t.Errorf("only %d exchanges: the test shows nothing", met)
		}
	})
}

// seedOf is the seed in a resume, as JSON.
func seedOf(t *testing.T, resume json.RawMessage) json.RawMessage {
	t.Helper()
	var r struct{ Seed json.RawMessage }
	if err := json.Unmarshal(resume, &r); err != nil {
		t.Fatal(err)
	}
	return r.Seed
}
