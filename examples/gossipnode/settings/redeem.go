package settings

import (
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
)

// redeem puts what tokens say in their place: addresses to join, the name of the run, its
// key and its founder. A run that somebody named otherwise is a fault.
func (s *Settings) redeem(from cli.Origins) error {
	var join []string
	for _, text := range s.Join {
		if !token.Is(text) {
			join = append(join, text)
			continue
		}
		t, err := token.Parse(text)
		if err == nil {
			err = t.Expired(time.Now())
		}
		if err != nil {
			return from.Usage(cli.Faultf("join", "%v", err))
		}
		if s.Run != t.Run && from.Source("run") != cli.FromDefault {
			return from.Usage(cli.Faultf("run", "%q, but the token is one of %q: leave it out", s.Run, t.Run))
		}
		s.Run, s.Invitation = t.Run, Invitation{t.Founder, t.Secret}
		join = append(join, t.Join()...)
	}
	s.Join = join
	return nil
}
