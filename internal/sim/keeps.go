package sim

// keepEvery is how many steps a peer that has its stage alone makes until it gives a copy to one of another stage, as in
// package pipeline.
const keepEvery = 50

// keeps are copies of other stages' parameters that a peer keeps for who takes such a stage when nobody holds it any more.
type keeps struct {
	*staged
	steps  int // of this life
	copies int // that it gave
	kept   map[int]kept
}

// kept is a copy, and the steps of all when it was made.
type kept struct {
	at     uint64
	values []float32
}

// give gives a copy of the stage to a member of another one, if nobody else has it and it is time.
func (k *keeps) give() {
	w, p := k.peer.world, k.peer
	if k.steps++; k.steps%keepEvery != 0 || k.idle() || len(w.members(p.stage)) > 1 {
		return
	}
	for from := 1; from < w.stages(); from++ {
		others := w.members((p.stage + from) % w.stages())
		if len(others) == 0 {
			continue
		}
		full := make([]float32, p.replica.Len())
		p.replica.Consistent(full)
		copied := kept{w.made, p.replica.CompactShared(full)}
		k.copies++
		k.carry(others[k.copies%len(others)], wordBytes+4*len(copied.values), func(to *staged) {
			if to.keeps.kept == nil {
				to.keeps.kept = map[int]kept{}
			}
			to.keeps.kept[p.stage] = copied
		})
		return
	}
}
