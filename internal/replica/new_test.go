package replica

// NewInitiator makes an initiator for exchanges of a replica.
func NewInitiator(r *Replica, l *Ledger) *Initiator {
	a := new(Initiator)
	a.Use(r, l)
	return a
}

// NewResponder makes a responder for exchanges of a replica.
func NewResponder(r *Replica, l *Ledger) *Responder {
	p := new(Responder)
	p.Use(r, l)
	return p
}

// NewSender makes a sender of a replica's buffers.
func NewSender(r *Replica) *Sender {
	s := new(Sender)
	s.Use(r)
	return s
}

// NewReceiver makes a receiver into a replica's buffers.
func NewReceiver(r *Replica) *Receiver {
	p := new(Receiver)
	p.Use(r)
	return p
}
