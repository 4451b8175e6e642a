package p2pnet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

func at(t testing.TB, text string) ma.Multiaddr {
	t.Helper()
	if text == "" {
		return nil
	}
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLaneOrder(t *testing.T) {
	const (
		x, y, z  = "/ip4/10.0.0.1/tcp/1", "/ip4/10.0.1.1/tcp/1", "/ip6/fd00::1/tcp/1"
		here     = "/ip4/127.0.0.1/tcp/1"
		xDialled = "/ip4/10.0.0.1/tcp/50000" // x, as the end that it dialled sees it
	)
	cases := map[string]struct {
		known  []string
		beside string
		lane   int
		want   []string
	}{
		"none":                     {nil, x, 1, nil},
		"one":                      {[]string{x}, x, 3, []string{x}},
		"behind the first":         {[]string{x, y, z}, x, 1, []string{y, z, x}},
		"behind the second":        {[]string{x, y, z}, y, 1, []string{z, x, y}},
		"round":                    {[]string{x, y, z}, y, 5, []string{x, y, z}},
		"twice the same":           {[]string{x, y, x, y}, x, 1, []string{y, x}},
		"the other end dialled":    {[]string{y, x}, xDialled, 1, []string{y, x}},
		"beside none of them":      {[]string{x, y}, "/ip4/10.9.9.9/tcp/1", 1, []string{y, x}},
		"no connection yet":        {[]string{here, x}, "", 1, []string{x, here}},
		"loopback leads elsewhere": {[]string{here, x, y}, x, 1, []string{y, x}},
		"loopback on one machine":  {[]string{x, here}, here, 1, []string{x, here}},
		"loopback only":            {[]string{here}, x, 1, nil},
	}
	for name, c := range cases {
		var known []ma.Multiaddr
		for _, text := range c.known {
			known = append(known, at(t, text))
		}
		var got []string
		for _, a := range laneOrder(known, at(t, c.beside), c.lane) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSilentAddressesComeLast(t *testing.T) {
	s := newSilent()
	id := idOf(t, 1)
	start := time.Unix(1e9, 0)
	x, y := at(t, "/ip4/10.0.0.1/tcp/1"), at(t, "/ip4/10.0.1.1/tcp/1")
	s.note(id, x, start)
	for name, c := range map[string]struct {
		after time.Duration
		other bool
		first ma.Multiaddr
	}{
		"soon after":   {silentFor - 1, false, y},
		"long after":   {silentFor, false, x},
		"another peer": {0, true, x},
	} {
		whose := id
		if c.other {
			whose = idOf(t, 2)
		}
		order := []ma.Multiaddr{x, y}
		s.last(whose, order, start.Add(c.after))
		if !order[0].Equal(c.first) {
			t.Errorf("%s: %v first, want %v", name, order[0], c.first)
		}
	}
	for i := range 3 * maxSilent {
		s.note(id, at(t, fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", i)), start)
		if n := s.since.Len(); n > maxSilent {
			t.Fatalf("%d addresses are remembered", n)
		}
	}
}
