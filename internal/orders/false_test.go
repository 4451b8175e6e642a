package orders

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// What is forged, altered, of another run or operator, too large or noise is not obeyed, nor
// passed on; each is counted, and who says it on a stream is told why.
func TestFalseOrdersAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		operator, mallory := place(t, n, "operator"), place(t, n, "mallory")
		s := obeying(t, n, "subject", control.Config{Operator: operator.Self()})
		pause := func(by, author transport.Transport, run string) []byte {
			order, err := orderlog.Sign(by, wire.Control{Kind: wire.ControlHold, Sequence: 9, Run: run, Author: string(author.Self()), Body: []byte{1, 0}})
			if err != nil {
				t.Fatal(err)
			}
			return order.Bytes
		}
		altered := pause(operator, operator, run)
		altered[3] ^= 1 // the sequence
		for _, c := range []struct {
			name    string
			message []byte
			want    stats.Control
			reason  wire.Reason // on a stream; 0: it does not come so far
		}{
			{"forged", pause(mallory, operator, run), stats.Control{Forged: 1}, wire.ReasonProtocol},
			{"altered", altered, stats.Control{Forged: 1}, wire.ReasonProtocol},
			{"of another run", pause(operator, operator, "elsewhere"), stats.Control{Foreign: 1}, wire.ReasonOperator},
			{"of another operator", pause(mallory, mallory, run), stats.Control{Foreign: 1}, wire.ReasonOperator},
			{"oversize", make([]byte, wire.MaxControl+1), stats.Control{Oversize: 1}, 0},
			{"noise", []byte("noise"), stats.Control{Malformed: 1}, wire.ReasonProtocol},
		} {
			s.counts = counts{}
			if verdict, err := s.judge(c.message, false); verdict != transport.Refuse || err == nil || s.Stats() != c.want {
				t.Errorf("%s: verdict %v, %v and %+v, want %+v", c.name, verdict, err, s.Stats(), c.want)
			}
			_, err := orderlog.Said().Ask(t.Context(), mallory, run, s.at.Self(), [][]byte{c.message}, stall)
			if refusal, _ := errors.AsType[*wire.Refusal](err); c.reason != 0 && (refusal == nil || refusal.Reason != c.reason) {
				t.Errorf("%s: answered with %v, want %v", c.name, err, c.reason)
			}
			if len(s.said) != 0 || s.Held() != nil || len(s.All()) != 0 {
				t.Fatalf("%s: obeyed", c.name)
			}
		}
	})
}

// A digest is taken only of a member, signed by itself, newer than the last, and not
// sooner than a member may send one.
func TestFalseDigestsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		victim, mallory := place(t, n, "victim"), place(t, n, "mallory")
		s := obeying(t, n, "subject", control.Config{Digests: time.Minute})
		s.flock.members = []transport.Record{{Peer: victim.Self()}}
		digest := func(by transport.Transport, author transport.PeerID, sequence, steps uint64, spoil int) []byte {
			body := control.Digest{Incarnation: 1, Steps: steps, Loss: math.NaN()}.Body(wire.ControlDigest)[spoil:]
			order, err := orderlog.Sign(by, wire.Control{Kind: wire.ControlDigest, Sequence: sequence, Run: run, Author: string(author), Body: body})
			if err != nil {
				t.Fatal(err)
			}
			return order.Bytes
		}
		for _, c := range []struct {
			name    string
			message []byte
			want    stats.Control
			verdict transport.Verdict
		}{
			{"forged", digest(mallory, victim.Self(), 9, 7, 0), stats.Control{Forged: 1}, transport.Refuse},
			{"a stranger's", digest(mallory, mallory.Self(), 1, 7, 0), stats.Control{Forged: 1, Foreign: 1}, transport.Drop},
			{"malformed", digest(victim, victim.Self(), 9, 7, 1), stats.Control{Forged: 1, Foreign: 1, Malformed: 1}, transport.Refuse},
			{"good", digest(victim, victim.Self(), 2, 5, 0), stats.Control{Forged: 1, Foreign: 1, Malformed: 1, Taken: 1}, transport.Forward},
			{"old", digest(victim, victim.Self(), 1, 7, 0), stats.Control{Forged: 1, Foreign: 1, Malformed: 1, Taken: 1, Known: 1}, transport.Drop},
			{"hasty", digest(victim, victim.Self(), 3, 7, 0), stats.Control{Forged: 1, Foreign: 1, Malformed: 1, Taken: 1, Known: 1, Hasty: 1}, transport.Drop},
		} {
			if verdict, _ := s.judge(c.message, false); verdict != c.verdict || s.Stats() != c.want {
				t.Errorf("%s: verdict %v and %+v, want %v and %+v", c.name, verdict, s.Stats(), c.verdict, c.want)
			}
		}
		if all := s.told(); len(all) != 2 || all[0].Steps+all[1].Steps != 5 {
			t.Errorf("believed: %+v", all)
		}
		s.flock.members = nil
		if len(s.told()) != 1 {
			t.Error("a member that has gone is told of")
		}
		if _, err := s.digests.messages(s); err != nil || len(s.digests.received) != 0 {
			t.Errorf("%d digests of members that have gone are kept, %v", len(s.digests.received), err)
		}
	})
}
