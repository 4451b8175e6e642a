package baseline_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

var deaths = flag.Int("deaths", 20, "end each of several servers at so many moments, for each gate and in each way")

// paramServers make the machines of peers whose model is served in parts.
func paramServers(t failer, parts int, config baseline.Config, gate func() baseline.Gate) func(topology.PeerID) collective.Machine {
	return func(id topology.PeerID) collective.Machine {
		config.Self = id
		m, err := baseline.NewParamServers(config, make([]topology.PeerID, parts), gate())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// With one server nothing differs from ParamServer: the same events give the same words, transfers and timers.
func TestOnePartIsTheWhole(t *testing.T) {
	for _, s := range scenes(t) {
		folder, _, _ := strings.Cut(s.file, "/")
		if folder != "paramserver" {
			continue
		}
		want := s.play(t)
		gate := "bsp"
		if strings.Contains(s.file, "ssp") && !strings.Contains(s.file, "bsp") {
			gate = "ssp"
		}
		s.machine = paramServers(t, 1, baseline.Config{Deadline: 8 * time.Second}, gates(t)[gate])
		if got := s.play(t); got != want {
			t.Errorf("%s differs:\n%s\nwant\n%s", s.file, got, want)
		}
	}
}

// Members serve in turn, a part each as long as there are enough of them.
func TestMembersServeInTurn(t *testing.T) {
	for peers := 1; peers <= 6; peers++ {
		for parts := 1; parts <= 4; parts++ {
			w := newWorld(t, 1, paramServers(t, parts, baseline.Config{Deadline: time.Second}, gates(t)["bsp"]))
			for _, id := range names(peers) {
				w.join(id, steady(10*time.Millisecond)).start()
			}
			w.view(time.Millisecond)
			w.queue.Run(time.Second)
			serves := map[topology.PeerID]int{}
			for part := range parts {
				serves[w.coordinatorOf(part)]++
			}
			most := (parts + peers - 1) / peers
			for id, n := range serves {
				if n > most || len(serves) != min(parts, peers) {
					t.Errorf("%d peers, %d parts: %s serves %d of them, and %d serve", peers, parts, id, n, len(serves))
				}
			}
			w.settle(100 * time.Millisecond)
			endsAlike(t, w)
		}
	}
}

// A named member serves its part.
func TestNamedMembersServe(t *testing.T) {
	named := []topology.PeerID{"ca", "ba"}
	w := newWorld(t, 1, func(id topology.PeerID) collective.Machine {
		m, err := baseline.NewParamServers(baseline.Config{Self: id, Deadline: time.Second}, named, baseline.BSP{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
	for _, id := range names(4) {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(time.Second)
	if got := []topology.PeerID{w.coordinatorOf(0), w.coordinatorOf(1)}; !slices.Equal(got, named) {
		t.Errorf("%s serve, want %s", got, named)
	}
	w.settle(100 * time.Millisecond)
}

// When the server of a part ends at any moment, noticed, unseen or frozen, the member with the newest parameters of that
// part takes its place: nobody is halted, each makes steps again, and all end with one model.
func TestTheRunGoesOnWithoutAServer(t *testing.T) {
	const deadline, parts = 400 * time.Millisecond, 2
	const least = 25 // of about forty: as fast as before, and not by a round for each deadline
	ends := map[string]func(*world, topology.PeerID){
		"noticed": func(w *world, id topology.PeerID) { w.die(id, 50*time.Millisecond) },
		"unseen":  func(w *world, id topology.PeerID) { w.die(id, 0) },
		"frozen":  (*world).freeze,
	}
	for name, gate := range gates(t) {
		machine := paramServers(t, parts, baseline.Config{Deadline: deadline}, gate)
		for how, end := range ends {
			t.Run(fmt.Sprint(name, "/", how), func(t *testing.T) {
				for i := range *deaths {
					serves := func(w *world) topology.PeerID { return w.coordinatorOf(i % parts) }
					goesOn(t, newWorld(t, uint64(i), machine), serves, time.Duration(i)*time.Millisecond, 4*deadline, least, end)
				}
			})
		}
	}
}

// Whatever happens, no trainer waits for ever, and where nobody dies too late all end with one model.
func TestServersSurvive(t *testing.T) {
	for name, parts := range map[string]int{"bsp": 2, "ssp": 2, "dssp": 3, "asp": 5} {
		t.Run(fmt.Sprint(name, " of ", parts), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newWorld(r, rapid.Uint64().Draw(r, "seed"), paramServers(r, parts, baseline.Config{
					Deadline: 400 * time.Millisecond,
				}, gates(r)[name]))
				w.patience = 8 * time.Second
				traced(w)
				w.staged = rapid.Bool().Draw(r, "staged")
				hardships(r, w, 0.05)
			})
		})
	}
}

// The fault of each setting is told.
func TestServersFaults(t *testing.T) {
	for _, c := range []struct {
		config  baseline.Config
		servers int
		gate    baseline.Gate
		want    string
	}{
		{baseline.Config{Self: "a"}, 0, baseline.BSP{}, "0 servers"},
		{baseline.Config{Self: "a"}, baseline.MaxServers + 1, baseline.BSP{}, "65 servers"},
		{baseline.Config{Self: "a", Server: "b"}, 2, baseline.BSP{}, "Server is set"},
		{baseline.Config{}, 2, baseline.BSP{}, "Self is empty"},
		{baseline.Config{Self: "a"}, 2, nil, "the gate is nil"},
	} {
		if _, err := baseline.NewParamServers(c.config, make([]topology.PeerID, c.servers), c.gate); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %d servers: %v, want %q", c.config, c.servers, err, c.want)
		}
	}
}
