package prepare

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Dates are days and parts of them, also by what was written and read again.
func TestDates(t *testing.T) {
	b := &table.Batch{Rows: 4, Columns: []table.Column{
		{Name: "day", Kind: table.Category, Codes: []int32{0, 1, table.Missing, 2}, Values: []string{"1970-01-02", "29.02.2024", "soon"}},
		{Name: "at", Kind: table.Category, Codes: []int32{0, 1, 2, table.Missing}, Values: []string{"2013-01-01 05:00:00", "2013-07-07T12:00:00+02:00", "2013-01-01"}},
	}}
	p := &Pipeline{Input: table.Schema{Fields: []table.Field{{Name: "day", Kind: table.Category}, {Name: "at", Kind: table.Category}}}, Stages: []table.Stage{
		&Dates{Columns: map[string]bool{"day": false, "at": true}},
	}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var read Pipeline
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	out, err := read.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range out.Columns {
		got += fmt.Sprintln(c.Name, c.Numbers)
	}
	const want = `day [1 19782 NaN NaN]
day.month [1 2 NaN NaN]
day.weekday [5 4 NaN NaN]
at [15706.208333333334 15893.416666666666 15706 NaN]
at.month [1 7 1 NaN]
at.weekday [2 0 2 NaN]
at.hour [5 12 0 NaN]
`
	if got != want {
		t.Errorf("%s", got)
	}
}

// What is read is what package time reads, from the first year to the last; what is none is refused.
func TestParseDate(t *testing.T) {
	for day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.Add(9*time.Hour+2011*time.Minute).AddDate(0, 0, 397) {
		for _, form := range []string{time.DateTime, time.RFC3339, "02.01.2006 15:04", "2006-01-02T15:04:05.000"} {
			parts, timed, ok := ParseDate(day.Format(form))
			want := [4]float64{float64(day.Unix()) / 86400, float64(day.Month()), float64(day.Weekday()), float64(day.Hour())}
			if math.Abs(parts[0]-want[0]) > 1e-6 || [3]float64(parts[1:]) != [3]float64(want[1:]) || !timed || !ok {
				t.Fatalf("%s: %v, not %v", day.Format(form), parts, want)
			}
		}
		if parts, timed, ok := ParseDate(day.Format(time.DateOnly)); timed || !ok || parts[0] != math.Floor(float64(day.Unix())/86400) {
			t.Fatalf("%s: %v", day, parts)
		}
	}
	for _, text := range []string{"", "2024", "2024-13-01", "2024-1-01", "1/2/2024", "2024-01-32", "2024-01-01 x", "2024-01-01 25:00", "2024-01-01 05:00 noon", "abcd-ef-gh", "2024-01-01T05:00+x"} {
		if parts, _, ok := ParseDate(text); ok {
			t.Errorf("%q: %v", text, parts)
		}
	}
}

// TestWhatIsNoDate: days that no month has, and times that no day has, are no dates; each day of 400 years is
// the one after the day before.
func TestWhatIsNoDate(t *testing.T) {
	for _, text := range []string{
		"2023-02-29", "1900-02-29", "2024-02-30", "31.04.2024", "2024-00-10", "2024-13-01", "0000-00-00", "0000-01-01", "99999-01-01",
		"2024-01-01 24:00", "2024-01-01 10:60", "2024-01-01 10:30:61", "2024-01-01 10:30:00+24:00", "2024-01-01 10:30:00+10:60",
	} {
		if parts, _, ok := ParseDate(text); ok {
			t.Errorf("%s is %v", text, parts)
		}
	}
	day, _, _ := ParseDate("1799-12-31")
	for at := time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2200; at = at.AddDate(0, 0, 1) {
		next, _, ok := ParseDate(at.Format(time.DateOnly))
		if !ok || next[0] != day[0]+1 || next[2] != float64(at.Weekday()) {
			t.Fatalf("%s is %v, %t", at, next, ok)
		}
		day = next
	}
}
