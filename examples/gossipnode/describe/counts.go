package describe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

const (
	levels = 256 // values of a byte
	weight = "\x00rows"
)

// view is one column of pictures or texts: a row for each value, with its count, and for pictures the class.
type view struct {
	columns []table.Column
	each    int64 // number of values in a picture; 1 for texts
}

func viewOf(of table.Column, counts []float64, each int64) view {
	return view{[]table.Column{of, {Name: weight, Numbers: counts}}, each}
}

// describe describes a view; it counts pictures, not their values.
func (v view) describe(ctx context.Context, flock table.Flock, least int) (*summary.Summary, error) {
	c := summary.Config{Weight: weight, Least: least * int(v.each)}
	if len(v.columns) > 2 {
		c.Target = v.columns[2].Name
	}
	b := &table.Batch{Columns: v.columns, Rows: len(v.columns[1].Numbers)}
	s, err := c.Describe(ctx, table.Scope(flock, v.columns[0].Name), table.Held(b))
	if err != nil {
		return nil, err
	}
	s.Columns, s.Least = s.Columns[:1], least
	values := []*int64{&s.Rows, &s.OtherClasses}
	for i := range s.MemberRows {
		values = append(values, &s.MemberRows[i])
	}
	for i := range s.Classes {
		values = append(values, &s.Classes[i].Rows)
	}
	for _, n := range values {
		*n /= v.each
	}
	return s, nil
}

// counting returns the jobs of members with pictures or texts.
func (o *options) counting(ctx context.Context) (jobs []job, err error) {
	c := dataset.Config{Name: o.Dataset, Seed: o.Seed, Parts: o.Peers}
	if len(o.Table.Data) > 0 {
		c.Dir = o.Table.Data[0]
	}
	if c.Name != dataset.Datasets()[0] && c.Name != dataset.Text && c.Name != dataset.GoSource {
		c.Norm = []dataset.Normalization{{Scale: 1}} // so that numbers are levels
	}
	if c.Shard, err = dataset.ParseShard(o.Table.Shard); err != nil {
		return nil, err
	}
	all, err := dataset.LoadAll(ctx, c)
	if errors.Is(err, dataset.ErrConfig) || errors.Is(err, dataset.ErrShard) {
		err = cli.Usage(err)
	}
	for _, data := range all {
		jobs = append(jobs, func(ctx context.Context, flock table.Flock) (whole *summary.Summary, err error) {
			views, err := viewsOf(data)
			if err := table.Ready(ctx, flock, "read", err, len(views)); err != nil {
				return nil, err
			}
			for _, v := range views {
				s, err := v.describe(ctx, flock, o.Least)
				if err != nil {
					return nil, err
				}
				if whole != nil {
					s.Columns = append(whole.Columns, s.Columns...)
				}
				whole = s
			}
			return whole, nil
		})
	}
	return jobs, cli.Config(err)
}

// viewsOf counts the levels of pictures by channel and class, or the bytes and characters of texts.
func viewsOf(data *dataset.Data) (views []view, err error) {
	if data.Train != nil && data.Train.IsText() {
		return ofText(data.Train), nil
	}
	shape, class := data.Shape(), table.Column{Name: "class", Kind: table.Category}
	counts := make([][]float64, shape.Channels)
	for i := range data.Classes() {
		class.Values = append(class.Values, strconv.Itoa(i))
	}
	for channel := range counts {
		counts[channel] = make([]float64, levels*len(class.Values))
	}
	if err := eachPicture(data, func(class int, picture []uint8) {
		for i, level := range picture {
			counts[i%shape.Channels][class*levels+int(level)]++
		}
	}); err != nil {
		return nil, err
	}
	for channel, name := range map[int][]string{1: {"level"}, 3: {"red", "green", "blue"}}[shape.Channels] {
		of := table.Column{Name: name}
		class.Codes = nil
		for i := range counts[channel] {
			of.Numbers, class.Codes = append(of.Numbers, float64(i%levels)), append(class.Codes, int32(i/levels))
		}
		v := viewOf(of, counts[channel], int64(shape.Height*shape.Width))
		v.columns = append(v.columns, class)
		views = append(views, v)
	}
	return views, nil
}

// eachPicture calls do for each picture, in memory or in files.
func eachPicture(data *dataset.Data, do func(class int, picture []uint8)) error {
	if set := data.Train; set != nil {
		for i := range set.Len() {
			do(set.Label(i), set.Image(i))
		}
		return nil
	}
	batches, err := data.Batches(1, 1, dataset.Augment{})
	if err != nil {
		return err
	}
	var b dataset.Batch
	picture := make([]uint8, data.Shape().Values())
	for i := 0; i < data.Len() && err == nil; i++ {
		if err = batches.Next(&b); err == nil {
			for j, x := range b.X {
				picture[j] = uint8(x*(levels-1) + 0.5)
			}
			do(int(b.Labels[0]), picture)
		}
	}
	return errors.Join(err, batches.Close())
}

// ofText counts bytes, and characters in UTF-8; a character that is cut at the edge of a window counts as missing.
func ofText(set *dataset.Set) []view {
	bytes, symbols, counts := make([]float64, levels), map[rune]float64{}, []float64(nil)
	of, symbol := table.Column{Name: "byte"}, table.Column{Name: "symbol", Kind: table.Category}
	var b dataset.Batch
	for i := range set.Len() {
		set.Fill(&b, i, i+1)
		text := make([]byte, len(b.X))
		for j, x := range b.X {
			text[j] = byte(x)
			bytes[text[j]]++
		}
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			symbols[r]++
			text = text[n:]
		}
	}
	for i := range bytes {
		of.Numbers = append(of.Numbers, float64(i))
	}
	for r, n := range symbols {
		code := table.Missing
		if r != utf8.RuneError {
			code, symbol.Values = int32(len(symbol.Values)), append(symbol.Values, fmt.Sprintf("%q", r))
		}
		counts, symbol.Codes = append(counts, n), append(symbol.Codes, code)
	}
	return []view{viewOf(symbol, counts, 1), viewOf(of, bytes, 1)}
}
