package stateserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	run      = "digits"
	stall    = 5 * time.Second
	values   = 39
	sliceLen = 16 // of which the last slice has a part
)

// donating is a state server of values that count from 0, with no peer around it.
type donating struct {
	*Server
	t       *testing.T
	network *memnet.Network
	at      *memnet.Transport
	closing chan struct{}
	ended   []error // of what could not be read
	copies  bool    // it has no model to give yet
}

func donate(t *testing.T) *donating {
	d := &donating{t: t, network: memnet.New(memnet.Config{Link: memnet.Link{Delay: 5 * time.Millisecond}}), closing: make(chan struct{})}
	d.at = d.transport("donor")
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i)
	}
	began := time.Now()
	held, err := replica.New(params, replica.Options{SliceLen: sliceLen, Clock: func() time.Duration { return time.Since(began) }})
	if err != nil {
		t.Fatal(err)
	}
	done := flock.New(d.at.Self())
	done.SetIncarnation(2)
	done.SetAge(100)
	done.AtLeast(300)
	d.Server = New(Config{
		Requests: requests.New(run, d.at, stall, counters.New(), zap.NewNop()), Layout: layout.Hash(), Replica: held,
		Flock: done, Model: d, Exchanges: d, Quarantine: d, Closing: d.closing,
	})
	stop, err := d.at.Handle(transport.ProtocolState, run, func(stream transport.Stream) {
		var s framed.Stream
		s.Begin(stream, stall)
		if err := d.Serve(context.Background(), &s); err != nil {
			d.ended = append(d.ended, err)
			stream.Reset()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return d
}

func (d *donating) Open() bool                                 { return !d.copies }
func (d *donating) Busy() bool                                 { return false }
func (d *donating) Quarantined(transport.PeerID) time.Duration { return 0 }

func (d *donating) transport(name string) *memnet.Transport {
	tr, err := d.network.Transport(name)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { tr.Close() })
	return tr
}

// joiner asks for the model by hand, on a stream of its own.
func (d *donating) newcomer(from *memnet.Transport) *framed.Stream {
	d.t.Helper()
	raw, err := from.Open(d.t.Context(), d.at.Self(), transport.ProtocolState, run)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(raw.Reset)
	s := new(framed.Stream)
	s.Begin(raw, 2*stall)
	if err := framed.Say(s, 0, wire.StateRequest{Run: run, Layout: d.Layout}); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// reason is why a joiner is told to go, 0 if it is given what it waits for.
func reason(s *framed.Stream, due framed.Decoder) (wire.Reason, error) {
	_, err := s.Receive(due)
	refusal, ok := errors.AsType[*wire.Refusal](err)
	if ok {
		return refusal.Reason, nil
	}
	return 0, err
}

// TestWhatIsGiven: what the manifest and its hashes promise, each signed, in the slices that
// are asked for, of one moment while the trainer goes on.
func TestWhatIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := donate(t)
		s := d.newcomer(d.transport("newcomer"))
		var m wire.Manifest
		if _, err := s.Receive(&m); err != nil || !d.at.Verify(d.at.Self(), m.Statement(nil), m.Signature) {
			t.Fatalf("the manifest: %v", err)
		}
		digest := sha256.Sum256(m.Append(nil))
		if m.Signature = nil; fmt.Sprint(m) != fmt.Sprint(wire.Manifest{Run: run, Layout: d.Layout, Server: string(d.at.Self()), Incarnation: 2, Steps: 100, FlockSteps: 300, Values: values, SliceLen: sliceLen}) {
			t.Errorf("the manifest is %+v", m)
		}
		d.Replica.Add(slices.Repeat(tensor.Vector{1}, values))
		s.Bulk()
		for _, want := range []wire.StateWant{{First: 1, Count: 2}, {First: 0, Count: 1}} {
			if err := framed.Say(s, 0, want); err != nil {
				t.Fatal(err)
			}
			var hashes wire.StateHashes
			if h, err := s.Receive(&hashes); err != nil || h.Slice != want.First || len(hashes.Hashes) != int(want.Count)*wire.HashSize || !d.at.Verify(d.at.Self(), hashes.Statement(nil, digest, want.First), hashes.Signature) {
				t.Fatalf("the hashes of %+v: %v", want, err)
			}
			all := slices.Clone(hashes.Hashes)
			for i := want.First; i < want.First+want.Count; i++ {
				h, payload, err := s.Await(wire.TypeStateSlice)
				got := make(tensor.Vector, len(payload)/tensor.ValueSize)
				if err != nil || h.Slice != i || len(got) != min(sliceLen, values-int(i)*sliceLen) || sha256.Sum256(payload) != [wire.HashSize]byte(all[(i-want.First)*wire.HashSize:]) {
					t.Fatalf("slice %d has %d values, %v", i, len(got), err)
				}
				if tensor.FromBytes(got, payload); got[len(got)-1] != float32(int(i)*sliceLen+len(got)-1) {
					t.Errorf("slice %d ends with %v", i, got[len(got)-1])
				}
			}
		}
		if d.Joiners() != 1 || d.Sent() != 3 {
			t.Errorf("%d newcomers, %d slices given", d.Joiners(), d.Sent())
		}
		s.Finish()
		time.Sleep(time.Second)
		if d.Joiners() != 0 || d.freezer.current != nil {
			t.Errorf("%d newcomers; a copy is kept: %v", d.Joiners(), d.freezer.current != nil)
		}
	})
}

