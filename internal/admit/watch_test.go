package admit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// write makes a list anew, so that it is another file.
func write(t *testing.T, path string, ids ...transport.PeerID) {
	t.Helper()
	text := "# those who train digits\n"
	for _, id := range ids {
		text += "  " + string(id) + " # a peer\n\n"
	}
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// written is the path of a new list.
func written(t *testing.T, ids ...transport.PeerID) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	write(t, path, ids...)
	return path
}

// TestTheListIsReadAgain: who is added may come, who is taken off is told of and its streams
// end, but never the peer itself; a list that cannot be read changes nothing, and that is
// said once.
func TestTheListIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		a, friend, late := at(t, n, "host"), at(t, n, "friend"), at(t, n, "late")
		path := written(t, a.Self(), friend.Self())
		core, logs := observer.New(zap.WarnLevel)
		g, host := over(t, a, Config{List: path, Log: zap.New(core)})
		stays := make(chan struct{})
		handle(t, friend, transport.ProtocolExchange, func(*framed.Stream) { <-stays })
		defer close(stays)
		stream, err := host.Open(t.Context(), friend.Self(), transport.ProtocolExchange, run)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var removed []transport.PeerID
		go g.Watch(ctx, func(ids []transport.PeerID) { removed = append(removed, ids...) })
		judged := func(what string, want ...transport.PeerID) {
			t.Helper()
			time.Sleep(2*LookEvery + time.Millisecond) // to change the list at no moment when it is looked at
			synctest.Wait()
			for _, tr := range []transport.Transport{a, friend, late} {
				id, on := tr.Self(), slices.Contains(want, tr.Self())
				_, connected := host.Connect(t.Context(), tr.Addresses()[0])
				for _, err := range []error{g.AdmitID(id), g.Admit(id, nil), g.TakesPart(id), connected} {
					if on != (err == nil) || !on && !errors.Is(err, transport.ErrNotAdmitted) {
						t.Errorf("%s: %s is judged %v", what, tr.Addresses(), err)
					}
				}
				_, opened := host.Open(t.Context(), id, transport.ProtocolHello, run)
				kept := len(g.Members([]transport.Record{{Peer: id}})) == 1
				if on == errors.Is(opened, transport.ErrNotAdmitted) || kept != (on || tr == a) {
					t.Errorf("%s: %s is opened with %v, and kept: %v", what, tr.Addresses(), opened, kept)
				}
			}
		}
		judged("at first", a.Self(), friend.Self())
		write(t, path, late.Self(), friend.Self())
		judged("one added, the host off", late.Self(), friend.Self())
		if len(removed) != 0 {
			t.Errorf("the host itself is removed: %v", removed)
		}
		if err := stream.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Errorf("the friend's stream has ended: %v", err)
		}
		write(t, path, a.Self(), late.Self())
		judged("the friend off", a.Self(), late.Self())
		if _, err := stream.Write([]byte("x")); err == nil || !slices.Equal(removed, []transport.PeerID{friend.Self()}) {
			t.Errorf("removed %v; writing to the friend: %v", removed, err)
		}
		if n := logs.FilterMessageSnippet("taken off the list").FilterField(zap.String("peer", string(friend.Self()))).Len(); n != 1 {
			t.Errorf("%d lines about the friend", n)
		}
		for _, spoil := range []func(){func() { write(t, path, "two ids") }, func() { _ = os.Remove(path) }} {
			logs.TakeAll()
			spoil()
			time.Sleep(time.Minute)
			judged("unreadable", a.Self(), late.Self())
			if n := logs.FilterMessageSnippet("cannot be read").Len(); n != 1 {
				t.Errorf("%d lines about a list that cannot be read", n)
			}
		}
	})
}

