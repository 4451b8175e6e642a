package requests_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestARequestIsAnswered, and both ends count what went over its stream, which here is used more often than streams
// are kept. What is no request is refused with its reason, counted, and logged with a remedy; who goes without a word is not.
func TestARequestIsAnswered(t *testing.T) {
	const run, protocol, life = "digits", transport.ProtocolHello, 7
	hello := func(s *framed.Stream) error { return framed.Say(s, 0, wire.Hello{Run: run, Incarnation: life}) }
	for name, c := range map[string]struct {
		times  int
		say    func(*framed.Stream) error
		reason wire.Reason // of a refusal
		fails  bool
	}{
		"requests":        {times: 40, say: hello},
		"another message": {1, func(s *framed.Stream) error { return framed.Say(s, 0, wire.Welcome{}) }, wire.ReasonProtocol, true},
		"no frame":        {1, func(s *framed.Stream) error { _, err := s.Write(make([]byte, 64)); return err }, wire.ReasonProtocol, true},
		"nothing":         {1, func(s *framed.Stream) error { return s.CloseWrite() }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
				core, logged := observer.New(zap.WarnLevel)
				member := func(name string) *requests.Requests {
					tr, err := n.Transport(name)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { tr.Close() })
					return requests.New(run, tr, 5*time.Second, counters.New(), zap.New(core))
				}
				there, here := member("host"), member("guest")
				stop, err := there.Transport.Handle(protocol, run, there.Answering(func(s *framed.Stream) error {
					var hello wire.Hello
					if _, err := s.Receive(&hello); err != nil {
						return err
					}
					_ = framed.Say(s, 0, wire.Welcome{Incarnation: hello.Incarnation})
					s.Finish()
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				for range c.times {
					var welcome wire.Welcome
					err = here.Converse(t.Context(), there.Transport.Self(), protocol, func(s *framed.Stream) error {
						if err := c.say(s); err != nil {
							t.Error(err)
						}
						_, err := s.Receive(&welcome)
						return err
					})
					if c.fails == (err == nil) || c.fails == (welcome.Incarnation == life) {
						t.Errorf("the answer is %+v, %v", welcome, err)
					}
				}
				stop() // which waits for the last
				refusal, told := errors.AsType[*wire.Refusal](err)
				if told != (c.reason != 0) || told && refusal.Reason != c.reason {
					t.Errorf("the guest hears %v, want %v", err, c.reason)
				}
				if declined := there.Counters.Counts().Declined; told != (declined[c.reason.String()] == 1) || told != (len(declined) == 1) {
					t.Errorf("declined %v", declined)
				}
				if all := logged.All(); told != (len(all) == 1) || told && (all[0].ContextMap()["peer"] != string(here.Transport.Self()) || all[0].ContextMap()["remedy"] != c.reason.Remedy()) {
					t.Errorf("logged %v", all)
				}
				a, b := here.Counters.Counts().Traffic, there.Counters.Counts().Traffic
				if moved, heard := a["none"], b["none"]; !c.fails && (moved.Sent == 0 || moved.Sent != heard.Received || moved.Received != heard.Sent) {
					t.Errorf("%+v here, %+v there", a, b)
				}
				if err := here.Converse(t.Context(), there.Transport.Self(), "/another/1", hello); !errors.Is(err, transport.ErrUnknownProtocol) && !errors.Is(err, transport.ErrUnknownRun) {
					t.Errorf("where nobody answers: %v", err)
				}
			})
		})
	}
}
