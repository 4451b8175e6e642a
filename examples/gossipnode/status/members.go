package status

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/control"
)

// flock is who takes part in a run: a contract of names.
type flock struct {
	Run     string   `json:"run"`
	Members []member `json:"members"`
}

// member is one of them. What only it can tell is null until it has.
type member struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Role    string     `json:"role"`
	State   string     `json:"state"`
	Steps   uint64     `json:"steps"`
	Lag     uint64     `json:"lag"` // steps behind the member that has most
	Loss    cli.Number `json:"loss"`
	Version string     `json:"version"`
	// LastExchange is the time since, as far as is known; Heard that since it told of itself.
	LastExchange cli.Number `json:"last_exchange_seconds"`
	Heard        cli.Number `json:"heard_seconds"`
}

// flockOf is what is shown of members at a moment.
func flockOf(run string, seen []control.Member, now time.Time) flock {
	f, most := flock{Run: run, Members: make([]member, len(seen))}, uint64(0)
	for _, s := range seen {
		most = max(most, s.Steps)
	}
	for i, s := range seen {
		f.Members[i] = member{
			ID: string(s.ID), Name: s.Digest.Name, Role: s.Role.String(), State: s.State.String(), Steps: s.Steps, Lag: most - s.Steps,
			Loss: cli.Number(s.Digest.Loss), Version: s.Digest.Version, LastExchange: seconds(s.Digest.Exchanged, now), Heard: seconds(s.Digest.Heard, now),
		}
	}
	return f
}

// seconds is the time since a moment, which may not be known.
func seconds(then, now time.Time) cli.Number {
	if then.IsZero() {
		return cli.Number(math.NaN())
	}
	return cli.Number(now.Sub(then).Seconds())
}

// table is a line for each member.
func (f flock) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", cli.Printable(f.Run), cli.Plural(uint64(len(f.Members)), "member"))
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "name\tid\trole\tstate\tsteps\tlag\tloss\texchange\tversion")
	for _, m := range f.Members {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", orNone(m.Name), cli.Printable(m.ID[max(0, len(m.ID)-8):]), m.Role, m.State, m.Steps, m.Lag,
			cli.Figure(m.Loss), ago(m.LastExchange), orNone(m.Version))
	}
	_ = columns.Flush() // to memory
	return text.String()
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// ago is a time as people say it.
func ago(seconds cli.Number) string {
	if math.IsNaN(float64(seconds)) {
		return "-"
	}
	return cli.Duration(time.Duration(float64(seconds)*float64(time.Second))) + " ago"
}
