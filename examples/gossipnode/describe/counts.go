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

// levels are those of a byte.
const levels = 256

// view is one column of pictures or texts: values, and how often each is there.
type view struct {
	class  []string // of each value, of pictures
	column table.Column
	counts []float64
	each   int // values of a picture, or 1
}

// describe has a view described as a table with weights.
func (v view) describe(ctx context.Context, flock table.Flock, least int) (*summary.Summary, error) {
	c := summary.Config{Weight: "\x00count", Least: least * v.each}
	b := &table.Batch{Rows: len(v.counts), Columns: []table.Column{v.column, {Name: c.Weight, Numbers: v.counts}}}
	if v.class != nil {
		c.Target = "class"
		b.Columns = append(b.Columns, category(c.Target, v.class))
	}
	s, err := c.Describe(ctx, table.Scope(flock, "describe/"+v.column.Name), table.Held(b))
	if err != nil {
		return nil, err
	}
	s.Columns, s.Least = s.Columns[:1], least
	for _, n := range []*int64{&s.Rows, &s.OtherClasses} {
		*n /= int64(v.each)
	}
	for i := range s.MemberRows {
		s.MemberRows[i] /= int64(v.each)
	}
	for i := range s.Classes {
		s.Classes[i].Rows /= int64(v.each)
	}
	return s, nil
}

// category is a column of texts.
func category(name string, texts []string) table.Column {
	c, codes := table.Column{Name: name, Kind: table.Category}, map[string]int32{}
	for _, text := range texts {
		code, known := codes[text]
		if !known {
			code = int32(len(c.Values))
			codes[text], c.Values = code, append(c.Values, text)
		}
		c.Codes = append(c.Codes, code)
	}
	return c
}

// counting is the jobs of members with pictures or texts.
func (o *options) counting() (jobs []job, err error) {
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
	all, err := dataset.LoadAll(c)
	if errors.Is(err, dataset.ErrConfig) || errors.Is(err, dataset.ErrShard) {
		err = cli.Usage(err)
	}
	for _, data := range all {
		jobs = append(jobs, func(ctx context.Context, flock table.Flock) (*summary.Summary, error) {
			views, err := viewsOf(data)
			if err := table.Ready(ctx, flock, "describe/read", err, len(views)); err != nil {
				return nil, err
			}
			var whole *summary.Summary
			for _, v := range views {
				s, err := v.describe(ctx, flock, o.Least)
				if err != nil {
					return nil, err
				}
				if whole == nil {
					whole = s
				} else {
					whole.Columns = append(whole.Columns, s.Columns...)
				}
			}
			return whole, nil
		})
	}
	return jobs, cli.Config(err)
}

// viewsOf counts the bytes and symbols of texts, or the levels of pictures by channel and class.
func viewsOf(data *dataset.Data) ([]view, error) {
	if data.Train != nil && data.Train.IsText() {
		return ofText(data.Train), nil
	}
	channels, classes := data.Shape().Channels, data.Classes()
	counts := make([][]float64, channels)
	for channel := range counts {
		counts[channel] = make([]float64, classes*levels)
	}
	count := func(class int, values int, level func(i int) uint8) {
		for i := range values {
			counts[i%channels][class*levels+int(level(i))]++
		}
	}
	if set := data.Train; set != nil {
		for i := range set.Len() {
			count(set.Label(i), set.Inputs(), func(at int) uint8 { return set.Image(i)[at] })
		}
	} else if err := streamed(data, count); err != nil {
		return nil, err
	}
	var views []view
	for channel, name := range map[int][]string{1: {"level"}, 3: {"red", "green", "blue"}}[channels] {
		v := view{column: table.Column{Name: name}, counts: counts[channel], each: data.Shape().Values() / channels}
		for i := range v.counts {
			v.class, v.column.Numbers = append(v.class, strconv.Itoa(i/levels)), append(v.column.Numbers, float64(i%levels))
		}
		views = append(views, v)
	}
	return views, nil
}

// streamed counts the pictures of one pass over files.
func streamed(data *dataset.Data, count func(class, values int, level func(i int) uint8)) error {
	batches, err := data.Batches(1, 1, dataset.Augment{})
	if err != nil {
		return err
	}
	var b dataset.Batch
	for range data.Len() {
		if err = batches.Next(&b); err != nil {
			break
		}
		count(int(b.Labels[0]), len(b.X), func(i int) uint8 { return uint8(b.X[i]*(levels-1) + 0.5) })
	}
	return errors.Join(err, batches.Close())
}

// ofText counts bytes, and symbols as UTF-8 has them; those cut at the edge of a window are missing.
func ofText(set *dataset.Set) []view {
	bytes, symbols := make([]float64, levels), map[rune]float64{}
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
	all, each := view{column: table.Column{Name: "byte"}, counts: bytes, each: 1}, view{column: table.Column{Name: "symbol", Kind: table.Category}, each: 1}
	for i := range bytes {
		all.column.Numbers = append(all.column.Numbers, float64(i))
	}
	for r, n := range symbols {
		code := int32(len(each.column.Values))
		if each.counts = append(each.counts, n); r == utf8.RuneError {
			each.column.Codes = append(each.column.Codes, table.Missing)
			continue
		}
		each.column.Codes, each.column.Values = append(each.column.Codes, code), append(each.column.Values, fmt.Sprintf("%q", r))
	}
	return []view{all, each}
}
