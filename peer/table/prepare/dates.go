package prepare

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Dates makes of each column of dates the days since 1970, and beside them, as COLUMN.month,
// COLUMN.weekday (0 is Sunday) and, where there are times of the day, COLUMN.hour, parts of which
// much depends that goes round. What is no date is missing. Nothing is learned.
type Dates struct {
	// Columns are those that are dates, and whether with times of the day.
	Columns map[string]bool `json:"columns"`
}

// ParseDate reads YYYY-MM-DD or DD.MM.YYYY and, behind a space or a T, perhaps hh:mm, hh:mm:ss, a
// fraction, and Z or an offset; and tells whether a time of the day is there. Parts are the days, in
// UTC, and month, day of the week and hour as they are written. (Package time is for clocks.)
func ParseDate(text string) (parts [4]float64, timed, ok bool) {
	date, clock := text, ""
	if i := strings.IndexAny(text, " T"); i >= 0 {
		date, clock = text[:i], text[i+1:]
	}
	if len(date) != len("2006-01-02") {
		return parts, false, false
	}
	y, m, d := digits(date[:4]), digits(date[5:7]), digits(date[8:])
	if date[2] == '.' && date[5] == '.' {
		d, m, y = digits(date[:2]), digits(date[3:5]), digits(date[6:])
	} else if date[4] != '-' || date[7] != '-' {
		return parts, false, false
	}
	if y < 1 || m < 1 || m > 12 || d < 1 || d > 31 {
		return parts, false, false
	}
	hour, rest := 0.0, 0.0 // rest is the time since the hour, in UTC, in hours
	if timed = clock != ""; timed {
		if hour, rest, ok = timeOfDay(strings.TrimSuffix(clock, "Z")); !ok {
			return parts, false, false
		}
	}
	late := y - (14-m)/12 // years begin in March here, so that a leap day is the last
	day := 365*late + late/4 - late/100 + late/400 + (153*(m+12*((14-m)/12)-3)+2)/5 + d - 719469
	return [4]float64{float64(day) + (hour+rest)/24, float64(m), float64(((day+4)%7 + 7) % 7), hour}, timed, true
}

// timeOfDay reads hh:mm, hh:mm:ss or hh:mm:ss.f, and an offset from UTC.
func timeOfDay(clock string) (hour, rest float64, ok bool) {
	if len(clock) < 5 || clock[2] != ':' {
		return 0, 0, false
	}
	h, m := digits(clock[:2]), digits(clock[3:5])
	rest, clock = float64(m)/60, clock[5:]
	if i := strings.IndexAny(clock, "+-"); i >= 0 {
		zone := clock[i+1:]
		if len(zone) != 5 || digits(zone[:2]) < 0 || digits(zone[3:]) < 0 {
			return 0, 0, false
		}
		if off := float64(digits(zone[:2])) + float64(digits(zone[3:]))/60; clock[i] == '+' {
			rest -= off
		} else {
			rest += off
		}
		clock = clock[:i]
	}
	second := 0.0
	if clock != "" {
		var err error
		if second, err = strconv.ParseFloat(clock[1:], 64); clock[0] != ':' || err != nil || !(second >= 0 && second < 61) {
			return 0, 0, false
		}
	}
	return float64(h), rest + second/3600, h >= 0 && h <= 23 && m >= 0 && m <= 59
}

// digits is the number that a text of digits is, -1 if it is none.
func digits(text string) (n int) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// Fit implements table.Stage.
func (s *Dates) Fit(context.Context, table.Flock, string, table.Source) error { return nil }

// Transform implements table.Stage.
func (s *Dates) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Category, s.Columns, func(c *table.Column, timed bool) []table.Column {
		parts := []string{"", ".month", ".weekday", ".hour"}
		if !timed {
			parts = parts[:3]
		}
		none := [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		known := map[int32][4]float64{table.Missing: none} // not all values are in each batch
		columns := make([]table.Column, len(parts))
		for i, part := range parts {
			columns[i] = table.Column{Name: c.Name + part, Numbers: make([]float64, len(c.Codes))}
		}
		for row, code := range c.Codes {
			of, ok := known[code]
			if !ok {
				if of, _, ok = ParseDate(c.Values[code]); !ok {
					of = none
				}
				known[code] = of
			}
			for i := range columns {
				columns[i].Numbers[row] = of[i]
			}
		}
		return columns
	})
}
