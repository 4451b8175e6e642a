package train

import (
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// Observer receives the reports of a peer, and controls its begin and end.
type Observer struct {
	Log  *zap.Logger
	Tell watch.Reporter
	// Begin is closed when the first step may begin; nil means at once.
	Begin <-chan struct{}
	// Source has the rows of a table that peers of this process share; if nil, the peer opens them.
	Source *rows.Source
	// Stay is called with the result of a peer that has left the run. The dashboard answers until
	// Stay returns, and show makes it show the figures of a result. If nil, the peer ends at once.
	Stay func(done result.Share, show func(result.Result))
}