// TestListsThatCannotBeRead: the error names the line and what to do.
func TestListsThatCannotBeRead(t *testing.T) {
	many := strings.Builder{}
	for i := range maxAllowed + 1 {
		fmt.Fprintln(&many, i)
	}
	for want, content := range map[string]string{
		"line 2: it is not mine": "# all\nforeign\n",
		"line 1":                 "two ids\n",
		fmt.Sprintf("line %d: more than", maxAllowed+1):        many.String(),
		fmt.Sprintf("it has more than %d bytes", maxAllowFile): strings.Repeat("#", maxAllowFile+1),
	} {
		path := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{List: path, CheckID: func(id transport.PeerID) error {
			return map[transport.PeerID]error{"foreign": errors.New("it is not mine")}[id]
		}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v does not say %q of %s", err, want, path)
		}
	}
	if _, err := New(Config{List: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "make the file") {
		t.Errorf("no file: %v", err)
	}
}

// TestStreamsWithoutAMark: one that begins without a mark, with a part of one, or with
// another's never reaches those that serve it, and is not kept for long. A hello needs none.
func TestStreamsWithoutAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		core, logs := observer.New(zap.WarnLevel)
		_, host := over(t, at(t, n, "host"), Config{Key: key, Log: zap.New(core)})
		mallory, friend, wronged := at(t, n, "mallory"), at(t, n, "friend"), at(t, n, "wronged")
		g, member := over(t, friend, Config{Key: key})
		_, mistaken := over(t, wronged, Config{Key: wrong})
		heard := map[transport.PeerID]string{}
		for _, protocol := range []transport.Protocol{transport.ProtocolHello, transport.ProtocolExchange} {
			handle(t, host, protocol, func(s *framed.Stream) {
				b := make([]byte, 3)
				_, err := s.Read(b)
				heard[s.Remote()] += fmt.Sprint(protocol == transport.ProtocolHello, string(b), err)
			})
		}
		send := func(from transport.Transport, protocol transport.Protocol, text string) {
			t.Helper()
			s, err := from.OpenLane(t.Context(), host.Self(), protocol, run, 1)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.Write([]byte(text))
			began := time.Now()
			if k, err := s.Read(make([]byte, 1)); err == nil || k > 0 || time.Since(began) > markTimeout {
				t.Errorf("%q is answered after %v: %v", text, time.Since(began), err)
			}
			s.Reset()
		}
		for _, mark := range []string{"", "short", string(make([]byte, 4096)), string(g.Mark()) + "abc"} {
			send(mallory, transport.ProtocolExchange, mark)
		}
		send(mistaken, transport.ProtocolExchange, "abc")
		if refused := logs.FilterMessageSnippet("does not take part").Len(); len(heard) != 0 || refused != 5 {
			t.Errorf("heard %q, %d lines", heard, refused)
		}
		send(mallory, transport.ProtocolHello, "abc")
		send(member, transport.ProtocolExchange, "abc")
		if len(heard) != 2 || heard[mallory.Self()] != "trueabc<nil>" || heard[friend.Self()] != "falseabc<nil>" {
			t.Errorf("heard %q", heard)
		}
	})
}

// mute is a transport on whose streams nothing can be written.
type mute struct{ transport.Transport }

func (m mute) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	s, err := m.Transport.Open(ctx, to, protocol, run)
	return unwritable{s}, err
}

type unwritable struct{ transport.Stream }

func (unwritable) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestAMarkThatCannotBeShown fails the opening, and leaves no stream behind.
func TestAMarkThatCannotBeShown(t *testing.T) {
	n := memnet.New(memnet.Config{})
	host := at(t, n, "host")
	handle(t, host, transport.ProtocolExchange, func(*framed.Stream) {})
	g, guest := over(t, mute{at(t, n, "guest")}, Config{Key: key})
	if _, err := guest.Open(t.Context(), host.Self(), transport.ProtocolExchange, run); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "the mark of the run's key") {
		t.Error(err)
	}
	for s := range g.streams.open.Range {
		t.Errorf("%v is kept", s)
	}
}

// topical is a transport that keeps whom a topic asks.
type topical struct {
	transport.Transport
	takesPart func(transport.PeerID) bool
}

func (o *topical) Topic(_ string, takesPart func(transport.PeerID) bool, _ transport.TopicHandler) (transport.Topic, error) {
	o.takesPart = takesPart
	return nil, transport.ErrNoTopics
}

// TestTopicsAndMarks: who has shown the run's key anywhere takes part in its topic, unless
// the caller knows better; a mark is that of one peer in one run.
func TestTopicsAndMarks(t *testing.T) {
	o := &topical{Transport: at(t, memnet.New(memnet.Config{}), "host")}
	g, host := over(t, o, Config{Key: key})
	_, _ = host.Topic("t", func(id transport.PeerID) bool { return id != "vetoed" }, nil)
	for id, c := range map[transport.PeerID]struct {
		mark            []byte
		admitted, takes bool
	}{
		o.Self():           {g.Mark(), true, true},
		"friend":           {g.key.mark("friend"), true, true},
		"vetoed":           {g.key.mark("vetoed"), true, false},
		"without":          {nil, false, false},
		"another's":        {g.key.mark("friend"), false, false},
		"of another run":   {runKey{"letters", key}.mark("of another run"), false, false},
		"with another key": {runKey{run, wrong}.mark("with another key"), false, false},
	} {
		before, err := o.takesPart(id), g.OfMembers().Admit(id, c.mark)
		if before != (id == o.Self()) || c.admitted != (err == nil) || o.takesPart(id) != c.takes {
			t.Errorf("%s takes part: %v, then %v; admitted with %v", id, before, !c.takes, err)
		}
	}
	if _, _ = host.Topic("t", nil, nil); !o.takesPart("vetoed") || (*Guard)(nil).OfMembers() != nil {
		t.Error("where the caller says nothing, the key alone decides, and where there is no guard, the membership has none")
	}
}
