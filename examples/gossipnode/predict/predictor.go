package predict

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// predictor writes the predictions of a model.
type predictor struct{ learn.File }

// write predicts the rows, a batch at a time.
func (p predictor) write(ctx context.Context, rows table.Source, out io.Writer) (count int64, err error) {
	lines := csv.NewWriter(out)
	_ = lines.Write(p.header()) // see lines.Error
	var values []float64
	for b, err := range rows(ctx) {
		if err != nil {
			return count, cli.Config(err)
		}
		if values, err = p.Predict(values[:0], b); err != nil {
			return count, err
		}
		n := p.Model.Outputs()
		for row := range b.Rows {
			_ = lines.Write(p.line(b.Key(row), values[row*n:(row+1)*n]))
		}
		count += int64(b.Rows)
	}
	lines.Flush()
	if err := lines.Error(); err != nil {
		return count, fmt.Errorf("writing predictions: %w", err)
	}
	return count, nil
}

func (p predictor) header() []string {
	header := []string{"row"}
	switch {
	case p.Classes != nil:
		header = append(header, "class")
		for _, class := range p.Classes {
			header = append(header, "p("+class+")")
		}
	case p.Model.Outputs() == 1:
		header = append(header, "prediction")
	default:
		for i := range p.Model.Outputs() {
			header = append(header, fmt.Sprintf("component%d", i+1))
		}
	}
	return header
}

func (p predictor) line(key int64, values []float64) []string {
	line := []string{strconv.FormatInt(key, 10)}
	if p.Classes != nil {
		likeliest := 0
		for i, v := range values {
			if v > values[likeliest] {
				likeliest = i
			}
		}
		line = append(line, p.Classes[likeliest])
	}
	for _, v := range values {
		line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return line
}
