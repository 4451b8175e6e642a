package metrics

import (
	"bytes"
	"net/http"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// Peer is a peer as those see it who only look: a *peer.Peer is one.
type Peer interface {
	Stats() stats.Peer
	Counters() stats.Counters
	Members() []control.Member
	State() control.State
}

// Handler answers each request with all metrics of a peer. CheckpointAge is the time since the last
// checkpoint, and false if none are kept; nil is that too. Safe for concurrent use.
func Handler(p Peer, checkpointAge func() (time.Duration, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(Text(p, checkpointAge)) // who asked has gone if it fails
	})
}

// Text is what Handler answers: for a service that has metrics of its own beside.
func Text(p Peer, checkpointAge func() (time.Duration, bool)) []byte {
	if checkpointAge == nil {
		checkpointAge = func() (time.Duration, bool) { return 0, false }
	}
	m := &moment{Peer: p.Stats(), counters: p.Counters(), members: p.Members(), state: p.State(), checkpointAge: checkpointAge}
	var out bytes.Buffer
	for _, f := range families {
		e := &emitter{family: f}
		f.emit(e, m)
		e.write(&out)
	}
	return out.Bytes()
}
