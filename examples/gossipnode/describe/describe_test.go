package describe

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// trips are 400 rows: km and minutes that depend on it, a line of which one is rare, whether it was late, and chance.
func trips(t *testing.T) string {
	text := "km,minutes,line,late,coin\n"
	for i := range 400 {
		km, line := float64(i*37%100)+0.25, []string{"red", "blue", "<script>alert(1)</script>"}[i%3]
		if i < 4 {
			line = "rare"
		}
		minutes := fmt.Sprint(10 + 2*int(km) + i%7)
		if i%50 == 0 {
			minutes = ""
		}
		text += fmt.Sprintf("%g,%s,%s,%v,%d\n", km, minutes, line, km > 60, i/7%2)
	}
	return clitest.WriteFile(t, "trips.csv", text)
}

// described runs describe --json.
func described(t *testing.T, args ...string) (r Result, fields map[string]any) {
	t.Helper()
	code, out, stderr := program.Try(append([]string{"describe", "--json"}, args...)...)
	if code != cli.ExitDone {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	clitest.LastLine(t, out, &r)
	clitest.LastLine(t, out, &fields)
	return r, fields
}

// same tells where two results differ by more than rounding.
func same(t *testing.T, got, want Result) {
	t.Helper()
	flat := func(r Result) map[string]any {
		s := *r.Summary
		s.MemberRows, s.Members, s.Correlations = nil, 0, nil // equal correlations have any order
		r.Summary, r.BytesSent = &s, 0
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]any{}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		var walk func(at string, value any)
		walk = func(at string, value any) {
			switch value := value.(type) {
			case map[string]any:
				for key, v := range value {
					walk(at+"."+key, v)
				}
			case []any:
				for i, v := range value {
					walk(fmt.Sprintf("%s[%d]", at, i), v)
				}
			default:
				all[at] = value
			}
		}
		walk("", value)
		return all
	}
	a, b := flat(got), flat(want)
	if len(a) != len(b) {
		t.Errorf("%d values, want %d", len(a), len(b))
	}
	for at, value := range b {
		x, isNumber := a[at].(float64)
		if y, _ := value.(float64); isNumber && math.Abs(x-y) <= 1e-9*max(1, math.Abs(y)) || a[at] == value {
			continue
		}
		t.Errorf("%s is %v, want %v", at, a[at], value)
	}
}

// The JSON has the fields of the contract, and members who divide the rows are told what one with all is.
func TestDescribe(t *testing.T) {
	data := trips(t)
	args := []string{"--data", data, "--dataset", "csv", "--target", "late", "--unrelated", "0.01"}
	one, fields := described(t, args...)
	for _, field := range []string{"rows", "members", "columns", "classes"} {
		if fields[field] == nil {
			t.Errorf("there is no %s", field)
		}
	}
	km := fields["columns"].([]any)[0].(map[string]any)
	for _, field := range []string{"name", "kind", "missing", "mean", "std", "min", "max", "quantiles", "relation"} {
		if km[field] == nil {
			t.Errorf("there is no %s of a column of numbers", field)
		}
	}
	if top := fields["columns"].([]any)[2].(map[string]any)["top"]; top == nil {
		t.Error("there is no top of a category")
	}
	if one.Rows != 400 || one.Members != 1 || one.Columns[1].Missing != 8 || fmt.Sprint(one.Classes) != "[{false 240} {true 160}]" || fmt.Sprint(one.Unrelated) != "[line coin]" {
		t.Errorf("%+v", one)
	}
	line := one.Columns[2].Values // the rare one is below the floor, and the rest would tell of it
	if line.Distinct != 4 || len(line.Top) != 2 || line.Others != 400-line.Top[0].Rows-line.Top[1].Rows {
		t.Errorf("%+v", line)
	}
	for _, shard := range []string{"rows", "by=line", "by=late"} {
		four, _ := described(t, append(args, "--peers", "4", "--shard", shard)...)
		if same(t, four, one); four.Members != 4 || len(four.MemberRows) != 4 {
			t.Errorf("%d members of %d rows", four.Members, four.MemberRows)
		}
	}
}

// What is told in words names what JSON has, and the page is whole, loads nothing, and shows names as texts.
func TestWordsAndPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, stderr := program.Try("describe", "--data", trips(t), "--target", "late", "--unrelated", "0.01", "--html", page)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"400 rows of 1 member (400). Cells of fewer than 10 rows are merged", "Classes: false 240, true 160.", "line: 4 values;", "Strongest correlations:\n+0.9", "Unrelated, they tell at most 1 % of the target: line, coin\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"<script", "http", "src=", "@import", "url(", "rare", "NaN", "Inf", "ZgotmplZ"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the page has %q", not)
		}
	}
	for svg := range strings.SplitSeq(string(text), "<svg") {
		body, _, drawn := strings.Cut(svg, "</svg>")
		if err := xml.Unmarshal([]byte("<svg"+body+"</svg>"), new(struct{})); drawn && err != nil {
			t.Errorf("%v in %s", err, body)
		}
	}
	if n := strings.Count(string(text), "<svg"); n != 8 { // classes, what columns tell, five columns, correlations
		t.Errorf("%d plots", n)
	}
}

