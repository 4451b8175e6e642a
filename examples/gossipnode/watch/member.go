package watch

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/control"
)

// Shown is a member's state in fields whose names programs rely on. Fields from digests are null if the member has
// sent none.
func Shown(m control.Member, now time.Time) map[string]any {
	shown := map[string]any{
		"id": m.ID, "name": m.Name, "version": m.Version, "role": m.Role.String(), "state": m.State.String(), "does": m.Does(), "rows": m.Rows, "site": m.Place.Site, "stage": m.Stage, "steps": m.Steps, "unreachable": m.Unreachable,
		"loss": cli.Number(m.Loss), "distance": cli.Number(m.ConsensusDistance), "samples": cli.Number(m.Samples), "exchanges": m.Exchanges, "failed": m.Failed,
		"last_exchange_seconds": since(m.Exchanged, now), "heard_seconds": since(m.Received, now),
	}
	if m.Received.IsZero() {
		shown["loss"], shown["samples"], shown["exchanges"], shown["failed"] = nil, nil, nil, nil
	}
	if shown["uplink_mbit"] = nil; m.Place.Uplink > 0 {
		shown["uplink_mbit"] = m.Place.Uplink.BytesPerSecond() * 8 / 1e6
	}
	if m.Exchanges == 0 {
		shown["distance"] = nil
	}
	if shown["harm"] = nil; m.Harm.Partner != "" {
		shown["harm"] = map[string]any{"partner": m.Harm.Partner, "harm": cli.Number(m.Harm.Harm), "trust": cli.Number(m.Harm.Trust)}
	}
	return shown
}

// since is the seconds since a moment; NaN if that is unknown.
func since(then, now time.Time) cli.Number {
	if then.IsZero() {
		return cli.Number(math.NaN())
	}
	return cli.Number(now.Sub(then).Seconds())
}
