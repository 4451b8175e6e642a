package learn

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// flightRows are every step-th flight of the real data, numbers with their means where they
// are missing and carriers in a column each; and each row's carrier.
func flightRows(t *testing.T, step int) (Rows, []string) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "flights", "flights.csv.gz"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the real data is not there: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	in := csv.NewReader(unzipped)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]int{}
	for i, name := range header {
		place[name] = i
	}
	names := []string{"month", "day", "sched_dep_time", "sched_arr_time", "distance", "temp", "dewp", "humid", "wind_dir", "wind_speed",
		"precip", "pressure", "visib", "plane_year", "engines", "seats"}
	b := &table.Batch{Columns: make([]table.Column, len(names))}
	rows := Rows{Features: b, Classes: []string{"in time", "late"}}
	var carriers []string
	for line := 0; ; line++ {
		record, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		delay, err := strconv.ParseFloat(record[place["arr_delay"]], 64)
		if line%step != 0 || err != nil {
			continue
		}
		late := 0.0
		if delay > 15 {
			late = 1
		}
		rows.Target = append(rows.Target, late)
		carriers = append(carriers, string([]byte(record[place["carrier"]])))
		b.Keys = append(b.Keys, int64(line))
		for j, name := range names {
			x, err := strconv.ParseFloat(record[place[name]], 64)
			if err != nil {
				x = math.NaN()
			}
			b.Columns[j].Name = name
			b.Columns[j].Numbers = append(b.Columns[j].Numbers, x)
		}
	}
	b.Rows = len(rows.Target)
	for _, c := range b.Columns {
		sum, n := 0.0, 0.0
		for _, x := range c.Numbers {
			if !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		for i, x := range c.Numbers {
			if math.IsNaN(x) {
				c.Numbers[i] = sum / n
			}
		}
	}
	sorted := slices.Clone(carriers)
	slices.Sort(sorted)
	for _, name := range slices.Compact(sorted) {
		c := table.Column{Name: "carrier " + name, Numbers: make([]float64, b.Rows)}
		for i := range c.Numbers {
			if carriers[i] == name {
				c.Numbers[i] = 1
			}
		}
		b.Columns = append(b.Columns, c)
	}
	return rows, carriers
}

// Four members that each see other airlines find what one with all flights finds, and each of
// them alone far less. Every 12th flight: the whole is a figure of docs/TABLES.md.
func TestFlightsSplitByCarrier(t *testing.T) {
	rows, carriers := flightRows(t, 12)
	known := slices.Clone(carriers)
	slices.Sort(known)
	known = slices.Compact(known)
	split, err := table.ParseSplit("hash:7/10")
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := divide(rows, split)
	if err != nil {
		t.Fatal(err)
	}
	owner := map[int64]int{}
	for i, name := range carriers {
		owner[rows.Features.Key(i)] = slices.Index(known, name) % 4
	}
	parts := make([]Rows, 4)
	for p := range parts {
		parts[p] = train.Select(func(row int) bool { return owner[train.Features.Key(row)] == p })
	}
	area := func(m Model) float64 {
		s, err := Evaluate(t.Context(), table.Alone{}, m, test)
		if err != nil {
			t.Fatal(err)
		}
		return s.Classes.AUC
	}
	for _, learner := range []Learner{&Logistic{Tolerance: 1e-6}, &Linear{Ridge: 1}, &GaussianNB{}} {
		alone, err := learner.Fit(t.Context(), table.Alone{}, train)
		if err != nil {
			t.Fatal(err)
		}
		models, errs := make([]Model, 4), make([]error, 4)
		table.Together(4, func(flock table.Flock, i int) {
			models[i], errs[i] = learner.Fit(t.Context(), table.Scope(flock, "f"), parts[i])
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		a, b := predict(t, alone, test), predict(t, models[0], test)
		most := 0.0
		for i := range a {
			most = max(most, math.Abs(a[i]-b[i]))
		}
		if most > 1e-9 || math.Abs(area(alone)-area(models[0])) > 1e-4 {
			t.Errorf("%T: probabilities by four members differ by up to %v", learner, most)
		}
		sum := 0.0
		for _, part := range parts {
			own, err := learner.Fit(t.Context(), table.Alone{}, part)
			if err != nil {
				t.Fatal(err)
			}
			sum += area(own) / 4
		}
		t.Logf("%T: AUC %.4f of all rows, %.4f by four members, %.4f in the mean of each alone; probabilities within %.1g", learner, area(alone), area(models[0]), sum, most)
		if area(alone) < 0.6 || sum > area(alone)-0.005 {
			t.Errorf("%T: AUC %.4f, %.4f alone: want above 0.6, and more than alone", learner, area(alone), sum)
		}
	}
}
