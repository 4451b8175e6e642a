package prepare

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Dates makes of each column of dates the days since 1970, and beside them, as COLUMN.month,
// COLUMN.weekday (0 is Sunday) and, where there are times of the day, COLUMN.hour, which often
// matter to a model because they recur. A text that is no date becomes missing.
type Dates struct {
	// Columns are those that are dates, and whether with times of the day. If none are told, Fit finds the
	// categories of which all values of all members are dates.
	Columns map[string]bool `json:"columns"`
	// Except are columns that are none, whatever their values.
	Except []string `json:"except,omitempty"`
}

// dateForm matches dates of ISO 8601, and dates with dots.
var dateForm = regexp.MustCompile(`^(?:(\d{4})-(\d\d)-(\d\d)|(\d\d)\.(\d\d)\.(\d{4}))(?:[ T]([01]\d|2[0-3]):([0-5]\d)(?::((?:[0-5]\d|60)(?:\.\d+)?))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))?)?$`)

// ParseDate reads YYYY-MM-DD or DD.MM.YYYY and, behind a space or a T, perhaps hh:mm, seconds, and Z
// or an offset; and reports in timed whether a time of the day is there. Parts are the days, in UTC,
// and month, day of the week and hour as they are written. (Package time is for clocks.)
func ParseDate(text string) (parts [4]float64, timed, ok bool) {
	g := dateForm.FindStringSubmatch(text)
	if g == nil {
		return parts, false, false
	}
	number := func(group int) float64 { v, _ := strconv.ParseFloat(g[group], 64); return v } // 0 if the group is absent
	y, m, d := int(number(1)+number(6)), int(number(2)+number(5)), int(number(3)+number(4))
	hour, minutes, offset := number(7), number(8)+number(9)/60, number(11)*60+number(12)
	last := 30 + (m+m/8)%2
	if m == 2 {
		last = 28
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			last = 29
		}
	}
	if y < 1 || m < 1 || m > 12 || d < 1 || d > last {
		return parts, false, false
	}
	if g[10] == "-" {
		offset = -offset
	}
	late := y - (14-m)/12 // years begin in March here, so that a leap day is the last
	day := 365*late + late/4 - late/100 + late/400 + (153*(m+12*((14-m)/12)-3)+2)/5 + d - 719469
	return [4]float64{float64(day) + hour/24 + (minutes-offset)/(24*60), float64(m), float64(((day+4)%7 + 7) % 7), hour}, g[7] != "", true
}

// Fit implements table.Stage.
func (s *Dates) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	if s.Columns != nil {
		return nil
	}
	own := make(map[string]dated)
	err := collect(ctx, rows, nil, table.Category, func(c *table.Column) {
		of, seen := own[c.Name]
		uses, _ := c.Uses()
		for i, n := range uses {
			if n == 0 || seen && !of.All || slices.Contains(s.Except, c.Name) {
				continue
			}
			_, timed, is := ParseDate(c.Values[i])
			of, seen = dated{is, of.Timed || timed}, true
			own[c.Name] = of
		}
	})
	all, err := gather(ctx, flock, part[dated]{own, err, []any{s.Except}}, func(a, b dated) dated {
		return dated{a.All && b.All, a.Timed || b.Timed}
	})
	if err != nil {
		return fmt.Errorf("finding dates: %w", err)
	}
	s.Columns = make(map[string]bool)
	for column, of := range all {
		if of.All {
			s.Columns[column] = of.Timed
		}
	}
	return nil
}

// dated is what a member has seen of a column.
type dated struct {
	All   bool `json:"all"`
	Timed bool `json:"timed"`
}

// Transform implements table.Stage.
func (s *Dates) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Category, s.Columns, func(c *table.Column, timed bool) []table.Column {
		parts := []string{"", ".month", ".weekday", ".hour"}
		if !timed {
			parts = parts[:3]
		}
		none := [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		known := map[int32][4]float64{table.Missing: none} // each batch has only some of the values
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
