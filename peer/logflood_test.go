package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestWhatAStrangerBringsAboutIsAHandfulOfLinesWithACount floods a host with streams that
// each bring it to write a line, for ten seconds of each kind.
func TestWhatAStrangerBringsAboutIsAHandfulOfLinesWithACount(t *testing.T) {
	noise := make([]byte, 100)
	for _, c := range []struct {
		message  string
		protocol transport.Protocol
		say      func(r *rogue) []byte
	}{
		{"refused a stream that speaks otherwise", transport.ProtocolExchange, func(*rogue) []byte { return noise }},
		{"refused a peer that asked to join", transport.ProtocolHello, func(r *rogue) []byte { return helloOf(r, "letters") }},
		{"refused a stream that speaks otherwise", transport.ProtocolControl, func(*rogue) []byte { return noise }},
		{"refused a peer's proposal", transport.ProtocolExchange, func(r *rogue) []byte { return r.propose(func(p *wire.Propose) { p.Run = "letters" }) }},
		{"an exchange broke off; the slices done stay done and the next partner is asked", transport.ProtocolExchange, func(r *rogue) []byte { return r.propose(nil) }},
	} {
		t.Run(string(c.protocol)+" "+c.message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const (
					flood = 1000
					lasts = 10 * time.Second
				)
				r := newRogue(t)
				if _, err := r.transport.Connect(t.Context(), "mem:host"); err != nil {
					t.Fatal(err)
				}
				for range flood {
					stream, err := r.transport.Open(t.Context(), r.host.Self(), c.protocol, "digits")
					if err != nil {
						t.Fatal(err)
					}
					_, _ = stream.Write(c.say(r))
					_, _, _ = wire.NewReader(stream, 0).Next()
					stream.Reset()
					time.Sleep(lasts / flood)
				}
				r.host.Close()
				lines := r.logged.FilterMessage(c.message).All()
				told := r.logged.FilterMessage("lines were left out of the log").All()
				if len(lines) == 0 || len(lines) > 5 || len(told) != 1 {
					t.Fatalf("%d streams bring %d lines and %d counts, want a handful and one", flood, len(lines), len(told))
				}
				left := told[0].ContextMap()["left_out"].(uint64)
				if sum := len(lines) + int(left); sum < flood*9/10 || sum > flood {
					t.Errorf("%d lines and %d left out of %d streams", len(lines), left, flood)
				}
				onlyOf(t, lines, r)
			})
		})
	}
}

// onlyOf checks that lines name the rogue as partners are named everywhere.
func onlyOf(t *testing.T, lines []observer.LoggedEntry, r *rogue) {
	t.Helper()
	for _, l := range lines {
		if l.ContextMap()["peer"] != string(r.transport.Self()) {
			t.Errorf("a line names %v", l.ContextMap())
		}
	}
}

func helloOf(r *rogue, run string) []byte {
	frame, err := wire.Pack(nil, 0, wire.Hello{Run: run})
	if err != nil {
		r.t.Fatal(err)
	}
	return frame
}
