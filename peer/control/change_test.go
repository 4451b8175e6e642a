package control

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestChangesAddUp: each message about members says those before it again, the newest of each peer, and as many as fit.
func TestChangesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host := at(t, n, "host")
		obey(t, host, nil)
		o := Operator{Transport: at(t, n, "operator"), Run: run}
		send := func(changes ...Change) []Change {
			t.Helper()
			held, err := o.Send(t.Context(), host.Self(), Command{Kind: SetMembers, Changes: changes})
			if err != nil || len(held) != 1 {
				t.Fatalf("%+v, %v", held, err)
			}
			return held[0].Changes
		}
		send(Change{Peer: "a", Do: Drain}, Change{Peer: "a", Do: Expel})
		send(Change{Peer: "b", Do: Admit})
		want := []Change{{Peer: "a", Do: Drain, Since: 1}, {Peer: "b", Do: Admit, Since: 2}, {Peer: "a", Do: Admit, Since: 3}}
		if got := send(Change{Peer: "a", Do: Admit}); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		for i := range 2 * maxChanges {
			id := transport.PeerID(fmt.Sprintf("%02d%s", i, strings.Repeat("x", 50)))
			got := send(Change{Peer: id, Do: Admit})
			if last := got[len(got)-1]; last.Peer != id || last.Since != uint64(i+4) {
				t.Fatalf("the last of %d is %v, want %s", len(got), last, id)
			}
			if i > maxChanges && (len(got) < maxChanges-1 || got[0].Since != got[len(got)-1].Since+1-uint64(len(got))) {
				t.Fatalf("%d are held, from %d on", len(got), got[0].Since)
			}
		}
		long := make([]Change, 20)
		for i := range long {
			long[i] = Change{Peer: transport.PeerID(strings.Repeat(string(rune('a'+i)), 120)), Do: Admit}
		}
		for _, many := range [][]Change{long, make([]Change, maxChanges+1)} {
			if held, err := o.Send(t.Context(), host.Self(), Command{Kind: SetMembers, Changes: many}); err == nil {
				t.Errorf("%d changes at once are sent as %v", len(many), held)
			}
		}
	})
}
