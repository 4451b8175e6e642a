package hostiletest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAFloodIsAHandfulOfLinesWithACount: whatever a member floods a peer with that brings it to write a line,
// ten seconds of each are a few lines, which name it, and one that tells how many there were.
func TestAFloodIsAHandfulOfLinesWithACount(t *testing.T) {
	noise := func(*liar, uint64) []byte { return make([]byte, 100) }
	proposal := func(run string) func(*liar, uint64) []byte {
		return func(l *liar, id uint64) []byte {
			l.opening.Run = run
			return l.pack(id, wire.Propose{Opening: l.opening, Overlap: 1, Lanes: 1})
		}
	}
	for _, c := range []struct {
		message  string
		protocol transport.Protocol
		say      func(l *liar, id uint64) []byte
	}{
		{"refused a stream that speaks otherwise", transport.ProtocolExchange, noise},
		{"refused a peer that asked to join", transport.ProtocolHello, func(l *liar, _ uint64) []byte { return l.pack(0, wire.Hello{Run: "letters"}) }},
		{"refused a stream that speaks otherwise", transport.ProtocolControl, noise},
		{"refused a peer's proposal", transport.ProtocolExchange, proposal("letters")},
		{"an exchange broke off; the slices done stay done and the next partner is asked", transport.ProtocolExchange, proposal(peertest.Run)},
	} {
		t.Run(string(c.protocol)+" "+c.message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const (
					flood = 1000
					lasts = 10 * time.Second
				)
				core, logged := observer.New(zap.InfoLevel)
				flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel, Configure: func(_ int, c *peer.Config) { c.Network.Log = zap.New(core) }})
				host := flock.Peers[0]
				flock.TrainSteps(t.Context(), 1, func(int, tensor.Vector, tensor.Vector) (peer.Result, error) { return peer.Result{}, nil })
				l := join(t, t.Context(), flock, "flooder", false)
				synctest.Wait()
				for id := range uint64(flood) {
					stream, done := l.open(host.Self(), c.protocol, lasts)
					if stream == nil {
						t.Fatal("no stream can be opened")
					}
					stream.Write(c.say(l, id+1))
					wire.NewReader(stream, 0).Next()
					done()
					time.Sleep(lasts / flood)
				}
				host.Close()
				lines := logged.FilterMessage(c.message).All()
				told := logged.FilterMessage("lines were left out of the log").All()
				if len(lines) == 0 || len(lines) > 5 || len(told) != 1 {
					t.Fatalf("%d streams bring %d lines and %d counts, want a handful and one", flood, len(lines), len(told))
				}
				left := told[0].ContextMap()["left_out"].(uint64)
				if sum := len(lines) + int(left); sum < flood*9/10 || sum > flood {
					t.Errorf("%d lines and %d left out of %d streams", len(lines), left, flood)
				}
				for _, line := range lines {
					if line.ContextMap()["peer"] != string(l.at.Self()) {
						t.Errorf("a line names %v", line.ContextMap())
					}
				}
			})
		})
	}
}
