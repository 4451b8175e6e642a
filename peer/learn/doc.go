// Package learn has learners whose training is sums over a flock: each member brings sums
// over its own rows, all get the same totals, and so the same model, as one machine with all
// rows would have made it, up to rounding.
//
// Task is the road from rows to a model. The members of a flock, a table.Flock as *peer.Node and *peer.Peer are, call it with
// the same settings, once all are here (WaitMembers):
//
//	fitted, err := learn.Task{Plan: plan, Learner: &learn.Logistic{}}.Fit(ctx, table.Scope(node, "fit"), rows)
//
// Each sum has a name that is used once in a run: what is called twice has two scopes (table.Scope). Evaluate does not look
// whether all members have one model: table.AgreeSettings compares what each says of it.
package learn
