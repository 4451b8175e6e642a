package baseline

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// TestWhoseFirstGradientComesAfterTheServerHasDied: a worker that the successor's claim reached while it
// still believed that the named server was there asks the others once it has gone, and follows.
func TestWhoseFirstGradientComesAfterTheServerHasDied(t *testing.T) {
	const deadline = time.Second
	m, err := NewParamServer(Config{Self: "c", Server: "s", Deadline: deadline}, BSP{})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	claim := collective.Message{Kind: messageLead, Round: firstVersion + 3, View: topology.PeerID("b").Fingerprint()}
	d.view("s", "b", "c")
	d.told("b", claim)
	if m.Coordinator() != "" {
		t.Fatalf("it follows %q while the named server is there", m.Coordinator())
	}
	actions := d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1, Initial: true})
	d.view("b", "c")
	for m.Coordinator() == "" && d.now < 2*deadline {
		var timer collective.Action
		for _, a := range actions {
			switch {
			case a.Kind == averaging.SetTimer:
				timer = a
			case a.Kind == collective.Tell && a.Peer == "b" && a.Message.Kind == messageWho:
				d.told("b", claim)
			}
		}
		d.now += timer.After
		actions = d.handle(collective.Event{Event: averaging.Event{Kind: averaging.TimerFired, Timer: timer.Timer, Exchange: timer.Exchange}})
	}
	if m.Coordinator() != "b" {
		t.Errorf("it follows %q, want b", m.Coordinator())
	}
}

// TestFirstMemberThatHasNeverMetTheNamedServer: the others, who have lost it, wait for the first of them to give out its place. It does
// if they have had updates; if nobody has, it waits until they have passed it over.
func TestFirstMemberThatHasNeverMetTheNamedServer(t *testing.T) {
	const deadline = time.Second
	for _, version := range []uint64{initialVersion, firstVersion} {
		m, err := NewParamServer(Config{Self: "b", Server: "s", Deadline: deadline}, BSP{})
		if err != nil {
			t.Fatal(err)
		}
		d := &driven{t: t, machine: m}
		d.view("a", "b", "c", "s")
		actions := d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1, Initial: true})
		d.view("a", "b", "c")
		if m.members.First() != "b" {
			t.Fatalf("the first member is %s", m.members.First())
		}
		d.told("a", message(messageWho, version, 0))
		d.told("c", message(messageWho, initialVersion, 0))
		given := false
		for m.Coordinator() == "" && d.now < 3*deadline/2 {
			var timer collective.Action
			for _, a := range actions {
				if a.Kind == averaging.SetTimer {
					timer = a
				}
				if a.Kind == collective.Tell && a.Message.Kind == messageLead && a.Message.View == topology.PeerID("a").Fingerprint() {
					given = true
					d.told("a", collective.Message{Kind: messageLead, Round: version, View: topology.PeerID("a").Fingerprint()})
				}
			}
			d.now += timer.After
			actions = d.handle(collective.Event{Event: averaging.Event{Kind: averaging.TimerFired, Timer: timer.Timer, Exchange: timer.Exchange}})
		}
		if given != (version == firstVersion) {
			t.Errorf("version %d: it gives the place to a: %t, after %s", version, given, d.now)
		}
		d.told("a", collective.Message{Kind: messageLead, Round: firstVersion + 1, View: topology.PeerID("a").Fingerprint()})
		if m.Coordinator() != "a" {
			t.Errorf("version %d: it follows %q, want a", version, m.Coordinator())
		}
	}
}

// TestWhoOnlyServesIsToldThatItCannot: its named server has never come, nor has any other.
func TestWhoOnlyServesIsToldThatItCannot(t *testing.T) {
	const deadline = time.Second
	m, err := NewParamServers(Config{Self: "b", ServeOnly: true, Deadline: deadline}, []topology.PeerID{"s", "s"}, BSP{})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("b", "c")
	for part := range uint64(2) {
		d.told("c", message(messageWho, part<<partBit, 0))
	}
	for d.now < 3*deadline {
		d.now += deadline / 16
		for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: averaging.TimerFired, Timer: averaging.RoundDeadline, Exchange: m.set.tick}}) {
			if a.Kind == averaging.Halt {
				return
			}
		}
	}
	t.Error("it waits for ever")
}
