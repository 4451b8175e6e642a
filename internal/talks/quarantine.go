package talks

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/tally"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Quarantine keeps partners away for a while that broke the rules, whoever found that, and tells of it.
type Quarantine struct {
	Links *links.Links
	Life  *tasks.Life // of the trainer
	Loop  Loop
	Hooks Hooks
	Tally *tally.Tally
	Log   *zap.Logger
}

// Quarantined is for how much longer a partner is kept away, 0 if it is not.
func (q *Quarantine) Quarantined(partner seam.PeerID) time.Duration {
	return q.Links.Quarantined(partner, q.Life.Now())
}

// Condemn keeps a partner away for a while, and reports it.
func (q *Quarantine) Condemn(partner seam.PeerID, offence error) {
	q.condemned(partner, q.Links.Quarantine(partner, q.Life.Now()), offence)
}

// condemned reports a partner that is kept away for a while.
func (q *Quarantine) condemned(partner seam.PeerID, term time.Duration, offence error) {
	q.Tally.Quarantined()
	q.Log.Warn("a partner broke the rules of the exchange and is kept away; nothing of what it sent last was applied",
		zap.String("peer", string(partner)), zap.Duration("for", term), zap.Error(offence),
		zap.String("remedy", wire.ReasonProtocol.Remedy()))
	q.Hooks.Quarantined(partner, term, offence)
	q.Loop.Event(collective.Event{Event: averaging.Event{Kind: averaging.Quarantined, Peer: partner, After: term}})
}
