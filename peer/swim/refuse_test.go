package swim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// forge seals a statement and lets the caller spoil it first.
func forge(t *testing.T, by transport.Identity, spoil func(s *statement)) []byte {
	t.Helper()
	s := sampleStatement(by.Self())
	spoil(&s)
	meta, err := seal(by, s)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// TestNewsThatIsRefused goes through the reasons for a veto.
func TestNewsThatIsRefused(t *testing.T) {
	self, alice, mallory := newIdentity(t, "self"), newIdentity(t, "alice"), newIdentity(t, "mallory")
	asIs := func(*statement) {}
	good := forge(t, alice, asIs)
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1

	d := &delegate{contacts: &contacts{log: zap.NewNop(), book: newBook(self, testRun, 1, func() {})}}
	node := func(name transport.PeerID, meta []byte) *memberlist.Node {
		return &memberlist.Node{Name: string(name), Addr: advertiseIP(name), Port: advertisePort, Meta: meta}
	}
	elsewhere := node(alice.Self(), good)
	elsewhere.Addr = advertiseIP(mallory.Self())
	long := transport.PeerID(make([]byte, maxPeerID+1))
	cases := []struct {
		name string
		node *memberlist.Node
		want error
	}{
		{"good", node(alice.Self(), good), nil},
		{"again", node(alice.Self(), good), nil},
		{"replayed under another name", node(mallory.Self(), good), errSignature},
		{"forged by another key", node(alice.Self(), forge(t, mallory, func(s *statement) { s.Sequence = 99 })), errSignature},
		{"changed", node(alice.Self(), flipped), errSignature},
		{"another run", node(alice.Self(), forge(t, alice, func(s *statement) { s.Run = "letters" })), errOtherRun},
		{"older sequence", node(alice.Self(), forge(t, alice, func(s *statement) { s.Sequence-- })), errOldRecord},
		{"older incarnation", node(alice.Self(), forge(t, alice, func(s *statement) { s.Incarnation--; s.Sequence = 1000 })), errOldRecord},
		{"newer", node(alice.Self(), forge(t, alice, func(s *statement) { s.Sequence++ })), nil},
		{"no longer the newest", node(alice.Self(), good), errOldRecord},
		{"new incarnation", node(alice.Self(), forge(t, alice, func(s *statement) { s.Incarnation++; s.Sequence = 1 })), nil},
		{"oversize", node(alice.Self(), make([]byte, memberlist.MetaMaxSize+1)), errOversize},
		{"empty", node(alice.Self(), nil), errTruncated},
		{"another's address", elsewhere, errWrongPlace},
		{"no name", node("", good), errBadName},
		{"long name", node(long, good), errBadName},
		{"our name, not our key", node(self.Self(), good), errSignature},
		{"our name, an earlier life", node(self.Self(), forge(t, self, asIs)), nil},
	}
	for _, c := range cases {
		if err := d.NotifyAlive(c.node); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if highest, ok := d.book.highest(alice.Self()); highest != 4 || !ok {
		t.Errorf("highest incarnation %d, %v, want 4", highest, ok)
	}
	if former, ok := d.book.highest(self.Self()); former != 3 || !ok {
		t.Errorf("incarnation of the former life %d, %v, want 3", former, ok)
	}
}

// TestMalloryStaysOut lets a peer spread another's record under its own name, and
// in another run's words, over the network.
func TestMalloryStaysOut(t *testing.T) {
	for name, lie := range map[string]func(m *member, victim *member) []byte{
		"replayed": func(m, victim *member) []byte { return victim.book.own.nodeMeta() },
		"other run": func(m, victim *member) []byte {
			return forge(t, m.wire, func(s *statement) { s.Run = "letters" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				members := cluster(t, n, 2)
				core, logs := observer.New(zapcore.WarnLevel)
				witness := startLogged(t, n, "witness", zap.New(core))
				witness.announce(t, 1, 0)
				witness.join(t, members[0])
				members = append(members, witness)
				within(t, gossipMissed, members, "joined", count(3))
				mallory := start(t, n, "mallory")
				meta := lie(mallory, members[1])
				mallory.book.own.set(sampleStatement(mallory.wire.Self()), meta)
				_ = mallory.list.UpdateNode(time.Nanosecond)
				mallory.join(t, witness)
				time.Sleep(20 * time.Second)
				for _, m := range members {
					if got := len(m.Members()); got != 3 {
						t.Errorf("a member sees %d records, want 3: %s", got, m.seen(members))
					}
				}
				if logs.Len() == 0 || logs.Len() > 25 {
					t.Errorf("%d log lines about the refusals in 20 s", logs.Len())
				}
			})
		})
	}
}

func TestAnnounceRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		m, other := start(t, n, "a"), start(t, n, "b")
		m.announce(t, 5, 0)
		for name, spoil := range map[string]func(r *transport.Record){
			"other peer":        func(r *transport.Record) { r.Peer = other.wire.Self() },
			"other run":         func(r *transport.Record) { r.Run = "letters" },
			"lower incarnation": func(r *transport.Record) { r.Incarnation = 4 },
			"addresses":         func(r *transport.Record) { r.Addresses = make([]string, transport.MaxAddresses+1) },
		} {
			record := m.record(5, 1)
			spoil(&record)
			if err := m.Announce(record); err == nil {
				t.Errorf("%s: announced", name)
			}
		}
		if got, want := m.seen([]*member{m}), "a:5:0"; got != want {
			t.Errorf("sees %s, want %s", got, want)
		}
	})
}

func TestMemberlistLines(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	stopping := make(chan struct{})
	w := newLogWriter(zap.New(core), stopping)
	lines := []struct {
		line, message, want string
		level               zapcore.Level
	}{
		{"[WARN] memberlist: handler queue full\n", "news of members come faster than they are read", "handler queue full", zapcore.WarnLevel},
		{"[ERR] memberlist: Push/Pull with x failed\n", "memberships could not be compared", "Push/Pull with x failed", zapcore.WarnLevel},
		{"[INFO] memberlist: Suspect x has failed\n", "memberlist tells", "Suspect x has failed", zapcore.InfoLevel},
		{"[DEBUG] memberlist: Stream connection\n", "memberlist tells", "Stream connection", zapcore.DebugLevel},
		{"Err: Could not set the deadline\n", "memberlist tells", "Err: Could not set the deadline", zapcore.InfoLevel},
		{"[WARN] memberlist: ignoring alive message for 'x': is old\n", "", "", 0},
	}
	for _, l := range lines {
		if n, err := w.Write([]byte(l.line)); n != len(l.line) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		entries := logs.TakeAll()
		if l.want == "" {
			if len(entries) != 0 {
				t.Errorf("%q was logged", l.line)
			}
			continue
		}
		if len(entries) != 1 || entries[0].Message != l.message || entries[0].ContextMap()["line"] != l.want || entries[0].Level != l.level {
			t.Errorf("%q became %+v", l.line, entries)
		}
	}
	close(stopping)
	w.Write([]byte(lines[0].line))
	if entries := logs.TakeAll(); len(entries) != 1 || entries[0].Level != zapcore.DebugLevel {
		t.Errorf("while stopping: %+v", entries)
	}
}
