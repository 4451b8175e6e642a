package trainer

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// Parts that one peer updates in turn move as the whole does, and a checkpoint has the memory of all of them: who goes
// on from it moves as who never stopped.
func TestMemoriesOfPartsAreSaved(t *testing.T) {
	const parts = 2
	begin := func(by optim.Optimizer, params tensor.Vector) *Trainer {
		tr, r := newTrainer(t, gradients, by, averaging.Pace{}, &alone{rate: 0.5})
		if err := r.RestoreShared(params); err != nil {
			t.Fatal(err)
		}
		return tr
	}
	mean, x := make(tensor.Vector, values), make(tensor.Vector, values)
	update := func(tr *Trainer, parts, round int) {
		t.Helper()
		for part := range parts {
			from, to := tr.replica.Part(part, parts)
			clear(mean)
			for i := from; i < to; i++ {
				mean[i] = float32(i + round)
			}
			if err := tr.Update(collective.Action{Transfer: collective.Transfer{Part: part, Parts: parts}}, mean, x); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, optimizer := range map[string]func() optim.Stateful{
		"sgd":   func() optim.Stateful { return &optim.SGD{Momentum: 0.5} },
		"adamw": func() optim.Stateful { return &optim.AdamW{} },
	} {
		whole, divided := begin(optimizer(), make(tensor.Vector, values)), begin(optimizer(), make(tensor.Vector, values))
		for round := range 6 {
			if round == 3 {
				saved, params, next := optim.State{}, make(tensor.Vector, values), optimizer()
				divided.Save(params, &saved)
				if err := next.Restore(saved); err != nil {
					t.Fatal(err)
				}
				divided = begin(next, params)
			}
			update(whole, 1, round)
			update(divided, parts, round)
			if want, got := contents(whole.replica), contents(divided.replica); !slices.Equal(want, got) {
				t.Fatalf("%s, round %d: %v by parts, %v at once", name, round, got, want)
			}
		}
	}
}
