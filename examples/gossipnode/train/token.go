package train

import "github.com/seed-97356399/murmuration/examples/gossipnode/token"

// token is what another machine joins by.
func (t *training) token() string {
	invitation := token.Of(t.Run, string(t.peer.Self()), t.peer.JoinAddresses())
	if invitation.Founder = t.Founder; len(t.Join) == 0 {
		invitation.Founder = string(t.peer.Self())
	}
	return invitation.String()
}
