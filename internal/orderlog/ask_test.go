package orderlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	run   = "digits"
	stall = 5 * time.Second
)

// counter is a member that is asked, and somebody who asks it.
type counter struct {
	asker, member *memnet.Transport
	heard         [][]byte // what the asker has told
	fault         error    // of hearing it
}

// open has a member hear what it is told about a subject, and then do something.
func open(t *testing.T, about Subject, then func(*framed.Stream)) *counter {
	t.Helper()
	network := memnet.New(memnet.Config{})
	c := &counter{}
	for name, at := range map[string]**memnet.Transport{"asker": &c.asker, "member": &c.member} {
		tr, err := network.Transport(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		*at = tr
	}
	stop, err := c.member.Handle(about.protocol, run, func(stream transport.Stream) {
		var s framed.Stream
		s.Begin(stream, stall)
		c.heard, c.fault = about.Receive(&s)
		then(&s)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return c
}

// texts are so many different messages.
func texts(n int) (all [][]byte) {
	for i := range n {
		all = append(all, []byte{byte(i), byte(i >> 8)})
	}
	return all
}

// TestWhoAsksTellsAndIsAnswered: both ends have what the other has said, in order; of more than a subject
// has room for the first are said.
func TestWhoAsksTellsAndIsAnswered(t *testing.T) {
	for _, about := range []Subject{Said(), Members()} {
		for _, tells := range []int{0, 3, about.most} {
			for _, answers := range []int{0, 3, about.most, about.most + 2} {
				synctest.Test(t, func(t *testing.T) {
					c := open(t, about, func(s *framed.Stream) { about.Answer(s, texts(answers)) })
					got, err := about.Ask(t.Context(), c.asker, run, c.member.Self(), texts(tells), stall)
					synctest.Wait()
					if err != nil || c.fault != nil {
						t.Fatalf("%d tell, %d answer, about %s: %v, %v", tells, answers, about.what, err, c.fault)
					}
					if !slices.EqualFunc(c.heard, texts(tells), bytes.Equal) || !slices.EqualFunc(got, texts(min(answers, about.most)), bytes.Equal) {
						t.Errorf("of %d messages about %s %d are heard, of %d answers %d", tells, about.what, len(c.heard), answers, len(got))
					}
				})
			}
		}
	}
}

// TestAnswersThatAreNone: whatever else comes in the place of an answer is an error of its kind, which names
// the member.
func TestAnswersThatAreNone(t *testing.T) {
	about := Said()
	frame := func(s *framed.Stream, kind wire.Type, payload []byte) {
		s.Frame = append(wire.Reserve(s.Frame), payload...)
		s.Seal(wire.Header{Type: kind})
	}
	for name, c := range map[string]struct {
		then func(*framed.Stream)
		want error
	}{
		"a refusal":       {func(s *framed.Stream) { s.Refuse(0, wire.ReasonNotMember, "") }, &wire.Refusal{}},
		"another subject": {func(s *framed.Stream) { frame(s, wire.TypeMember, nil); s.Finish() }, wire.ErrType},
		"too long a one": {func(s *framed.Stream) {
			const atLength = 24 // of a frame's header (docs/WIRE.md)
			long := wire.Reserve(nil)
			wire.Seal(long, wire.Header{Type: about.frame})
			binary.LittleEndian.PutUint32(long[atLength:], uint32(about.size)+1)
			s.Write(long)
			s.Finish()
		}, wire.ErrTooLong},
		"one too many":       {func(s *framed.Stream) { about.say(s, texts(about.most+1)); s.Finish() }, wire.ErrMessage},
		"half a message":     {func(s *framed.Stream) { s.Write([]byte("M")); s.Finish() }, wire.ErrTruncated},
		"a stream that ends": {func(s *framed.Stream) { s.Reset() }, memnet.ErrReset},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := open(t, about, c.then)
				got, err := about.Ask(t.Context(), asked.asker, run, asked.member.Self(), texts(1), stall)
				_, refused := errors.AsType[*wire.Refusal](err)
				_, refuses := c.want.(*wire.Refusal)
				if got != nil || refused != refuses || !refuses && !errors.Is(err, c.want) || !bytes.Contains([]byte(err.Error()), []byte(asked.member.Self())) {
					t.Errorf("%q, %v; want %v of the member", got, err, c.want)
				}
				synctest.Wait()
			})
		})
	}
}

// TestWhoDoesNotAnswerIsWaitedForABoundedTime.
func TestWhoDoesNotAnswerIsWaitedForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := make(chan struct{})
		c := open(t, Said(), func(*framed.Stream) { <-silent })
		began := time.Now()
		if got, err := Said().Ask(t.Context(), c.asker, run, c.member.Self(), nil, stall); err == nil || time.Since(began) > stall {
			t.Errorf("%q, %v after %s", got, err, time.Since(began))
		}
		close(silent)
		synctest.Wait()
	})
}

// unable is an identity whose signatures are of another length, or none.
type unable struct {
	transport.Identity
	err error
}

func (u unable) Sign([]byte) ([]byte, error) { return []byte("short"), u.err }

// TestWhatCannotBeSignedIsNoOrder: an order has a signature of its author, or there is none.
func TestWhatCannotBeSignedIsNoOrder(t *testing.T) {
	broken := errors.New("the key is locked")
	for _, fault := range []error{nil, broken} {
		if o, err := Sign(unable{err: fault}, wire.Control{Kind: wire.ControlRate, Run: run}); err == nil || fault != nil && !errors.Is(err, fault) {
			t.Errorf("%+v, %v", o, err)
		}
	}
}
