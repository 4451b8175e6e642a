package topology

import "strconv"

// PeerID identifies a peer. Two peers are the same exactly if their ids are
// equal; the empty id names nobody. A running peer's id is the text form of its
// public key; a simulated one may have any other.
type PeerID string

// Short returns the last eight characters of an id, for tables and log lines
// that a person reads. It identifies nothing securely.
func (id PeerID) Short() string {
	const kept = 8
	if len(id) <= kept {
		return string(id)
	}
	return string(id[len(id)-kept:])
}

// Fingerprint spreads an identity over 64 bits (FNV-1a).
func (id PeerID) Fingerprint() uint64 {
	return fold(fnvOffset, string(id))
}

// Role is a peer's class in the overlay. Its numbers are part of the member
// record that peers sign and publish: they never change.
type Role uint8

const (
	// Undecided is the role of a joiner until the view that it enters gives it one.
	Undecided Role = 0
	// Active peers start exchanges.
	Active Role = 1
	// Passive peers answer them.
	Passive Role = 2
)

// Valid tells whether r is one of the roles above. A record from the network may
// carry any number, and NewView takes valid ones only.
func (r Role) Valid() bool { return r <= Passive }

// String is the role's name in logs and figures.
func (r Role) String() string {
	if r.Valid() {
		return [...]string{Undecided: "undecided", Active: "active", Passive: "passive"}[r]
	}
	return "role " + strconv.Itoa(int(r))
}

// Member is what a view knows of one peer.
type Member struct {
	ID PeerID
	// Role is the present role: what the member published, or what a view decided.
	Role Role
	// Unreachable: nobody can open a stream to the member (it is behind a NAT or a
	// firewall), so it can only be active.
	Unreachable bool
	// ServesOnly: the member serves parameters to the others and does not train.
	ServesOnly bool
	// Place is where in the network the member is.
	Place Place
}

// opposite is the other class of a decided role.
func (r Role) opposite() Role {
	if r == Active {
		return Passive
	}
	return Active
}
