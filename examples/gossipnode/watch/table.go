package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// barWidth is the width of the progress bar.
const barWidth = 40

// Training is the View of peers that train. A log gets a line from time to time, and whenever the number of training
// peers changes.
type Training struct {
	training int  // number of training peers at the last line
	logged   bool // there was a line
	over     bool // the work was done at the last line
	ended    bool // all peers had ended at the last line
}

// columns are the columns of a table: peer, id, role, step, loss, exchanges (served ones included), and the estimated
// distance of the peer's model from the mean of all.
type columns struct {
	gap    string
	widths [7]int // negative: aligned to the left
	heads  []string
	digits int // digits of numbers
}

// columnsFor are the widest columns that fit on a terminal: if it is narrow, first the id is shortened, then all
// columns.
func columnsFor(width int) columns {
	heads := []string{"peer", "id", "role", "step", "loss", "exchanges", "est.dist"}
	switch {
	case width >= 66:
		return columns{"  ", [...]int{4, -8, -9, 8, 8, 9, 8}, heads, 4}
	case width >= 62:
		return columns{"  ", [...]int{4, -4, -9, 8, 8, 9, 8}, heads, 4}
	}
	heads[5], heads[6] = "exch", "~dist"
	return columns{" ", [...]int{4, -4, -9, 7, 6, 6, 6}, heads, 3}
}

// line puts texts into the columns.
func (c columns) line(texts ...string) string {
	for i, width := range c.widths {
		texts[i] = fmt.Sprintf("%*s", width, texts[i])
	}
	return strings.TrimRight(strings.Join(texts, c.gap), " ")
}

// figure is a number with as many digits as fit.
func (c columns) figure(n cli.Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'f', c.digits, 64)
}

// Head implements View.
func (*Training) Head(width int) string {
	c := columnsFor(width)
	return c.line(c.heads...)
}

// Row implements View. For a peer that does not train, its phase replaces the role.
func (*Training) Row(number int, p *Row, width int) string {
	c := columnsFor(width)
	role, id := p.Phase.String(), cli.Cut(transport.PeerID(p.ID).Short(), -c.widths[1])
	if p.Phase == PhaseTraining {
		role = p.Status.Role
	}
	s, peer := p.Status, strconv.Itoa(number)
	if s.Elapsed == 0 {
		return c.line(peer, id, role, "", "", "", "")
	}
	return c.line(peer, id, role, strconv.FormatUint(s.Step, 10), c.figure(s.Loss), strconv.FormatUint(s.Exchanges, 10), c.figure(s.Distance))
}

// Foot implements View: a progress bar, if it fits, and the outcome.
func (*Training) Foot(peers []*Row, width int) string {
	whole, training := overview(peers)
	if training == 0 {
		return outlook(peers)
	}
	text := fmt.Sprintf(" %3.0f %%", 100*whole.Progress) + whole.outcome(peers)
	if barWidth+len(text) > width {
		return strings.TrimSpace(text)
	}
	filled := int(whole.Progress*barWidth + 0.5)
	return strings.Repeat(barDone, filled) + strings.Repeat(".", barWidth-filled) + text
}

// Outlook implements View. It reports the end of the work once, and again when all peers have ended.
func (t *Training) Outlook(peers []*Row, since time.Duration) string {
	whole, training := overview(peers)
	over, ended := whole.Progress >= 1, !slices.ContainsFunc(peers, (*Row).underWay)
	again := over && t.over && ended == t.ended
	if again || t.logged && !over && training == t.training && since < printEvery {
		return ""
	}
	text := outlook(peers)
	if text != "" {
		*t = Training{training, true, over, ended}
	}
	return text
}

// outlook describes all peers in a line; "" if all have ended without training.
func outlook(peers []*Row) string {
	whole, training := overview(peers)
	if training == 0 {
		ready, under := 0, false
		for _, p := range peers {
			under = under || p.underWay()
			if p.Phase >= PhaseReady && p.Phase <= PhaseDone {
				ready++
			}
		}
		if !under {
			return ""
		}
		return fmt.Sprintf("%d of %s ready", ready, cli.Plural(uint64(len(peers)), "peer"))
	}
	text := fmt.Sprintf("%3.0f %%  step %d  loss %s  exchanges %d  est. distance %s  peers %d",
		100*whole.Progress, whole.Step, cli.Figure(whole.Loss), whole.Exchanges, cli.Figure(whole.Distance), training)
	return text + whole.outcome(peers)
}

// outcome describes the end: the remaining time, how many peers still train, or how many have ended with a result.
func (s Status) outcome(peers []*Row) string {
	left, ok := s.left()
	switch {
	case s.Progress < 1 && ok:
		return "  " + cli.Duration(left) + " left"
	case s.Progress >= 1 && slices.ContainsFunc(peers, (*Row).underWay):
		return "  " + othersAtWork
	case s.Progress >= 1:
		done := 0
		for _, p := range peers {
			if p.Phase == PhaseDone {
				done++
			}
		}
		return fmt.Sprintf("  %d of %s finished", done, cli.Plural(uint64(len(peers)), "peer"))
	}
	return ""
}

// overview combines the peers that train or have trained: steps and exchanges are sums (exchanges also of peers that
// have died), loss and distance are means, and progress is the largest.
func overview(peers []*Row) (whole Status, training int) {
	var loss, distance cli.Mean
	for _, p := range peers {
		whole.Initiated += p.Status.Initiated // including dead peers
		if p.Status.Elapsed == 0 || p.Phase == PhaseLost || p.Phase == PhaseFailed {
			continue
		}
		training++
		whole.Step += p.Status.Step
		if p.Status.Progress > whole.Progress {
			whole.Progress, whole.Begun = p.Status.Progress, p.Status.Begun
		}
		whole.Elapsed = max(whole.Elapsed, p.Status.Elapsed)
		loss.Add(p.Status.Loss)
		distance.Add(p.Status.Distance)
	}
	whole.Exchanges = whole.Initiated
	whole.Loss, whole.Distance = loss.Value(), distance.Value()
	return whole, training
}
