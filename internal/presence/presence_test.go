package presence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// world is what a presence sees in a test, and what it does there.
type world struct {
	transport.Transport
	transport.Membership
	*Presence
	flock *flock.Flock
	now   time.Time
	log   *observer.ObservedLogs

	members   []transport.Record // of others, as gossip says
	last      map[transport.PeerID]transport.Record
	highest   uint64 // incarnation of this peer that the network knows
	fails     error  // of an announcement
	news      bool   // in a record handed out
	placed    bool
	gone      bool // suspects do not answer
	announced []transport.Record
	compared  []transport.PeerID
	apart     error // of a comparison
	asked     int
	questions []func(context.Context)
}

func newWorld(t *testing.T) *world {
	core, logged := observer.New(zapcore.DebugLevel)
	w := &world{now: time.Unix(1e9, 0), log: logged, placed: true, last: map[transport.PeerID]transport.Record{}, flock: flock.New("me")}
	w.Presence = New(Config{
		Run: "digits", Transport: w, Membership: w, Flock: w.flock, Arrival: w, Life: w, Log: zap.New(core),
	})
	w.Presence.Train(1, false, topology.Exponential, 0)
	return w
}

func (w *world) Reached() bool                     { return w.placed }
func (w *world) Placed() bool                      { return w.placed }
func (w *world) MeetDuplicate(string, error, bool) {}

func (w *world) Gone(context.Context, transport.PeerID) bool {
	w.asked++
	return w.gone
}

func (w *world) Spawn(work func(context.Context)) bool {
	w.questions = append(w.questions, work)
	return true
}

func (w *world) Close() error               { return nil }
func (w *world) Refused() map[string]uint64 { return nil }
func (w *world) Self() transport.PeerID     { return "me" }
func (w *world) Addresses() []string {
	return []string{"mem:1", "mem:2", "mem:3", "mem:4", "mem:5", "mem:6"}
}
func (w *world) Sign(m []byte) ([]byte, error)                     { return m, nil }
func (w *world) Members() []transport.Record                       { return slices.Clone(w.members) }
func (w *world) Last(id transport.PeerID) (transport.Record, bool) { r, ok := w.last[id]; return r, ok }
func (w *world) Received(transport.PeerID, []byte) (bool, error)   { return w.news, nil }
func (w *world) Compare(_ context.Context, id transport.PeerID) error {
	w.compared = append(w.compared, id)
	return w.apart
}

func (w *world) Announce(r transport.Record) error {
	if w.fails != nil {
		return w.fails
	}
	if r.Incarnation <= w.highest {
		return &transport.OldIncarnationError{Highest: w.highest}
	}
	w.announced = append(w.announced, r)
	return nil
}

// spawned runs what was spawned, and takes what suspects have answered.
func (w *world) spawned(t *testing.T) (lost int) {
	t.Helper()
	for _, work := range w.questions {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			work(ctx)
			cancel()
		}()
		select {
		case f := <-w.Findings():
			if w.Found(f, w.now) {
				lost++
			}
		case <-ctx.Done():
		}
		cancel()
	}
	w.questions = nil
	return lost
}

// refresh expects no error, and a new overlay or none.
func (w *world) refresh(t *testing.T, changed bool) []transport.Record {
	t.Helper()
	members, overlay, err := w.Refresh(w.now)
	if err != nil || (overlay != nil) != changed {
		t.Fatalf("a new overlay: %v, %v", overlay != nil, err)
	}
	return members
}

func member(id string, role topology.Role) transport.Record {
	return transport.Record{Peer: transport.PeerID(id), Run: "digits", Incarnation: 1, Role: uint8(role)}
}

// TestARoleIsTakenOnceTheFlockIsSeen, is told at once, and leads to an overlay as long as
// the view changes.
func TestARoleIsTakenOnceTheFlockIsSeen(t *testing.T) {
	w := newWorld(t)
	w.members, w.placed = []transport.Record{member("b", topology.Passive)}, false
	w.refresh(t, false)
	if w.Role() != topology.Undecided || !w.Due(w.now) {
		t.Fatalf("the role %v before the flock is seen", w.Role())
	}
	w.placed = true
	w.refresh(t, true)
	if w.Role() != topology.Active || w.View() == 0 || w.Due(w.now) {
		t.Errorf("the role %v beside a passive", w.Role())
	}
	if last := w.announced[len(w.announced)-1]; topology.Role(last.Role) != topology.Active || len(last.Addresses) != transport.MaxAddresses {
		t.Errorf("announced %+v", last)
	}
	w.refresh(t, false)
	w.members[0].Role = 99 // which nobody has
	w.refresh(t, false)
}

