package main

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// checkAlive tests that each process has taken steps since a time.
func (f *soakFlock) checkAlive(since time.Time) {
	f.t.Helper()
	for _, p := range f.peers {
		looks := p.lives[len(p.lives)-1].looks
		first := slices.IndexFunc(looks, func(s soakSample) bool { return s.at.After(since) })
		if first < 0 || looks[len(looks)-1].scraped["steps_total"] <= looks[first].scraped["steps_total"] {
			f.t.Errorf("%s after the beginning: peer %d is stuck\n%s", time.Since(f.begun).Round(time.Second), p.number, p.logs)
		}
	}
}

// checkTogether tests that all are there at the end, exchange, and have forgotten their
// quarrels.
func (f *soakFlock) checkTogether() {
	f.t.Helper()
	const enough = 2
	before := make([]float64, len(f.peers))
	for i, p := range f.peers {
		before[i] = p.last().completed()
	}
	clitest.Eventually(f.t, "all exchange at the end", func() bool {
		f.look()
		return !slices.ContainsFunc(f.peers, func(p *soakPeer) bool {
			s := p.last()
			return s.members() != float64(len(f.peers)) || s.completed() < before[p.number]+enough
		})
	})
	for i, p := range f.peers {
		s := p.last()
		if s["quarantines_total"] > 0 || s["quarantined_peers"] > 0 || s["in_doubt_slices"] > 0 {
			f.t.Errorf("peer %d: %v quarantines, %v slices in doubt after quiet", i, s["quarantines_total"], s["in_doubt_slices"])
		}
	}
}

// checkCounters tests that no counter runs backward in a life, and that those of all
// lives agree: what one has begun and completed, another has served.
func (f *soakFlock) checkCounters() {
	f.t.Helper()
	f.look()
	var begun, served, failed, lost, settled, steps float64
	lives, reasons := 0, map[string]float64{}
	for i, p := range f.peers {
		for _, life := range p.lives {
			lives++
			for n := 1; n < len(life.looks); n++ {
				for name, value := range life.looks[n].scraped {
					base, _, _ := strings.Cut(name, "{")
					if strings.HasSuffix(base, "_total") && value < life.looks[n-1].scraped[name] {
						f.t.Errorf("peer %d: %s fell from %v to %v", i, name, life.looks[n-1].scraped[name], value)
					}
				}
			}
			if len(life.looks) == 0 {
				continue
			}
			s := life.looks[len(life.looks)-1].scraped
			begun += s[`exchanges_total{outcome="completed",reason="none",side="initiated"}`]
			served += s[`exchanges_total{outcome="completed",reason="none",side="served"}`]
			failed += s.failed()
			for name, value := range s {
				if label, ok := strings.CutPrefix(name, `exchanges_total{outcome="failed",reason=`); ok && value > 0 {
					reasons[strings.NewReplacer(`"`, "", ",side=", " ", "}", "").Replace(label)] += value
				}
			}
			lost += s["lost_slices_total"]
			settled += s["settled_slices_total"]
			steps += s["steps_total"] - life.looks[0].scraped["steps_total"]
		}
	}
	f.t.Logf("%d lives, %.0f steps, %.0f exchanges completed by those who began them, %.0f by those who served, %.0f failed at either: %v; %.0f slices settled, %.0f lost",
		lives, steps, begun, served, failed, reasons, settled, lost)
	// A life's last look is some milliseconds before its end, in which a few exchanges end.
	const unseen, inFlight = 10, 8
	if differ := begun - served; max(differ, -differ) > failed+float64(unseen*lives) {
		f.t.Errorf("%v exchanges begun and completed, %v served, %v failed", begun, served, failed)
	}
	if begun < float64(10*lives) {
		f.t.Errorf("only %v exchanges", begun)
	}
	if bound := inFlight * (failed + float64(lives)); lost > bound {
		f.t.Errorf("%v slices lost, want at most %v", lost, bound)
	}
}

// checkGrowth tests that what processes hold is at the end what it was before the first
// quarter was over: of the first, which has lived all the time, and of the others, each
// after it has warmed up.
func (f *soakFlock) checkGrowth() {
	f.t.Helper()
	early, late := f.lasts/(2*soakQuarter), f.lasts-f.lasts/(2*soakQuarter)
	for _, c := range []struct {
		metric      string
		share, more float64 // of noise
	}{
		{"process_resident_memory_bytes", 0.1, 8e6},
		{"go_memstats_stack_inuse_bytes", 0.25, 1e6},
		{"go_goroutines", 0.15, 15},
		{"process_open_fds", 0.15, 8},
	} {
		for who, peers := range map[string][]*soakPeer{"the first": f.peers[:1], "the others": f.peers[1:]} {
			before := f.median(peers, c.metric, early, 2*early)
			after := f.median(peers, c.metric, late, f.lasts)
			f.t.Logf("%s of %s: %.4g in the second eighth of the time, %.4g in the last", c.metric, who, before, after)
			if before > 0 && after > before*(1+c.share)+c.more {
				f.t.Errorf("%s of %s has grown from %.4g to %.4g", c.metric, who, before, after)
			}
		}
	}
}

// median is that of a metric in a part of the soak, over processes that had warmed up;
// 0 if there were none.
func (f *soakFlock) median(peers []*soakPeer, metric string, from, to time.Duration) float64 {
	var values []float64
	for _, p := range peers {
		for _, life := range p.lives {
			for _, s := range life.looks {
				if at := s.at.Sub(f.begun); at >= from && at < to && s.at.Sub(life.began) > f.lasts/soakRipe {
					values = append(values, s.scraped[metric])
				}
			}
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
