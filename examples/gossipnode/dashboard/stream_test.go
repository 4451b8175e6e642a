package dashboard

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestStream shows what those who watch are told: everything first, then what
// changes, exchanges by this peer as they happen, and the end.
func TestStream(t *testing.T) {
	t.Parallel()
	b := calmBoard(newCalm(), nil)
	d, url := openBoard(t, Config{Address: ":0"}, b)
	next, _ := listenTo(t, url)
	event, data := next()
	if event != "whole" || heardOf(t, data).About.Run != "digits" {
		t.Fatalf("first comes %s %s", event, data)
	}
	b.Exchanged(peer.Exchanged{Partner: "b", Inbound: true})
	b.Exchanged(peer.Exchanged{Partner: "c", Err: errors.New("cut\x1b[2J")})
	b.Quarantined("c", time.Minute, errors.New("NaN"))
	seen := make(map[string]string)
	wanted := [][2]string{
		{"exchanges", `{"from":"b","to":"a","count":1,"over":0}`}, {"events", `"detail":"cut[2J"`}, {"events", "kept away for 1m0s"}, {"state", `"total":3`},
	}
	untold := func(w [2]string) bool { return !strings.Contains(seen[w[0]], w[1]) }
	for i := 0; i < 12 && slices.ContainsFunc(wanted, untold); i++ { // the state comes once a second
		event, data := next()
		seen[event] += data
	}
	for _, w := range wanted {
		if untold(w) {
			t.Errorf("of %s is told %s, want %s", w[0], seen[w[0]], w[1])
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for event != "" {
		event, _ = next()
	}
}

// TestWatchersAreBounded shows that only so many watch at once, and that one
// who does not read is let go.
func TestWatchersAreBounded(t *testing.T) {
	b := calmBoard(newCalm(), nil)
	_, url := openBoard(t, Config{Address: ":0"}, b)
	for range maxWatchers {
		next, _ := listenTo(t, url)
		next()
	}
	if _, status := listenTo(t, url); status != http.StatusServiceUnavailable {
		t.Errorf("one too many is answered %d", status)
	}
	var h hub
	slow, quick := h.join(), h.join()
	for range maxWaiting + 1 {
		h.tell("state", 1)
		<-quick
	}
	if len(h.watchers) != 1 {
		t.Errorf("%d watch, one of which does not read", len(h.watchers))
	}
	for range slow {
	}
	h.leave(slow) // a second time is no harm
	h.close()
	if _, open := <-quick; open || h.join() != nil {
		t.Error("a hub that is closed goes on")
	}
}

// TestBoardHearsOthers shows that exchanges of others light up by what their digests
// tell, each once.
func TestBoardHearsOthers(t *testing.T) {
	p := newCalm()
	b := calmBoard(p, nil)
	tell := func(exchanges uint64, after time.Duration) {
		p.told = map[transport.PeerID]control.Digest{"b": {Received: b.began.Add(after), Partners: []control.Met{{Partner: "c", Exchanges: exchanges}, {Partner: "a", Exchanges: exchanges}}}}
		b.tick()
	}
	tell(5, 0)
	if len(b.pulses.new) != 0 {
		t.Errorf("what was before is told: %v", b.pulses.new)
	}
	tell(9, 4*time.Second)
	tell(9, 4*time.Second)
	if got := b.pulses.new[pair{"b", "c"}]; len(b.pulses.new) != 1 || got.Count != 4 || got.Over != 4 {
		t.Errorf("of 4 exchanges in 4 s is told %v", b.pulses.new)
	}
	tell(1, 5*time.Second) // it has begun another life
	if got := b.pulses.new[pair{"b", "c"}]; got.Count != 4 {
		t.Errorf("a new life counts as %v", got)
	}
	for i := range 2 * maxPulses {
		b.Exchanged(peer.Exchanged{Partner: transport.PeerID(rune('A' + i))})
	}
	if len(b.pulses.new) > maxPulses {
		t.Errorf("%d pairs are told of", len(b.pulses.new))
	}
}

// TestBoardEvents shows what people are told of.
func TestBoardEvents(t *testing.T) {
	p := newCalm()
	b := calmBoard(p, nil)
	b.tick()
	if len(b.news.kept) != 0 {
		t.Errorf("those who were there come: %+v", b.news.kept)
	}
	p.members = append(p.members[:2:2], control.Member{ID: "d", State: control.Training})
	p.stats.Control.Paused = true
	b.tick()
	p.members[1].State, p.stats.Control.Paused = control.Over, false
	b.tick()
	told := ""
	for _, h := range b.news.kept {
		told += h.Kind + " " + h.Peer + ", "
	}
	if told != "joined d, paused , gone c, over b, resumed , " {
		t.Errorf("told are %s", told)
	}
	for range 2 * maxHappenings {
		b.news.add("x", "", "")
	}
	if len(b.news.kept) != maxHappenings {
		t.Errorf("%d events are kept", len(b.news.kept))
	}
}

// TestHistory shows that a curve of any length is kept in bounded room, from its first
// point to nearly its last.
func TestHistory(t *testing.T) {
	var h history
	const all = 100_000
	for i := range all {
		h.add(point{Seconds: float64(i), Steps: uint64(i)})
	}
	kept := h.points()
	if len(kept) > maxPoints || len(kept) < maxPoints/2 || kept[0].Steps != 0 {
		t.Fatalf("%d points, from %d", len(kept), kept[0].Steps)
	}
	step := kept[1].Steps
	for i, p := range kept {
		if p.Steps != uint64(i)*step {
			t.Fatalf("point %d is at %d, of %d each", i, p.Steps, step)
		}
	}
	if last := kept[len(kept)-1].Steps; all-last > 2*step {
		t.Errorf("the last of %d points is %d", all, last)
	}
	h.add(kept[len(kept)-1])
	if len(h.points()) != len(kept) {
		t.Error("a flock that stands still makes points")
	}
}

// TestOutlookOfARun shows the estimate of the time to go.
func TestOutlookOfARun(t *testing.T) {
	var o outlookOf
	left := cli.Number(0)
	for i := range 100 {
		left = o.next(time.Duration(i)*time.Second, 0.001*float64(i), false)
	}
	if math.Abs(float64(left)-901) > 1 {
		t.Errorf("%v s left after 99 s of 1000", left)
	}
	if !math.IsNaN(float64(o.next(101*time.Second, 0.1, true))) || !math.IsNaN(float64(o.next(102*time.Second, 0.1, false))) {
		t.Error("a pause has an end that is known")
	}
}
