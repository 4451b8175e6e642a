package collective

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/sums"
)

// pacing measures a sum, so that the next is divided into stripes by it.
type pacing struct {
	sums.Pace
	since time.Duration // when chunks began to be on their way, if sends
	sends bool
}

// ready notes that the values from one on are ready; where others had been already, those of another gradient.
func (p *pacing) ready(now time.Duration, from int) {
	switch n := len(p.Ready); {
	case n > 0 && from == p.Ready[n-1].From:
		return
	case n > 0 && from > p.Ready[n-1].From:
		p.Ready = p.Ready[:0]
	}
	p.Ready = append(p.Ready, sums.Ready{From: from, At: now})
}

// sent notes that a chunk is on its way.
func (p *pacing) sent(now time.Duration) {
	if !p.sends {
		p.sends, p.since = true, now
	}
}

// landed notes the end of a chunk that was sent; out are the other flights.
func (p *pacing) landed(now time.Duration, f Flight, out []Flight) {
	if round := f.Answered - f.Began; f.Accepted && (p.Round == 0 || round < p.Round) {
		p.Round = round
	}
	for _, other := range out {
		if _, carries := chunkOf(other.Transfer); carries {
			return
		}
	}
	if p.sends {
		p.sends = false
		p.Sending += now - p.since
	}
}

// over ends a sum of so many values, and returns what was measured.
func (p *pacing) over(length int) sums.Pace {
	measured := p.Pace
	measured.Length = length
	*p = pacing{}
	return measured
}
