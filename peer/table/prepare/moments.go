package prepare

import "math"

// Moments are the mean and the variance of numbers, which merge as if the numbers were one set (Chan,
// Golub and LeVeque, 1979). The mean is kept as a nearby number plus the difference to it, so that
// numbers far from 0 and close to each other lose no precision. The zero value holds no numbers.
type Moments struct {
	Count float64 `json:"count"`
	// Near is the first number, and Off the mean's distance from it.
	Near float64 `json:"near"`
	Off  float64 `json:"off"`
	// Squares is the sum of squared distances from the mean.
	Squares float64 `json:"squares"`
}

// Mean is the mean of the numbers, 0 if there are none.
func (m Moments) Mean() float64 { return m.Near + m.Off }

// Variance is the mean squared distance from the mean, 0 if there are no numbers.
func (m Moments) Variance() float64 {
	if m.Count == 0 {
		return 0
	}
	return max(m.Squares, 0) / m.Count
}

// Add adds numbers, except those that are NaN.
func (m *Moments) Add(numbers ...float64) {
	var own Moments
	var sum, squares float64
	for _, x := range numbers {
		if math.IsNaN(x) {
			continue
		}
		if own.Count == 0 {
			own.Near = x
		}
		own.Count++
		d := x - own.Near
		sum += d
		squares += d * d
	}
	if own.Count > 0 {
		own.Off = sum / own.Count
		own.Squares = squares - sum*own.Off
		m.Merge(own)
	}
}

// Merge adds the numbers of o.
func (m *Moments) Merge(o Moments) {
	if m.Count == 0 || o.Count == 0 {
		if m.Count == 0 {
			*m = o
		}
		return
	}
	all := m.Count + o.Count
	apart := (o.Near - m.Near) + (o.Off - m.Off)
	m.Off += apart * (o.Count / all)
	m.Squares += o.Squares + apart*apart*(m.Count*(o.Count/all))
	m.Count = all
}
