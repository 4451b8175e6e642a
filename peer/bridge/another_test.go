package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/peer/description"
)

// TestAnotherModel: who joins with another model hears which range is the first that differs.
func TestAnotherModel(t *testing.T) {
	w := alone()
	w.configure = func(c *peer.Config) {
		c.Network.Description = []description.Field{bridge.LayoutField(c.Params.Layout())}
	}
	hello := func(name, join string, ranges ...string) answer {
		return w.trainer(t, name, counting(30)).say(`{"op":"hello","v":1,"run":"digits","join":[%s],"layout":[%s]}`, join, strings.Join(ranges, ","))
	}
	const first, second, third = `{"name":"0.weight","shape":[2,5]}`, `{"name":"0.bias","shape":[5],"kind":"bias"}`, `{"name":"1.weight","shape":[10]}`
	if a := hello("first", "", first, second, third); !a.OK {
		t.Fatalf("%+v", a.Error)
	}
	for i, c := range []struct {
		ranges []string
		says   string // empty: it may join
	}{
		{[]string{first, second, third}, ""},
		{[]string{first, `{"name":"0.bias","shape":[5]}`, third}, `"0.bias" [5], dense, shared, number 2 of 3 here and 3 there`},
		{[]string{first, second, `{"name":"1.weight","shape":[5,2]}`}, `"1.weight" [5 2], dense, shared, number 3 of 3`},
		{[]string{first, second}, `after the last range here, "0.bias" [5], bias, shared, it goes on, with 3 ranges in all`},
		{[]string{first, second, third, `{"name":"more","shape":[1]}`}, `"more" [1], dense, shared, number 4 of 4 here and 3 there`},
	} {
		a := hello(fmt.Sprint("joiner-", i), `"mem:first"`, c.ranges...)
		if c.says == "" && a.OK {
			continue
		}
		if a.code() != bridge.CodeRun || !a.Error.Fatal || c.says == "" || !strings.Contains(a.Error.Detail, c.says) {
			t.Errorf("%v: %+v, want %q", c.ranges, a.Error, c.says)
		}
	}
}

// TestAnotherModelOfManyRanges: of those that the description has no room for nothing is claimed.
func TestAnotherModelOfManyRanges(t *testing.T) {
	w := alone()
	w.configure = func(c *peer.Config) {
		c.Network.Description = []description.Field{bridge.LayoutField(c.Params.Layout())}
	}
	hello := func(name, join string, ranges, other int) answer {
		var layout []string
		for i := range ranges {
			layout = append(layout, fmt.Sprintf(`{"name":"%d%s","shape":[1]}`, i, strings.Repeat("x", max(0, i+1-other))))
		}
		return w.trainer(t, name, counting(300)).say(`{"op":"hello","v":1,"run":"digits","join":[%s],"layout":[%s]}`, join, strings.Join(layout, ","))
	}
	if a := hello("first", "", 250, 250); !a.OK {
		t.Fatalf("%+v", a.Error)
	}
	for name, c := range map[string]struct {
		ranges, other int
		says          string
	}{
		"shorter": {150, 150, `it goes on, with 200 or more ranges in all`},
		"other":   {240, 2, `"2x" [1], dense, shared, number 3 of 240 here and 200 or more there`},
	} {
		if a := hello(name, `"mem:first"`, c.ranges, c.other); a.code() != bridge.CodeRun || !strings.Contains(a.Error.Detail, c.says) {
			t.Errorf("%s: %+v, want %q", name, a.Error, c.says)
		}
	}
}
