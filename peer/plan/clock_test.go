package plan

import "testing"

// TestJobsBelowTheClock take less than the next number after the time at which they begin: they are planned all the same.
func TestJobsBelowTheClock(t *testing.T) {
	for _, at := range []float64{1.7e9, 1.7e18, maxAmount / 2} {
		s := State{Weights: Weights{Time: 1, Accuracy: 1, Resource: 1}, Members: []Member{{Name: "a", Speed: 1e13}, {Name: "b", Speed: 2e13}}}
		for _, name := range []string{"x", "y", "z"} {
			s.Tasks = append(s.Tasks, Task{Name: name, Kind: Epoch, Samples: 60000, Arrival: at})
		}
		s.Tasks = append(s.Tasks, Task{Name: "fit", Kind: Fit, Samples: 60000, Arrival: at, Deadline: 2 * at})
		samples := map[string]int{}
		for _, a := range made(t, s).Assignments {
			samples[a.Task] += a.Samples
		}
		for _, task := range s.Tasks {
			if samples[task.Name] != task.Samples {
				t.Errorf("from %g: %d samples of %s", at, samples[task.Name], task.Name)
			}
		}
	}
}
