package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/control"
)

const (
	// orderTimeout bounds the time to carry out an order.
	orderTimeout = 15 * time.Second
	// maxReason bounds the reason that a user types, in bytes.
	maxReason = 120
)

// order is a request of the page.
type order struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// Ruler sends commands of its operator to a run.
type Ruler func(ctx context.Context, commands ...control.Command) error

// ruling carries out orders of the page, one at a time.
type ruling struct {
	rule  Ruler // nil if the operator's key is not known
	may   func(r *http.Request) bool
	busy  chan struct{} // holds a token while an order is carried out
	taken func()        // is called after an order has been carried out
	log   *zap.Logger
}

// ServeHTTP carries out an order of the page.
func (b ruling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, err error) {
		answerJSON(w, status, map[string]string{"error": err.Error()})
	}
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		fail(http.StatusBadRequest, err)
		return
	}
	kind, known := map[string]control.Kind{"pause": control.Pause, "resume": control.Resume}[o.Action]
	switch {
	case !known:
		fail(http.StatusBadRequest, errors.New("the dashboard can pause and resume; gossipnode control does more"))
		return
	case len(o.Reason) > maxReason:
		fail(http.StatusBadRequest, errors.New("the reason is too long"))
		return
	case b.rule == nil:
		fail(http.StatusForbidden, errors.New("this peer has no operator's key: start it with --operator-key FILE"))
		return
	case !b.may(r):
		fail(http.StatusForbidden, errors.New("this needs the token: open the address that the peer printed when it started, with its ?token="))
		return
	}
	select {
	case b.busy <- struct{}{}:
		defer func() { <-b.busy }()
	default:
		fail(http.StatusConflict, errors.New("another order is being carried out"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), orderTimeout)
	defer cancel()
	if err := b.rule(ctx, control.Command{Kind: kind, Why: o.Reason}); err != nil {
		b.log.Warn("the dashboard's order was not taken", zap.String("action", o.Action), zap.Error(err))
		fail(http.StatusBadGateway, err)
		return
	}
	b.taken()
	answerJSON(w, http.StatusOK, map[string]string{"done": o.Action})
}
