package orders

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// noted collects what a peer is told of members.
type noted struct{ all []control.Change }

func (c *noted) take(_ string, changes []control.Change) { c.all = append(c.all, changes...) }

// TestChangesOfMembers: each is passed on once. One to leave is for the peer that it names, and not for a later life of
// it, which hears of it from its checkpoint or from the member that it joins by; one of the lists is for all.
func TestChangesOfMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		operator := place(t, n, "operator")
		voice := control.Operator{Transport: operator, Run: run}
		subjects, told := map[string]*subject{}, map[string]*noted{}
		live := func(name string, recalled ...[]byte) {
			told[name] = &noted{}
			subjects[name] = obeying(t, n, name, control.Config{Operator: operator.Self(), Changed: told[name].take}, recalled...)
		}
		live("a")
		live("b")
		a := subjects["a"].at.Self()
		send := func(do control.Deed, id transport.PeerID) {
			t.Helper()
			if _, err := voice.Send(t.Context(), subjects["b"].at.Self(), control.Command{Kind: control.SetMembers, Changes: []control.Change{{Peer: id, Do: do}}}); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*subject{subjects["a"], subjects["b"]} {
				s.askNext(t.Context())
			}
		}
		is := func(name string, want ...control.Change) {
			t.Helper()
			if !reflect.DeepEqual(told[name].all, want) {
				t.Errorf("%s is told %v, want %v", name, told[name].all, want)
			}
		}
		subjects["a"].flock.members = []transport.Record{{Peer: subjects["b"].at.Self()}}
		send(control.Expel, "x")
		expel := control.Change{Peer: "x", Do: control.Expel, Since: 1}
		is("a", expel)
		is("b", expel)
		send(control.Drain, a)
		drain := control.Change{Peer: a, Do: control.Drain, Since: 2}
		is("a", expel, drain)
		is("b", expel)
		move := func(id transport.PeerID, site string) {
			t.Helper()
			if _, err := voice.Send(t.Context(), subjects["b"].at.Self(), control.Command{Kind: control.SetMembers, Changes: []control.Change{{Peer: id, Do: control.Move, Site: site}}}); err != nil {
				t.Fatal(err)
			}
			subjects["a"].askNext(t.Context())
		}
		move(a, "Oslo")
		move("x", "Rome")
		if subjects["a"].flock.site != "Oslo" || subjects["b"].flock.site != "" {
			t.Errorf("a is at %q, b at %q", subjects["a"].flock.site, subjects["b"].flock.site)
		}
		is("a", expel, drain) // the program hears nothing of it
		if !subjects["a"].Drained() || subjects["b"].Drained() {
			t.Error("another is to leave than was asked")
		}
		send(control.Admit, "x")
		admit := control.Change{Peer: "x", Do: control.Admit, Since: 5}
		is("a", expel, drain, admit)
		is("b", expel, admit)

		kept := subjects["a"].All()
		for _, knows := range [][][]byte{kept, nil} { // a later life, with a checkpoint and without
			subjects["a"].at.Close()
			live("a", knows...)
			for range 2 {
				if err := subjects["a"].Ask(t.Context(), subjects["b"].at.Self()); err != nil {
					t.Fatal(err)
				}
			}
			is("a", admit)
			if subjects["a"].flock.site != "" {
				t.Error("a later life is at the site of before")
			}
			if subjects["a"].Drained() {
				t.Error("a later life is to leave")
			}
		}
		subjects["a"].flock.members = []transport.Record{{Peer: subjects["b"].at.Self()}}
		send(control.Drain, a)
		is("a", admit, control.Change{Peer: a, Do: control.Drain, Since: 6})

		for what, hears := range map[string]func(){ // where the first answer was lost
			"from a member that it asks later": func() { subjects["a"].askNext(t.Context()) },
			"from a member that asks it":       func() { subjects["b"].askNext(t.Context()) },
		} {
			subjects["a"].at.Close()
			live("a")
			subjects["a"].flock.members, subjects["b"].flock.members = []transport.Record{{Peer: subjects["b"].at.Self()}}, []transport.Record{{Peer: a}}
			if err := subjects["a"].Ask(t.Context(), "gone"); err == nil {
				t.Fatal("one that is gone answers")
			}
			hears()
			is("a", admit)
			if subjects["a"].Drained() {
				t.Errorf("a later life is to leave, as it hears %s", what)
			}
		}
		send(control.Drain, a)
		is("a", admit, control.Change{Peer: a, Do: control.Drain, Since: 7})
	})
}

// TestDuties: of a member that is to train or rest it alone hears, and no later life; of weights all, also later.
func TestDuties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		operator := place(t, n, "operator")
		voice := control.Operator{Transport: operator, Run: run}
		told := map[string]*noted{"a": {}, "b": {}}
		a := obeying(t, n, "a", control.Config{Operator: operator.Self(), Changed: told["a"].take})
		b := obeying(t, n, "b", control.Config{Operator: operator.Self(), Changed: told["b"].take})
		a.flock.members = []transport.Record{{Peer: b.at.Self()}}
		rest, weigh := control.Change{Peer: a.at.Self(), Do: control.Rest}, control.Change{Peer: "x", Do: control.Weigh, Weight: 2}
		for _, c := range []control.Command{{Kind: control.SetDuties, Changes: []control.Change{rest}}, {Kind: control.SetMembers, Changes: []control.Change{{Peer: "x", Do: control.Admit}}}, {Kind: control.SetDuties, Changes: []control.Change{weigh}}} {
			if _, err := voice.Send(t.Context(), b.at.Self(), c); err != nil {
				t.Fatal(err)
			}
			a.askNext(t.Context())
		}
		rest.Since, weigh.Since = 1, 3
		admit := control.Change{Peer: "x", Do: control.Admit, Since: 2}
		if all := told["a"].all; !reflect.DeepEqual(all, []control.Change{rest, admit, weigh}) {
			t.Errorf("a is told %v", all)
		}
		if all := told["b"].all; !reflect.DeepEqual(all, []control.Change{admit, weigh}) {
			t.Errorf("b is told %v", all)
		}
		kept := a.All()
		a.at.Close()
		later := &noted{}
		obeying(t, n, "a", control.Config{Operator: operator.Self(), Changed: later.take}, kept...)
		if !reflect.DeepEqual(later.all, []control.Change{admit, weigh}) {
			t.Errorf("a later life is told %v", later.all)
		}
	})
}
