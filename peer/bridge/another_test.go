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
		c.Description = description.Of("digits", bridge.LayoutField(c.Params.Layout()))
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
