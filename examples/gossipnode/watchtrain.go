package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/dashboard"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// openDashboard takes the dashboard's address; nil without one.
func (s settings) openDashboard() (*dashboard.Server, error) {
	if s.Dashboard == "" {
		return nil, nil
	}
	return dashboard.Listen(dashboard.Config{Address: s.Dashboard, TokenFile: s.DashboardToken})
}

// show serves a dashboard of this peer, if it has one.
func (t *training) show(d *dashboard.Server) error {
	if d == nil {
		return nil
	}
	accuracy, err := dashboard.NewAccuracy(t.Model, t.data, t.peer.Snapshot)
	if err != nil {
		return err
	}
	b := dashboard.NewBoard(t.peer, dashboard.About{
		Run: t.Run, Self: string(t.peer.Self()), Dataset: t.Dataset, Model: t.Model, Codec: t.policy.Effective().Codec, Strategy: t.Strategy,
	}, accuracy, t.ruler(), t.log)
	t.board.Store(b)
	d.Serve(b, t.log)
	t.dashboard = d.URL()
	if token := d.Token(); token != "" {
		t.log.Info("others may open the dashboard with this token; it crosses the network in the clear, so put TLS or ssh before it where strangers listen",
			zap.Stringer("address", d.Addr()), zap.String("token", token))
	}
	return nil
}

// watchHooks has the dashboard, if there is one, told of what happens.
func (t *training) watchHooks(hooks *peer.Hooks) {
	if t.Dashboard == "" {
		return
	}
	counted := hooks.Exchanged
	hooks.Exchanged = func(e peer.Exchanged) {
		counted(e)
		if b := t.board.Load(); b != nil {
			b.Exchanged(e)
		}
	}
	hooks.Failed = func(partner seam.PeerID, err error) {
		if b := t.board.Load(); b != nil {
			b.Failed(partner, err)
		}
	}
	hooks.Quarantined = func(partner seam.PeerID, term time.Duration, offence error) {
		if b := t.board.Load(); b != nil {
			b.Quarantined(partner, term, offence)
		}
	}
}

// ruler speaks as the operator whose key this process has, by way of this very peer,
// which passes it on; nil if it has no such key.
func (t *training) ruler() dashboard.Ruler {
	if t.OperatorKey == "" {
		return nil
	}
	return func(ctx context.Context, commands ...peer.Command) error {
		s := controlSettings{Join: t.peer.JoinAddresses(), OperatorKey: t.OperatorKey, RunKey: t.RunKey, Run: t.Run}
		_, _, err := s.deliver(ctx, commands, t.log)
		return err
	}
}
