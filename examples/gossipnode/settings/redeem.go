package settings

import (
	"cmp"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
)

// wasThere tells, by its checkpoints, whether this peer has taken part in the run before.
func wasThere(s *Settings) bool {
	names, _ := s.Checkpoints().Names()
	return len(names) > 0
}

// Redeemed returns the addresses to join, the name of the run and its key, if they tell it, after tokens are replaced by
// their content.
func Redeemed(join []string, run string, from cli.Origins) ([]string, string, []byte, error) {
	var s Settings
	s.Join, s.Run = join, run
	err := s.redeem(from)
	return s.Join, s.Run, s.Secret, err
}

// redeem replaces tokens by their content: addresses to join, the name of the run, its key
// and its founder. A different name of the run, given by a flag or a file, is a fault.
func (s *Settings) redeem(from cli.Origins) error {
	var join []string
	var before token.Token // the previous one
	for _, text := range s.Join {
		if !token.Is(text) {
			join = append(join, text)
			continue
		}
		t, err := token.Parse(text)
		if err == nil && !wasThere(s) {
			err = t.Expired(time.Now())
		}
		if err != nil {
			return from.Usage(cli.Faultf("join", "%v", err))
		}
		if s.Run != t.Run && from.Source("run") != cli.FromDefault {
			return from.Usage(cli.Faultf("run", "%q, but the token is one of %q: leave it out", s.Run, t.Run))
		}
		if before.Run != "" && (t.Run != before.Run || t.Founder != before.Founder && t.Founder != "" && before.Founder != "") {
			return from.Usage(cli.Faultf("join", "has tokens of two runs, %q begun by %s and %q begun by %s: give those of one", before.Run, cmp.Or(before.Founder, "nobody knows"), t.Run, cmp.Or(t.Founder, "nobody knows")))
		}
		t.Founder = cmp.Or(t.Founder, before.Founder)
		if t.Secret == nil {
			t.Secret = before.Secret
		}
		s.Run, s.Invitation, before = t.Run, Invitation{Founder: t.Founder, Secret: t.Secret}, t
		join = append(join, t.Join()...)
	}
	s.Join = join
	return nil
}
