package main

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// openDashboard takes the dashboard's address; nil without one.
func (s settings) openDashboard() (*dashboardServer, error) {
	if s.Dashboard == "" {
		return nil, nil
	}
	return listenDashboard(s.watchSettings)
}

// show serves a dashboard of this peer, if it has one.
func (t *training) show(d *dashboardServer) error {
	if d == nil {
		return nil
	}
	accuracy, err := newAccuracyWatch(t.Model, t.data, t.peer.Snapshot)
	if err != nil {
		return err
	}
	b := newBoard(t.peer, boardAbout{
		Run: t.Run, Self: string(t.peer.Self()), Dataset: t.Dataset, Model: t.Model, Codec: t.codecName(), Strategy: t.Strategy,
	}, accuracy, t.ruler(), t.log)
	t.board.Store(b)
	d.serve(b, t.log)
	t.dashboard = d.URL()
	if d.guard.token != "" {
		t.log.Info("others may open the dashboard with this token; it crosses the network in the clear, so put TLS or ssh before it where strangers listen",
			zap.Stringer("address", d.listener.Addr()), zap.String("token", d.guard.token))
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
			b.exchanged(e)
		}
	}
	hooks.Failed = func(partner seam.PeerID, err error) {
		if b := t.board.Load(); b != nil {
			b.failed(partner, err)
		}
	}
	hooks.Quarantined = func(partner seam.PeerID, term time.Duration, offence error) {
		if b := t.board.Load(); b != nil {
			b.quarantined(partner, term, offence)
		}
	}
}
