package digits

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Reader is a serve.Model: a model of a moment, which is trained on elsewhere. Its version is the number of its steps.
type Reader struct {
	Model  *nn.Model
	Params tensor.Vector
	Steps  uint64
}

// About implements serve.Model.
func (r Reader) About() serve.About {
	return serve.About{Kind: "mlp", Version: fmt.Sprint(r.Steps), Step: r.Steps, Width: Pixels, Outputs: 10, Classes: strings.Split("0123456789", "")}
}

// Predict implements serve.Model, by the probabilities of the ten digits.
func (r Reader) Predict(dst []float64, rows serve.Rows) ([]float64, error) {
	out := make(tensor.Vector, 10*rows.Len)
	r.Model.Predict(r.Params, out, rows.Numbers)
	for row := range slices.Chunk(out, 10) { // log-odds
		for sum, i := nn.LogSumExp(row), 0; i < len(row); i++ {
			dst = append(dst, math.Exp(float64(row[i])-sum))
		}
	}
	return dst, nil
}
