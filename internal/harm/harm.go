// Package harm judges partners by what exchanges with them do to a peer's own loss. Each
// difference of a liar may keep every rule; what gives it away is that it raises, again and
// again, the loss on data that it has not seen.
//
// No row is kept for that and no loss is taken twice. A step that is made after an exchange
// comes of fresh samples, so the product of its gradient with what the exchange has moved is,
// to the first order, by how much that has raised the loss (Zeno++, Xie, Koyejo and Gupta,
// 2020, does so with a validation gradient at a server). Its sign is chance for one exchange
// with an honest partner, and is not for twenty with a liar.
//
// Judge is pure and not safe for concurrent use: package replica hands it what exchanges
// have moved and what steps do, both at the same places of the model.
//
// Limits: it takes two partners to tell one from the other, so nobody is judged by who has
// met one alone; where most partners do harm, as with data that are nothing alike, none is
// told from the others; and a partner that does harm where steps are too noisy to show it
// is found late. docs/design/042 has the rule and the figures.
package harm

import "fmt"

// Harm is what exchanges with one partner have done lately.
type Harm struct {
	Partner string
	// Harm is the mean rise of this peer's loss by an exchange with the partner, in units of
	// what one with another partner usually changes it by, up or down. It is negative where
	// exchanges help, as those of honest peers do.
	Harm float64
	// Trust is the share of the clipping bounds that the partner has, leastTrust to 1.
	Trust float64
	// Exchanges is the number of those that were judged.
	Exchanges uint64
}

// Error says why a partner is quarantined that has broken no rule.
type Error struct{ Harm }

// Error names the harm.
func (e *Error) Error() string {
	return fmt.Sprintf("its exchanges do harm: over the last of %d, each raised this peer's loss %.1f times as much as one with others changes it", e.Exchanges, e.Harm.Harm)
}
