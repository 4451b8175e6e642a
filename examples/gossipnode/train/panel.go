package train

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/dashboard"
	"github.com/seed-97356399/murmuration/examples/gossipnode/operator"
	"github.com/seed-97356399/murmuration/examples/gossipnode/record"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// panel is what people see of a peer: its dashboard, if it has one, its alarms and its record.
type panel struct {
	alarms alarms
	board  atomic.Pointer[dashboard.Board] // content of the dashboard; nil without one
	url    string                          // of the dashboard
	seen   record.Recorder                 // of the run, with --record
}

// openDashboard listens on the dashboard's address; nil without one.
func openDashboard(s settings.Settings) (*dashboard.Server, error) {
	if s.Dashboard == "" {
		return nil, nil
	}
	return dashboard.Listen(dashboard.Config{Address: s.Dashboard, TokenFile: s.DashboardToken})
}

// show serves a dashboard of a peer, if it has one.
func (p *panel) show(t *training, d *dashboard.Server) error {
	if d == nil {
		return nil
	}
	accuracy, err := dashboard.NewAccuracy(t.Model, t.Sizes, t.work.Data, t.peer.Snapshot)
	if err != nil {
		return err
	}
	b := dashboard.NewBoard(t.peer, dashboard.About{
		Topology: t.Shape(),
		Run:      t.Run, Self: string(t.peer.Self()), Dataset: t.Dataset, Model: t.Model, Codec: t.policy.Effective().Codec, Strategy: t.Strategy,
		MinPeers: t.MinPeers, Digests: t.DigestEvery(), Bounds: t.bounds(),
	}, accuracy, ruler(t), t.Log)
	p.board.Store(b)
	d.Serve(b, t.Log)
	p.url = d.URL()
	if token := d.Token(); token != "" {
		t.Log.Warn("others may open the dashboard with this token; it crosses the network in the clear, so put TLS or ssh before it where strangers listen",
			zap.Stringer("address", d.Addr()), zap.String("token", token))
	}
	return nil
}

// look records what is seen of the run, and writes it at the end.
func (p *panel) look(t *training, own stats.Peer, end bool) {
	if t.Record == "" {
		return
	}
	p.seen.See(time.Now(), t.peer.Members(), own)
	if end {
		if err := p.seen.Write(t.Record); err != nil {
			t.Log.Error("the record of the run cannot be written: make room, or give another file with --record", zap.Error(err))
		}
	}
}

// subscribe passes events to the dashboard, once there is one.
func (p *panel) subscribe(hooks *peer.Hooks) {
	counted := hooks.Exchanged
	hooks.Exchanged = func(e peer.Exchanged) {
		counted(e)
		if b := p.board.Load(); b != nil {
			b.Exchanged(e)
		}
	}
	hooks.Quarantined = func(partner transport.PeerID, period time.Duration, cause error) {
		if b := p.board.Load(); b != nil {
			b.Quarantined(partner, period, cause)
		}
	}
}

// ruler sends commands as the operator whose key this process has. It sends them to this
// very peer, which passes them on. It is nil if the process has no operator's key.
func ruler(t *training) dashboard.Ruler {
	if t.OperatorKey == "" {
		return nil
	}
	return func(ctx context.Context, commands ...control.Command) error {
		o := operator.Operator{Join: t.peer.JoinAddresses(), Key: t.OperatorKey, RunKey: t.RunKey, Secret: t.Secret, Run: t.Run}
		_, _, err := o.Deliver(ctx, commands, t.Log)
		return err
	}
}
