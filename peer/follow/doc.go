// Package follow keeps the model of a flock up with data that goes on arriving: when to train on, and on which rows.
// Each member has a channel of arriving rows. Once a second the members tell each other, by Node.Gather of package peer,
// how much they have lost by not having trained and what a training costs (Report); the same bytes give the same
// Decision to all, and all train on together, by as many steps.
//
// The two policies are those of Continuum (Tian, Yu and Wang, SoCC '18): BestEffort trains as soon as it is done with
// the last training and something new is there; CostAware once the regret that has piled up is worth the price of a
// training, which is a ski rental: in the end it has paid for trainings about what it has lost by waiting. Continuum
// counts the time that rows wait as regret. Here it is the accuracy that is missing meanwhile, measured on rows that no
// training has seen: rows that tell nothing new cost nothing.
//
// A training goes over the new rows and over a bounded Reservoir of old ones. Old rows of a class are dropped once new
// rows contradict them.
//
// Limits: a member's memory is that of MaxNew new rows, one arrival and Config.Keep old ones. What is learned is a class of each row.
// All that is lost with a member are its rows that it has not trained on. A member counts once, whatever it tells: one of k
// with news moves what is decided by 2/k of the price of a training. Begin with Run; the decisions are in policy.go.
package follow
