// Package learn has learners that train by sums over a flock: each member brings sums over
// its own rows, and all get the same totals. So all get the same model, which is, up to
// rounding, the model that one machine with all rows would have made.
//
// Task leads from rows to a model. All members of a flock (a table.Flock such as *peer.Node or *peer.Peer) call it
// with the same settings, once all are present (WaitMembers):
//
//	fitted, err := learn.Task{Plan: plan, Learner: &learn.Logistic{}}.Fit(ctx, table.Scope(node, "fit"), rows)
//
// Each sum has a name that is used once in a run: use two scopes (table.Scope) for two calls. Evaluate does not check
// that all members have the same model: use table.AgreeSettings for that.
package learn
