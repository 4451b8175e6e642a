package train

import (
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/peer"
)

// tokenOf is the token with which another machine joins.
func tokenOf(s settings.Settings, p *peer.Node) string {
	invitation := token.Of(s.Run, string(p.Self()), p.JoinAddresses())
	if invitation.Founder = s.Founder; s.Founder == "" && len(s.Join) == 0 {
		invitation.Founder = string(p.Self())
	}
	invitation.Expires = time.Now().Add(token.Lasts).Unix()
	return invitation.String()
}
