package peer

import (
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
)

// carry carries out what only the algorithms in lock-step and those with a server ask
// for. docs/design/020 says how.
func (l *loop) carry(action averaging.Action, key exchangeKey) {
	p := l.peer
	pooling := action.Kind == averaging.Pool || action.Kind == averaging.Adopt
	switch {
	case action.Kind == averaging.Tell, action.Kind == averaging.Send, p.together != nil, p.final != nil && pooling:
	default:
		l.log.Error("a machine that averages models asks for what needs buffers for gradients: it is left undone", zap.Stringer("action", action))
		return
	}
	switch action.Kind {
	case averaging.Load:
		if err := p.replica.Load(action.Add); err != nil {
			p.together.fault(leftOut(err))
		}
	case averaging.Clear:
		p.replica.Clear()
	case averaging.Pool:
		p.final.pool(p.replica, action.Weight)
	case averaging.Adopt:
		p.final.adopt(p.replica)
		l.events = append(l.events, notice{event: averaging.Event{Kind: averaging.Updated}})
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
