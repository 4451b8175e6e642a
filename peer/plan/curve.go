package plan

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Bounds of a fit.
const (
	minPoints, maxPoints = 3, 1000
	minPower, maxPower   = 0.01, 4.0
	powers               = 16   // of which the best is found before it is searched between its neighbours
	powerWithin          = 1e-7 // of the best
	curveDigits          = 6
)

// curve is most - loss·x^-power after x samples: the power law that learning curves follow (Hestness et al., Deep
// Learning Scaling is Predictable, Empirically, 2017).
type curve struct{ most, loss, power float64 }

// fits tells whether a curve can be fitted to points, or there are none.
func fits(points []Point) bool {
	good := len(points) == 0 || len(points) >= minPoints && len(points) <= maxPoints
	for i, p := range points {
		good = good && p.Samples >= 1 && p.Samples <= maxSamples && math.Abs(p.Accuracy) <= maxAmount && (i == 0 || p.Samples > points[i-1].Samples)
	}
	return good
}

// fitCurve fits by least squares; nil without points. For a given power, loss and most are linear, so only the power is
// searched, by golden sections.
func fitCurve(points []Point) *curve {
	if len(points) == 0 {
		return nil
	}
	fault := func(power float64) float64 {
		_, fault := linearFit(points, power)
		return fault
	}
	grid := func(n int) float64 {
		return minPower * math.Pow(maxPower/minPower, float64(min(max(n, 0), powers))/powers)
	}
	best, least := 0, math.Inf(1)
	for n := range powers + 1 {
		if now := fault(grid(n)); now < least {
			best, least = n, now
		}
	}
	low, high := grid(best-1), grid(best+1)
	for high-low > powerWithin {
		part := (high - low) / math.Phi
		if fault(high-part) <= fault(low+part) {
			high = low + part
		} else {
			low = high - part
		}
	}
	c, _ := linearFit(points, rounded((low+high)/2, curveDigits/2))
	return &curve{rounded(c.most, curveDigits), rounded(c.loss, curveDigits), c.power}
}

// linearFit is the best curve of a power, and its squared errors. It is flat where accuracies fall: more samples do no
// harm.
func linearFit(points []Point, power float64) (c curve, fault float64) {
	x, y := make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		x[i], y[i] = -math.Pow(p.Samples, -power), p.Accuracy
	}
	c.power = power
	if c.most, c.loss = stat.LinearRegression(x, y, nil, false); !(c.loss > 0) {
		c.most, c.loss = stat.Mean(y, nil), 0
	}
	for _, p := range points {
		e := p.Accuracy - c.at(p.Samples)
		fault += float64(e * e)
	}
	return c, fault
}

func (c curve) at(samples float64) float64 {
	return c.most - float64(c.loss*math.Pow(max(samples, 1), -c.power))
}

// rounded keeps so many digits.
func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits - 1 - int(math.Floor(math.Log10(math.Abs(v)))))
	if v == 0 || v-v != 0 || scale == 0 || scale-scale != 0 {
		return v
	}
	return math.Round(v*scale) / scale
}