// Pictures are described by their classes and channels, the same however they are divided.
func TestPicturesAndTexts(t *testing.T) {
	dir := clitest.Pictures(t, 400, 20)
	one, _ := described(t, "--dataset", "mnist", "--data", dir)
	if level := one.Columns[0]; one.Rows != 400 || len(one.Classes) != 10 || one.Classes[3] != (summary.Cell{Value: "3", Rows: 40}) || level.Name != "level" || level.Min != 0 || level.Max != 239 || level.Missing != 0 || one.MemberRows[0] != 400 {
		t.Errorf("%+v, %+v", one, one.Columns[0].Numbers)
	}
	three, _ := described(t, "--dataset", "mnist", "--data", dir, "--peers", "3")
	same(t, three, one)

	texts := t.TempDir()
	for i := range 30 {
		if err := os.WriteFile(filepath.Join(texts, fmt.Sprint(i, ".txt")), []byte(strings.Repeat("süße Übermütigkeit\n", 60)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := described(t, "--dataset", "text", "--data", texts)
	symbol, bytes := text.Columns[0], text.Columns[1]
	if bytes.Name != "byte" || bytes.Min != '\n' || bytes.Missing != 0 || symbol.Name != "symbol" || symbol.Distinct != 14 || !strings.Contains(fmt.Sprint(symbol.Top), "'e'") {
		t.Errorf("%+v, %+v", bytes.Numbers, symbol.Values)
	}
}

// Members apart are told the same; one that joins takes over what is described, and needs nothing but data of the same columns.
func TestMembersApart(t *testing.T) {
	t.Parallel()
	data := trips(t)
	founder, token, result, log := founding(t, "--data", data, "--target", "late", "--least", "5", "--unrelated", "0.9")
	if code, _, stderr := program.Try("describe", "--data", data, "--least", "6", "--join", token); code != cli.ExitUsage || !strings.Contains(stderr, "this description differs from that of --join") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	joined, _ := described(t, "--data", data, "--join", token)
	if err := founder.Wait(); err != nil {
		t.Fatalf("%v: %s", err, log)
	}
	var r Result
	clitest.LastLine(t, result.String(), &r)
	if same(t, joined, r); len(r.Unrelated) == 0 || !slices.Equal(r.Unrelated, joined.Unrelated) {
		t.Errorf("unrelated are %q and %q", r.Unrelated, joined.Unrelated)
	}
	if r.Rows != 800 || r.Members != 2 || r.Least != 5 || r.Target != "late" || r.BytesSent == 0 {
		t.Errorf("%+v", r)
	}
}

// founding is the first member of a flock of two, with the token by which the other joins it.
func founding(t *testing.T, args ...string) (founder *exec.Cmd, token string, result *strings.Builder, log *clitest.Buffer) {
	t.Helper()
	founder = clitest.Command(t, time.Minute, append([]string{"describe", "--json", "--listen", "127.0.0.1:0", "--min-peers", "2"}, args...)...)
	result, log = new(strings.Builder), new(clitest.Buffer)
	founder.Stdout, founder.Stderr = result, log
	if err := founder.Start(); err != nil {
		t.Fatal(err)
	}
	return founder, clitest.Token(t, log), result, log
}

// A member whose rows cannot be described says what is wrong with them, and the others that it is not theirs.
func TestAMemberAtFault(t *testing.T) {
	t.Parallel()
	good, bad := filepath.Join(t.TempDir(), "good.csv"), filepath.Join(t.TempDir(), "bad.csv")
	for path, x := range map[string]string{good: "1", bad: "1e80"} {
		if err := os.WriteFile(path, []byte("x,t\n"+strings.Repeat(x+",1\n2,0\n", 50)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	founder, token, _, log := founding(t, "--data", good, "--target", "t", "--unrelated", "0.01")
	if code, _, stderr := program.Try("describe", "--data", bad, "--join", token); code == cli.ExitDone || !strings.Contains(stderr, "1e+80") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if err := founder.Wait(); err == nil || strings.Contains(log.String(), "panic") || !strings.Contains(log.String(), table.ErrMember.Error()) {
		t.Errorf("%v: %s", err, log)
	}
}

// Wrong flags and data are told of, with the exit code that is theirs.
func TestFaultsOfFlags(t *testing.T) {
	data := trips(t)
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"--data":                 {cli.ExitUsage, nil},
		"--least":                {cli.ExitUsage, []string{"--data", data, "--least", "0"}},
		"--unrelated":            {cli.ExitUsage, []string{"--data", data, "--unrelated", "0.1"}},
		"--target":               {cli.ExitUsage, []string{"--data", data, "--dataset", "mnist", "--target", "x"}},
		"--shard":                {cli.ExitUsage, []string{"--data", data, "--shard", "iid", "--peers", "2"}},
		"--dataset":              {cli.ExitUsage, []string{"--data", data, "--dataset", "moon"}},
		"--peers":                {cli.ExitUsage, []string{"--data", data, "--peers", "2", "--listen", "127.0.0.1:0"}},
		`did you mean "minutes"`: {cli.ExitUsage, []string{"--data", data, "--drop", "minute"}},
		"no such column":         {cli.ExitConfig, []string{"--data", data, "--target", "nothing"}},
		"nowhere":                {cli.ExitConfig, []string{"--data", "nowhere.csv"}},
	} {
		if code, _, stderr := program.Try(append([]string{"describe"}, c.args...)...); code != c.code || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, want %d; %q, want %s", c.args, code, c.code, stderr, want)
		}
	}
}

// The flights of four members by carrier are those of one.
func TestFlights(t *testing.T) {
	const data = "../../../../shared/data/flights/flights.csv.gz"
	if _, err := os.Stat(data); err != nil {
		t.Skip("the real data is not there: ", err)
	}
	args := []string{"--data", data, "--target", "arr_delay>15", "--drop", "dep_delay", "--unrelated", "0.005"}
	one, _ := described(t, args...)
	four, _ := described(t, append(args, "--peers", "4", "--shard", "by=carrier")...)
	if same(t, four, one); one.Rows != 336776 || len(one.Unrelated) == 0 {
		t.Errorf("%d rows, unrelated are %q", one.Rows, one.Unrelated)
	}
}
