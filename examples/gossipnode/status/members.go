package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// flock has the members of a run at a moment.
type flock struct {
	run     string
	members []control.Member
	now     time.Time
	alarms  []watch.Alarm
}

// most is the largest number of steps of a member, from which the lag of the others is counted.
func (f flock) most() (steps uint64) {
	for _, m := range f.members {
		steps = max(steps, m.Steps)
	}
	return steps
}

// MarshalJSON writes the fields whose names programs rely on.
func (f flock) MarshalJSON() ([]byte, error) {
	shown, most := make([]map[string]any, len(f.members)), f.most()
	for i, m := range f.members {
		shown[i] = watch.Shown(m, f.now)
		shown[i]["lag"] = most - m.Steps
	}
	return json.Marshal(map[string]any{"run": f.run, "members": shown, "alarms": f.alarms})
}

// table has a line for each member.
func (f flock) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", cli.Printable(f.run), cli.Plural(uint64(len(f.members)), "member"))
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	harmed := ""
	if slices.ContainsFunc(f.members, func(m control.Member) bool { return m.Harm.Partner != "" }) {
		harmed = "\tharmed by"
	}
	holds := slices.ContainsFunc(f.members, func(m control.Member) bool { return m.Rows > 0 })
	if holds {
		harmed = "\tdoes\trows" + harmed
	}
	placed := slices.ContainsFunc(f.members, func(m control.Member) bool { return m.Place != topology.Place{} })
	if placed {
		harmed = "\tsite\tuplink" + harmed
	}
	staged := slices.ContainsFunc(f.members, func(m control.Member) bool { return m.Stage > 0 })
	if staged {
		harmed = "\tstage" + harmed
	}
	fmt.Fprintln(columns, "name\tid\trole\tstate\tsteps\tlag\tloss\texchange\tversion"+harmed)
	for _, m := range f.members {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s", orNone(m.Name), cli.Printable(m.ID.Short()), m.Role, m.State, m.Steps, f.most()-m.Steps,
			cli.Figure(cli.Number(m.Loss)), f.ago(m.Exchanged), orNone(m.Version))
		if staged {
			fmt.Fprintf(columns, "\t%s", stageOf(m))
		}
		if placed {
			fmt.Fprintf(columns, "\t%s\t%s", orNone(cli.Printable(m.Place.Site)), uplink(m.Place.Uplink))
		}
		if holds {
			fmt.Fprintf(columns, "\t%s\t%d", m.Does(), m.Rows)
		}
		if m.Harm.Partner != "" {
			fmt.Fprintf(columns, "\t%s, trust %.0f %%", f.called(m.Harm.Partner), 100*m.Harm.Trust)
		}
		fmt.Fprintln(columns)
	}
	_ = columns.Flush() // a strings.Builder never fails
	for _, a := range f.alarms {
		fmt.Fprintf(&text, "alarm: %s: %s\n", f.called(a.Peer), a.Text)
	}
	return text.String()
}

// called is the name of a member, or the end of its id.
func (f flock) called(id transport.PeerID) string {
	for _, m := range f.members {
		if m.ID == id && m.Name != "" {
			return m.Name
		}
	}
	return cli.Printable(id.Short())
}

// stageOf is the stage of the model that a member trains.
func stageOf(m control.Member) string {
	if m.Stage == 0 {
		return "-"
	}
	return fmt.Sprint(m.Stage)
}

// uplink is a rate in words.
func uplink(u topology.Uplink) string {
	if u == 0 {
		return "-"
	}
	return fmt.Sprintf("from %.3g Mbit/s", u.BytesPerSecond()*8/1e6)
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// ago is the time since a moment in words.
func (f flock) ago(then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return cli.Duration(f.now.Sub(then)) + " ago"
}
