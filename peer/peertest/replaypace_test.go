package peertest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestReplayKeepsThePaceOfExchanges: a replay has as many exchanges as the peers of a real run completed in the time, though its
// own links would carry more; without a word about exchanges it has as many as it can.
func TestReplayKeepsThePaceOfExchanges(t *testing.T) {
	const peers, steps, each = 4, 400, 60
	world := func(exchanges func(i int) string) peertest.Outcome {
		lines := `{"world":1,"peers":4,"active":[0,1]}` + "\n"
		for i := range peers {
			lines += fmt.Sprintf(`{"did":"step","peer":%d,"took":10000000,"times":%d}`+"\n", i, steps) + exchanges(i)
		}
		recording, err := peertest.ReadRecording(strings.NewReader(lines))
		if err != nil {
			t.Fatal(err)
		}
		s := simulation(peers)
		s.Work.StepsPerPeer, s.World, s.Watch.Points = steps, peertest.World{Replay: recording}, 0
		return simulate(t, s)
	}
	free := world(func(int) string { return "" })
	paced := world(func(i int) string {
		return fmt.Sprintf(`{"did":"exchange","peer":%d,"took":100000000,"times":20}
{"did":"exchange","peer":%[1]d,"at":2000000000,"took":50000000,"times":40}
`, i)
	})
	if got := paced.Traffic.Exchanges; got < 2*each*95/100 || got > 2*(each+8) || free.Traffic.Exchanges < 2*got {
		t.Errorf("%d exchanges, want about %d; %d without a pace", got, 2*each, free.Traffic.Exchanges)
	}
	if took := time.Duration(paced.Seconds * float64(time.Second)); took > 41*time.Duration(steps)*time.Millisecond/4 {
		t.Errorf("the pace of exchanges has made %d steps of 10 ms last %s", steps, took)
	}
	for _, wrong := range []string{
		`{"did":"exchange","peer":4,"took":1,"times":1}`, `{"did":"exchange","peer":0,"took":-1,"times":1}`, `{"did":"exchange","peer":0,"times":16777217}`,
		`{"did":"exchange","peer":0,"at":-1,"times":1}`, `{"did":"exchange","peer":0,"took":9223372036854775807,"times":2}`,
	} {
		if _, err := peertest.ReadRecording(strings.NewReader(`{"world":1,"peers":4}` + "\n" + wrong)); !errors.Is(err, peertest.ErrRecording) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestAReplayGoesOnAtThePace of the last exchanges once it has more than were recorded, however few those were.
func TestAReplayGoesOnAtThePace(t *testing.T) {
	for _, times := range []int{1, 3, 8, 40} {
		recording, err := peertest.ReadRecording(strings.NewReader(fmt.Sprintf(`{"world":1,"peers":1}
{"did":"exchange","peer":0,"took":1000000000,"times":%d}`, times)))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			if at, want := peertest.Ends(recording, 0, n), time.Duration(max(n-3, 0))*time.Second; at != want {
				t.Fatalf("%d recorded, one a second: exchange %d ends at %s, want %s", times, n, at, want)
			}
		}
	}
}
