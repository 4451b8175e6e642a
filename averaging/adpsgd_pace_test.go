package averaging

import (
	"math/rand/v2"
	"testing"
)

func TestPaceIsReplaced(t *testing.T) {
	m, err := NewADPSGD(Config{Self: "a", Pace: Pace{Every: 3}, Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetPace(Pace{Every: 7}); err != nil || m.Every() != 7 {
		t.Errorf("H is %d after it was set to 7 (%v)", m.Every(), err)
	}
	if err := m.SetPace(Pace{Every: -1}); err == nil || m.Every() != 7 {
		t.Errorf("H is %d after a pace that cannot be, error %v", m.Every(), err)
	}
	if err := m.SetPace(Pace{}); err != nil || m.Every() != 1 {
		t.Errorf("H is %d with nothing measured (%v)", m.Every(), err)
	}
}
