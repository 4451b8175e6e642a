package peertest

// speedWindow is over how many steps a peer, in the mean of all, a peer's speed is
// compared with the others'. A real one compares over some seconds.
const speedWindow = 10

// speed is how fast a simulated peer is, measured in what the peers do in the mean.
type speed struct {
	own   int    // steps in this window
	total uint64 // steps of all when it began
	value float64
}

// speed is that of peer i over the last window, 0 if there was none yet. It is to be asked
// once for each of its steps.
func (t *trainer) speed(i int) float64 {
	s := &t.peers[i].relative
	here := uint64(0)
	for _, h := range t.here {
		if h {
			here++
		}
	}
	s.own++
	if passed := t.made - s.total; passed >= speedWindow*here {
		s.value = float64(uint64(s.own)*here) / float64(passed)
		s.own, s.total = 0, t.made
	}
	return s.value
}
