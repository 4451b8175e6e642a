package describe

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// Result is the output of --json; the design lists the names.
type Result struct {
	*summary.Summary
	// Unrelated are the columns that predict at most the share Tolerance of the target, with --unrelated.
	Tolerance *float64 `json:"tolerance,omitempty"`
	Unrelated []string `json:"unrelated,omitempty"`
	// Damaged is how many rows of this member were left out.
	Damaged   int64  `json:"damaged"`
	BytesSent uint64 `json:"bytes_sent"`
}

// strongest is how many correlations the text lists.
const strongest = 10

// String writes a result as tables.
func (r Result) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.head())
	if len(r.Classes) > 0 {
		fmt.Fprintf(&text, "Classes: %s.\n", cells(r.Classes, r.OtherClasses, 0))
	}
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(columns, "\ncolumn\tmissing\tmean\tstd\tmin\t25 %%\tmedian\t75 %%\tmax\t%s\n", map[bool]string{true: "tells"}[r.Target != ""])
	for _, c := range r.Columns {
		if fmt.Fprintf(columns, "%s\t%d\t", cli.Printable(c.Name), c.Missing); c.Numbers != nil {
			for _, x := range []string{number(c.Mean), number(c.Std), number(c.Min), quantile(c.Numbers, 0.25), quantile(c.Numbers, 0.5), quantile(c.Numbers, 0.75), number(c.Max)} {
				fmt.Fprintf(columns, "%s\t", x)
			}
		} else {
			fmt.Fprint(columns, strings.Repeat("\t", 7))
		}
		if c.Relation != nil {
			fmt.Fprint(columns, percent(c.Relation.Share))
		}
		fmt.Fprintln(columns)
	}
	_ = columns.Flush() // a strings.Builder never fails
	for _, c := range r.Columns {
		switch {
		case c.Withheld:
			fmt.Fprintf(&text, "%s: fewer than %d rows have a value.\n", cli.Printable(c.Name), r.Least)
		case c.Values != nil:
			fmt.Fprintf(&text, "%s: %s; %s.\n", cli.Printable(c.Name), distinct(c.Values), cells(c.Top, c.Others, r.Rows-c.Missing))
		}
	}
	for i, c := range r.Correlations {
		if i == 0 {
			text.WriteString("\nStrongest correlations:\n")
		}
		if i < strongest {
			fmt.Fprintf(&text, "%+.3f  %s, %s\n", c.R, cli.Printable(c.Columns[0]), cli.Printable(c.Columns[1]))
		}
	}
	if r.Tolerance != nil {
		fmt.Fprintf(&text, "\nUnrelated, they tell at most %s of the target: %s\n", percent(*r.Tolerance), cli.Printable(strings.Join(r.Unrelated, ", ")))
	}
	return text.String()
}

// head says what was counted, and which figures are missing.
func (r Result) head() string {
	var members []string
	for _, n := range r.MemberRows {
		if members = append(members, strconv.FormatInt(n, 10)); n == 0 {
			members[len(members)-1] = "fewer than " + strconv.Itoa(r.Least)
		}
	}
	text := fmt.Sprintf("%s of %s (%s). Cells of fewer than %d rows are merged or not told.", cli.Plural(uint64(r.Rows), "row"), cli.Plural(uint64(r.Members), "member"), strings.Join(members, ", "), r.Least)
	off := 0.0
	for _, c := range r.Columns {
		for i := 0; c.Numbers != nil && c.Max > c.Min && i < len(c.Quantiles); i++ { // one number is exact
			off = max(off, c.Quantiles[i].Error/(c.Max-c.Min))
		}
	}
	if text += " Quantiles are exact."; off > 0 {
		text = strings.TrimSuffix(text, "exact.") + fmt.Sprintf("off by at most %.1g of the range of their column.", off)
	}
	if r.Uncorrelated > 0 {
		text += fmt.Sprintf(" The first %d columns of numbers are correlated, %d are not.", summary.MaxPaired, r.Uncorrelated)
	}
	return text
}

// cells lists values with their rows, or with shares if the number of all is given.
func cells(all []summary.Cell, others, of int64) string {
	text := func(n int64) string {
		if of > 0 {
			return percent(float64(n) / float64(of))
		}
		return strconv.FormatInt(n, 10)
	}
	var list []string
	for _, c := range all {
		list = append(list, cli.Printable(c.Value)+" "+text(c.Rows))
	}
	if others > 0 {
		list = append(list, "others "+text(others))
	}
	return strings.Join(list, ", ")
}

func distinct(v *summary.Values) string {
	if v.Distinct == 0 {
		return fmt.Sprintf("more than %d values", summary.MaxValues)
	}
	return cli.Plural(uint64(v.Distinct), "value")
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + " %" }

// quantile is the quantile of a share, if there is one.
func quantile(n *summary.Numbers, share float64) string {
	for _, q := range n.Quantiles {
		if q.Share == share {
			return number(q.Value)
		}
	}
	return "-"
}

// number writes five digits, or all digits of a whole number.
func number(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < table.MaxCount {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	if size := math.Abs(x); size >= 1e5 && size < 1e12 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 5, 64)
}