// TestAPeerThatNobodyReachesIsActive, and says so.
func TestAPeerThatNobodyReachesIsActive(t *testing.T) {
	w := newWorld(t)
	if w.flock.SetReachable(true) || !w.flock.SetReachable(false) || w.flock.SetReachable(false) || !w.flock.Unreachable() {
		t.Error("what is no news is taken for it, or the other way round")
	}
	w.members = []transport.Record{member("b", topology.Active)}
	w.refresh(t, true)
	if w.Role() != topology.Active || w.announced[0].Flags&flock.Unreachable == 0 {
		t.Errorf("the role %v, announced %+v", w.Role(), w.announced)
	}
}

// TestStepsAreAnnouncedNowAndThen: the larger the flock the less often, and everything else
// at once.
func TestStepsAreAnnouncedNowAndThen(t *testing.T) {
	const crowd = 16   // members, in which a peer announces its steps each tick
	const target = 320 // at the end, ten steps of each
	w := newWorld(t)
	for i := range 2*crowd - 1 {
		w.members = append(w.members, member(fmt.Sprint(i), topology.Active+topology.Role(i%2)))
	}
	w.refresh(t, true)
	publish := func(want int) {
		t.Helper()
		before := len(w.announced)
		if err := w.Publish(w.now, target); err != nil || len(w.announced)-before != want {
			t.Errorf("%d announcements, want %d: %v", len(w.announced)-before, want, err)
		}
	}
	w.flock.Stepped()
	w.now = w.now.Add(time.Hour)
	publish(1)
	publish(0)
	w.flock.Stepped()
	w.now = w.now.Add(2*TickEvery - 1)
	publish(0)
	w.now = w.now.Add(1)
	publish(1)
	w.flock.Stepped()
	w.flock.Wait(true) // others may wait for what it says
	w.now = w.now.Add(TickEvery / 4)
	publish(1)
	w.flock.SetAge(50)
	publish(1)
	w.flock.Settle()
	w.fails = errors.New("no network")
	publish(0)
	w.fails = nil
	publish(1)
	if last := w.announced[len(w.announced)-1]; last.Head != 47 || last.Flags&flock.Over == 0 {
		t.Errorf("announced %+v", last)
	}
}

// TestWhoBeginsToTrainSaysSoAgain, a few times: others wait for it, of whom some may not have heard it.
func TestWhoBeginsToTrainSaysSoAgain(t *testing.T) {
	w := newWorld(t)
	w.flock.SetIdle(true)
	w.refresh(t, false)
	if err := w.Presence.Announce(w.now); err != nil {
		t.Fatal(err)
	}
	before := len(w.announced)
	w.Train(1, false, topology.Exponential, 0)
	for range 600 {
		w.now = w.now.Add(TickEvery)
		if err := w.Publish(w.now, 0); err != nil {
			t.Fatal(err)
		}
	}
	said := w.announced[before:]
	if len(said) != repeatTimes {
		t.Errorf("said %d times", len(said))
	}
	for _, r := range said {
		if !flock.Trains(r) {
			t.Errorf("said %+v", r)
		}
	}
}

// TestTheFirstWordOfALifeSaysWhatItGoesOnFrom: who hears the incarnation before the steps takes them for more steps.
func TestTheFirstWordOfALifeSaysWhatItGoesOnFrom(t *testing.T) {
	w := newWorld(t)
	w.flock.Resume(100, 300, nil, 200, 3)
	w.Train(1, false, topology.Exponential, 1)
	if err := w.Presence.Announce(w.now); err != nil {
		t.Fatal(err)
	}
	if r := w.announced[0]; r.Incarnation != 2 || r.Steps != 100 || r.Head != 200 || r.Flags&flock.Resumed == 0 || !flock.Trains(r) {
		t.Errorf("announced %+v", r)
	}
	if err := w.Publish(w.now, 0); err != nil || len(w.announced) != 1 {
		t.Errorf("announced %+v, which is no news: %v", w.announced[1:], err)
	}
	w.Leave(w.now)
	if r := w.announced[1]; r.Flags&flock.Leaving == 0 || r.Flags&flock.Resumed == 0 {
		t.Errorf("leaves with %+v", r)
	}
}

