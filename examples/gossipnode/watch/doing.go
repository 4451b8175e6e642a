package watch

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Doing is the view of peers that say what they do: a fit, or a search. Begun is when they began, Counted what their sums count,
// and Idle what one does that says nothing.
type Doing struct {
	Begun         time.Time
	Counted, Idle string
}

// doingEvery is the time between two lines if the table cannot be redrawn.
const doingEvery = 5 * time.Second

// Head implements View.
func (d Doing) Head(int) string { return fmt.Sprintf("%-6s %8s  %s", "peer", d.Counted+"s", "at") }

// Row implements View.
func (d Doing) Row(number int, p *Row, _ int) string {
	return fmt.Sprintf("%-6d %8d  %s", number, p.Status.Sums, d.at(p))
}

// Foot implements View.
func (Doing) Foot([]*Row, int) string { return "" }

// Outlook implements View.
func (d Doing) Outlook(peers []*Row, since time.Duration) string {
	if since < doingEvery {
		return ""
	}
	most := peers[0]
	for _, p := range peers {
		if p.Status.Sums > most.Status.Sums {
			most = p
		}
	}
	return fmt.Sprintf("%.0f s: %s, %s", time.Since(d.Begun).Seconds(), cli.Plural(uint64(most.Status.Sums), d.Counted), d.at(most))
}

// at describes the current work of a peer in one or two words.
func (d Doing) at(p *Row) string {
	switch {
	case p.Phase >= PhaseDone:
		return p.Phase.String()
	case p.Status.Doing == "":
		return d.Idle
	}
	return p.Status.Doing
}
