package peer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestTheListIsChangedInOrder: a program hears what the operator says of the list in the order in which he has said it, though all of it
// comes at once, as to one that has been away: who is expelled, and then admitted, is on the list.
func TestTheListIsChangedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 20
		life, heard, said := tasks.NewLife(), "", ""
		change := new(adapters).obeying(func(why string, changes []control.Change) { heard += fmt.Sprintln(why, changes) }, life)
		for i := range all {
			changes := []control.Change{{Peer: "a", Do: []control.Deed{control.Expel, control.Admit}[i%2], Since: uint64(i)}}
			said += fmt.Sprintln("because", changes)
			change("because", changes)
		}
		time.Sleep(spread)
		life.End()
		if heard != said {
			t.Errorf("it hears\n%s, want\n%s", heard, said)
		}
	})
}
