package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
)

// maxBoardReason bounds why, as somebody types it, in bytes.
const maxBoardReason = 120

// boardOrder is what the page asks for.
type boardOrder struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// ruler tells a run what its operator wants.
type ruler func(ctx context.Context, commands ...peer.Command) error

// ruler speaks as the operator whose key this process has, by way of this very peer,
// which passes it on; nil if it has no such key.
func (t *training) ruler() ruler {
	if t.OperatorKey == "" {
		return nil
	}
	return func(ctx context.Context, commands ...peer.Command) error {
		s := controlSettings{Join: t.peer.JoinAddresses(), OperatorKey: t.OperatorKey, RunKey: t.RunKey, Run: t.Run}
		_, _, err := s.deliver(ctx, commands, t.log)
		return err
	}
}

// control carries out an order of the page.
func (b *board) control(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, err error) {
		answerJSON(w, status, map[string]string{"error": err.Error()})
	}
	var o boardOrder
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		fail(http.StatusBadRequest, err)
		return
	}
	kind, known := map[string]peer.CommandKind{actPause: peer.Pause, actResume: peer.Resume}[o.Action]
	switch {
	case !known:
		fail(http.StatusBadRequest, errors.New("the dashboard can pause and resume; gossipnode control does more"))
		return
	case len(o.Reason) > maxBoardReason:
		fail(http.StatusBadRequest, errors.New("the reason is too long"))
		return
	case b.rule == nil:
		fail(http.StatusForbidden, errors.New("this peer has no operator's key: start it with --operator-key FILE"))
		return
	}
	select {
	case b.ruling <- struct{}{}:
		defer func() { <-b.ruling }()
	default:
		fail(http.StatusConflict, errors.New("another order is on its way"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	if err := b.rule(ctx, peer.Command{Kind: kind, Why: o.Reason}); err != nil {
		b.log.Warn("the dashboard's order was not taken", zap.String("action", o.Action), zap.Error(err))
		fail(http.StatusBadGateway, err)
		return
	}
	select {
	case b.look <- struct{}{}:
	default: // somebody looks anyway
	}
	answerJSON(w, http.StatusOK, map[string]string{"done": o.Action})
}
