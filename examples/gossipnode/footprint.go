package main

import (
	"fmt"
	"sync"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// spread is a figure over several peers.
type spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// sole is the spread of one peer's figure.
func sole(value float64) spread { return spread{Mean: value, Min: value, Max: value} }

// spreadOf is the spread of the peers that know a figure; nil if none does.
func spreadOf(shares []share, of func(result) *spread) *spread {
	var all spread
	known := 0
	for _, s := range shares {
		one := of(s.Result)
		if one == nil {
			continue
		}
		if known == 0 {
			all.Min, all.Max = one.Min, one.Max
		}
		all.Min, all.Max = min(all.Min, one.Min), max(all.Max, one.Max)
		all.Mean += one.Mean
		known++
	}
	if known == 0 {
		return nil
	}
	all.Mean /= float64(known)
	return &all
}

func memoryOf(shares []share) *spread {
	return spreadOf(shares, func(r result) *spread { return r.PeakMemory })
}

// ownMemory is this process's peak memory, nil if it is unknown.
func ownMemory() *spread {
	bytes, err := host.PeakMemory()
	if err != nil || bytes == 0 {
		return nil
	}
	one := sole(float64(bytes))
	return &one
}

// footprint tells what the run took from the machine, in words.
func (r result) footprint() string {
	if r.PeakMemory == nil {
		return ""
	}
	text := fmt.Sprintf("Memory of a process: %s at its peak", cli.Size(uint64(r.PeakMemory.Mean)))
	if r.PeakMemory.Max != r.PeakMemory.Min {
		text += fmt.Sprintf(" (at most %s)", cli.Size(uint64(r.PeakMemory.Max)))
	}
	return text + fmt.Sprintf("; at most %s.\n", cli.Plural(uint64(r.ConnectionsMax), "connection"))
}

// partners are the peers that exchanges were completed with, up to maxPeers.
type partners struct {
	mu  sync.Mutex
	all map[seam.PeerID]struct{}
}

func (p *partners) met(id seam.PeerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[seam.PeerID]struct{})
	}
	if len(p.all) < maxPeers {
		p.all[id] = struct{}{}
	}
}

func (p *partners) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}