// TestANewLifeTakesTheNextIncarnation; one of which members have heard goes on under it, and
// one whose identity is used up says so.
func TestANewLifeTakesTheNextIncarnation(t *testing.T) {
	w := newWorld(t)
	w.highest = 7
	if err := w.Presence.Announce(w.now); err != nil || w.flock.Incarnation() != 8 || w.announced[0].Flags&flock.Resumed != 0 {
		t.Fatalf("incarnation %d, %+v: %v", w.flock.Incarnation(), w.announced, err)
	}
	if err := w.Presence.Announce(w.now); err != nil {
		t.Fatal(err)
	}
	for w.highest = 8; w.flock.Duplicates(w.now) == 0; w.highest = w.flock.Incarnation() {
		if err := w.Presence.Announce(w.now); err != nil || w.flock.Incarnation() != w.highest+1 {
			t.Fatalf("incarnation %d: %v", w.flock.Incarnation(), err)
		}
	}
	if last := w.announced[len(w.announced)-1]; last.Flags&flock.Resumed == 0 {
		t.Errorf("a life that goes on is announced as %+v", last)
	}
	if n := w.log.FilterMessageSnippet("another process has this peer's key").Len(); n != 1 {
		t.Errorf("told %d times that there are two processes", n)
	}
	w.highest = transport.MaxIncarnation
	w.flock.SetAge(100)
	if err := w.Publish(w.now, 0); !errors.Is(err, ErrIdentity) {
		t.Errorf("with an identity that is used up: %v", err)
	}
	w.Leave(w.now) // fails, and nobody waits for it
}

// TestWhoGossipCallsDeadIsAsked: it stays as long as it answers, and is lost once it does
// not; who said goodbye is let go.
func TestWhoGossipCallsDeadIsAsked(t *testing.T) {
	w := newWorld(t)
	b, c := member("b", topology.Passive), member("c", topology.Passive)
	w.members = []transport.Record{b, c}
	w.refresh(t, true)
	c.Flags, c.Sequence = flock.Leaving, 2
	w.members, w.last["c"] = nil, c
	if members := w.refresh(t, true); len(members) != 1 || members[0].Peer != "b" {
		t.Fatalf("the members %v, want b alone", members)
	}
	if lost := w.spawned(t); lost != 0 || w.asked != 1 || w.Due(w.now) {
		t.Errorf("b was asked %d times and answered, %d lost", w.asked, lost)
	}
	w.refresh(t, false)
	if w.now = w.now.Add(suspectEvery); len(w.questions) > 0 || !w.Due(w.now) {
		t.Error("b is asked again too early, or never")
	}
	w.gone = true
	w.refresh(t, false)
	if lost := w.spawned(t); lost != 1 || w.asked != 2 {
		t.Errorf("asked %d times, %d lost", w.asked, lost)
	}
	if members := w.refresh(t, true); len(members) != 0 {
		t.Errorf("the members %v", members)
	}
	if w.Found(Finding{"b", true}, w.now) {
		t.Error("one is lost that is not in question")
	}
	if _, lost := w.flock.Members(); lost != 1 {
		t.Errorf("%d lost, want b alone", lost)
	}
}

// TestARecordThatWasKnownLeadsToAComparison: the two see other members. Again and again
// leads to few.
func TestARecordThatWasKnownLeadsToAComparison(t *testing.T) {
	w := newWorld(t)
	w.news = true
	if news, err := w.Presence.Received("b", 99, nil); !news || err != nil || len(w.questions) > 0 {
		t.Error("what is news leads to a comparison")
	}
	w.news = false
	w.Presence.Received("b", w.View(), nil)
	if w.spawned(t); len(w.compared) != 0 {
		t.Error("compared with one that sees the same")
	}
	w.apart = errors.New("no answer") // which is no reason to ask again at once
	for range 5 {
		w.Presence.Received("b", 99, nil)
	}
	if w.spawned(t); w.log.FilterMessageSnippet("comparing memberships").Len() != 1 || !slices.Equal(w.compared, []transport.PeerID{"b"}) {
		t.Errorf("compared with %v, want b once", w.compared)
	}
	var c comparisons
	begun, now := 0, w.now
	for range 1000 {
		if now = now.Add(time.Second); c.begin("refuser", now) {
			begun++
		}
	}
	if most := 1000/int(compareMost/time.Second) + 10; begun > most {
		t.Errorf("%d comparisons with one that refuses each second of 1000, want at most %d", begun, most)
	}
	if !c.begin("another", now.Add(time.Second)) {
		t.Error("another waits for the refuser")
	}
}

// TestOtherAlgorithmsAreNamedOnce: of each member once, as long as it is one.
func TestOtherAlgorithmsAreNamedOnce(t *testing.T) {
	w := newWorld(t)
	odd := member("b", topology.Passive)
	odd.Flags = 2 << flock.AlgorithmShift
	w.members = []transport.Record{odd, member("unnamed", topology.Active)}
	for range 3 {
		w.Refresh(w.now)
	}
	if n := w.log.FilterMessageSnippet("another algorithm").Len(); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}
