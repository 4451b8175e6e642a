package peer

import (
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
)

// carry carries out what only the algorithms in lock-step and those with a server ask
// for. docs/design/020 says how.
func (l *loop) carry(action averaging.Action, key exchangeKey) {
	p := l.peer
	switch action.Kind {
	case averaging.Load:
		p.replica.Load(action.Add)
	case averaging.Clear:
		p.replica.Clear()
	case averaging.Update:
		l.update(action)
	case averaging.Tell:
		p.tell(action)
	case averaging.Send:
		l.send(action, key)
	default:
		l.log.Error("a machine asks for what this release does not know", zap.Stringer("action", action))
	}
}
