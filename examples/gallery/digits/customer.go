package digits

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"gonum.org/v1/plot/plotter"
)

// asked is how many pictures a question has.
const asked = 200

// Ask is a customer: it asks services at their addresses for /predict in turn about held-out pictures: once before they learn, all the
// while, and once after that. It says what share of each answer was right, in percent, against the version of the model
// that gave it, which is a number.
func Ask(services []string, learn func() error) (right plotter.XYs, err error) {
	data, err := Load(0)
	if err != nil {
		return nil, err
	}
	x, labels := data.HeldOut()
	question, err := json.Marshal(slices.Collect(slices.Chunk(x[:asked*Pixels], Pixels)))
	ask := func() {
		response, fault := http.Post(services[len(right)%len(services)]+"/predict", "application/json", bytes.NewReader(question))
		if err = errors.Join(err, fault); err != nil {
			return
		}
		var answer struct {
			Version     float64 `json:",string"`
			Predictions []struct{ Class string }
		}
		err = errors.Join(json.NewDecoder(response.Body).Decode(&answer), response.Body.Close())
		hits := 0
		for i, a := range answer.Predictions {
			if a.Class == strconv.Itoa(int(labels[i])) {
				hits++
			}
		}
		right = append(right, plotter.XY{X: answer.Version, Y: 100 * float64(hits) / asked})
	}
	ask()
	learned := make(chan error, 1)
	go func() { learned <- learn() }()
	for err == nil {
		ask()
		select {
		case err = <-learned:
			ask()
			slices.SortStableFunc(right, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
			return right, err
		default:
		}
	}
	return right, errors.Join(err, <-learned)
}
