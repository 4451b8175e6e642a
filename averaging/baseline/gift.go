package baseline

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// This file is how a member of the ring gets what the others have, when it is not in
// their round: in training the parameters, in a merge its result. A result goes by way of
// the Sum, and becomes the parameters in one step when all of it is there: a model of
// which half is the merge's is nobody's.

// gift is what the leader sends.
func (m *AllReduce) gift() averaging.Transfer {
	t := averaging.Transfer{From: averaging.Parameters, Into: averaging.Parameters, Parts: 1, Round: m.round}
	if m.merges {
		t.From, t.Into = averaging.Sum, averaging.Sum
	}
	return t
}

// gives tells whether a transfer is such. A ring's are of two parts at least.
func (m *AllReduce) gives(t averaging.Transfer) bool {
	kind := m.gift()
	return t.From == kind.From && t.Into == kind.Into && !t.Add && t.Parts == kind.Parts
}

// unsettled begins to take a gift in: what it replaces is of no use from here on.
func (m *AllReduce) unsettled() {
	m.lineage, m.mixed, m.initial = 0, true, false // neither the old parameters nor yet the others
	if m.merges {
		m.phase = ready // and no sum
	}
}

// given has taken a gift in.
func (m *AllReduce) given(t averaging.Transfer) {
	if m.merges {
		m.round = t.Round
		m.phase = updating
		m.do(averaging.Action{Kind: averaging.Adopt})
		return
	}
	m.round = t.Round
	m.phase = computing
	m.proceed()
}

// tidy gives up what would keep a member of a merge from the result: a claim of its own
// that came to nothing, and a gift of one that leads no more.
func (m *AllReduce) tidy(now time.Duration, actions []averaging.Action) []averaging.Action {
	if m.round > 0 || m.phase == updating || m.leads() {
		return actions
	}
	m.lineage = 0
	if m.phase != ready || m.leader == "" {
		return actions
	}
	m.core.begin(now, actions)
	for _, f := range m.in {
		if f.peer != m.leader {
			m.abortIn(f.peer)
		}
	}
	return m.end()
}