// TestWhoIsTurnedAway: told why if it has asked for what it cannot have, and without a word if
// it breaks the rules.
func TestWhoIsTurnedAway(t *testing.T) {
	for name, c := range map[string]struct {
		more   func(d *donating, s *framed.Stream) error
		reason wire.Reason
	}{
		"beyond the model": {func(_ *donating, s *framed.Stream) error { return framed.Say(s, 0, wire.StateWant{First: 2, Count: 2}) }, 0},
		"another message":  {func(_ *donating, s *framed.Stream) error { return framed.Say(s, 0, wire.Lane{Lane: 1}) }, 0},
		"malformed": {func(_ *donating, s *framed.Stream) error {
			s.Frame = wire.Reserve(s.Frame)
			return s.Seal(wire.Header{Type: wire.TypeStateWant})
		}, 0},
		"silent": {func(*donating, *framed.Stream) error { time.Sleep(stall + time.Second); return nil }, 0},
		"the donor leaves": {func(d *donating, s *framed.Stream) error {
			close(d.closing)
			return framed.Say(s, 0, wire.StateWant{Count: 1})
		}, wire.ReasonClosing},
		"the copy is old": {func(d *donating, s *framed.Stream) error {
			d.freezer.retire()
			return framed.Say(s, 0, wire.StateWant{Count: 1})
		}, wire.ReasonBusy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := donate(t)
				s := d.newcomer(d.transport("newcomer"))
				if why, err := reason(s, &wire.Manifest{}); why != 0 || err != nil {
					t.Fatal(why, err)
				}
				s.Bulk()
				err := c.more(d, s)
				why, heard := wire.Reason(0), error(nil)
				if err == nil {
					if why, heard = reason(s, &wire.StateHashes{}); why == 0 && heard == nil { // they come before the slices that do not
						why, heard = reason(s, &wire.Lane{})
					}
				}
				if why != c.reason || why == 0 && heard == nil && err == nil {
					t.Errorf("%v, %v, %v; want %v", why, heard, err, c.reason)
				}
				s.Reset()
				time.Sleep(time.Second)
				if synctest.Wait(); d.Sent() != 0 || d.Joiners() != 0 || len(d.ended) != 0 {
					t.Errorf("%d slices given, %d newcomers, %v", d.Sent(), d.Joiners(), d.ended)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := donate(t)
		d.copies = true
		if why, err := reason(d.newcomer(d.transport("declined")), &wire.Manifest{}); why != wire.ReasonJoining || err != nil {
			t.Errorf("declined with %v, %v", why, err)
		}
		raw, err := d.transport("rude").Open(t.Context(), d.at.Self(), transport.ProtocolState, run)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = raw.Write([]byte("no request at all"))
		time.Sleep(stall + time.Second)
		if synctest.Wait(); len(d.ended) != 1 {
			t.Errorf("no request: %v", d.ended)
		}
	})
}

// TestAFewNewcomersAtOnce: one more is told to wait, unless it comes from a block of addresses
// that has fewer places, or those who have one have had it for long.
func TestAFewNewcomersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := donate(t)
		ask := func(name, block string) (*framed.Stream, wire.Reason, error) {
			from := d.transport(name)
			from.SetBlock(block)
			s := d.newcomer(from)
			why, err := reason(s, &wire.Manifest{})
			return s, why, err
		}
		var crowd []*framed.Stream
		for i := range maxJoiners {
			s, why, err := ask(fmt.Sprint("crowd-", i), "block")
			if crowd = append(crowd, s); why != 0 || err != nil {
				t.Errorf("newcomer %d: %v, %v", i, why, err)
			}
		}
		if _, why, err := ask("one-more", "block"); why != wire.ReasonBusy || err != nil || d.Joiners() != maxJoiners {
			t.Errorf("one more: %v, %v; %d newcomers", why, err, d.Joiners())
		}
		if _, why, err := ask("from-elsewhere", "another"); why != 0 || err != nil || d.Joiners() != maxJoiners {
			t.Errorf("from elsewhere: %v, %v; %d newcomers", why, err, d.Joiners())
		}
		began := time.Now()
		if why, err := reason(crowd[0], &wire.StateHashes{}); err == nil || time.Since(began) > time.Second { // without a word: it comes again
			t.Errorf("the first of the crowd stays for %s, or is told %v", time.Since(began), why)
		}
	})
}

// TestANewcomerHasOnePlace: what it asks anew takes the place of what it asked before.
func TestANewcomerHasOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := donate(t)
		from := d.transport("newcomer")
		first, second := d.newcomer(from), d.newcomer(from)
		var m wire.Manifest
		began := time.Now()
		_, err1 := second.Receive(&m)
		_, err2 := first.Receive(&m)
		for err2 == nil {
			_, err2 = first.Receive(&m)
		}
		if took := time.Since(began); err1 != nil || took > time.Second {
			t.Errorf("the second is told %v, the first ended after %s with %v", err1, took, err2)
		}
		if d.Joiners() != 1 {
			t.Errorf("%d newcomers", d.Joiners())
		}
	})
}
