// Package admit decides who takes part in a run, by a list of identities, a key that all
// share, or both (docs/design/016). A Guard wraps the transport, so that only peers that
// take part can use streams, packets and topics of the run, and it checks members for the
// membership. In a hello it demands a proof of the key, and gives one.
//
// It holds no connection: the owner of the connections disconnects the peers that Watch
// reports as removed from the list.
package admit

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// LookEvery is the time between two checks of the list.
	LookEvery = 2 * time.Second

	// maxShown bounds the peers remembered to know the run's key: the last that have shown
	// it. Every stream, datagram and record of a peer shows it again.
	maxShown = 1 << 13
)

// The details in refusals; they do not reveal the list.
const (
	detailList    = "your id is not on the list here"
	detailNoProof = "no proof of the run's key"
	detailNoKey   = "the run has a key, which this peer was not given"
	detailNotAsks = "it asks for no proof of the run's key, which this peer has"
	detailFalse   = "its proof of the run's key is false"
)

// Config says who takes part in a run. Without list and key everybody does.
type Config struct {
	Run string
	// List is the file of the ids of those that may take part, and CheckID checks an id on
	// it; nil accepts all.
	List    string
	CheckID func(transport.PeerID) error
	// Key is the secret that all peers of the run share.
	Key []byte
	Log *zap.Logger
}

// Guard decides who takes part; a nil Guard admits everybody. Safe for concurrent use.
type Guard struct {
	key  runKey
	list *list // nil if every id may take part
	log  *zap.Logger
	self transport.PeerID // once over a transport
	mark []byte           // the local peer's, once over a transport

	shown   *lru.Cache[transport.PeerID, struct{}] // peers that have shown that they know the key
	streams openStreams
	look    chan struct{} // has a token when the list may have changed
}

var _ transport.Admission = (*Guard)(nil)

// New reads the list, if there is one. It returns nil if everybody may take part.
func New(c Config) (*Guard, error) {
	if c.List == "" && c.Key == nil {
		return nil, nil
	}
	g := &Guard{key: runKey{run: c.Run, secret: c.Key}, log: c.Log, look: make(chan struct{}, 1)}
	g.shown, _ = lru.New[transport.PeerID, struct{}](maxShown) // fails for sizes below one only
	if c.List == "" {
		return g, nil
	}
	var err error
	g.list, err = openList(c.List, c.CheckID)
	return g, err
}

// Over guards a transport; a nil guard leaves it as it is. It is called before anything
// but AdmitID.
func (g *Guard) Over(tr transport.Transport) transport.Transport {
	if g == nil {
		return tr
	}
	g.self = tr.Self()
	if g.keyed() {
		g.mark = g.key.mark(g.self)
	}
	if !g.list.has(g.self) {
		g.log.Warn("this peer's own id is not on its list: others with the same list do not let it take part",
			zap.String("peer", string(g.self)), zap.String("list", g.list.path))
	}
	return &guarded{Transport: tr, guard: g}
}

// OfMembers is the guard for the membership, nil if everybody may take part.
func (g *Guard) OfMembers() transport.Admission {
	if g == nil {
		return nil
	}
	return g
}

// keyed tells whether the run has a key.
func (g *Guard) keyed() bool { return g != nil && g.key.secret != nil }

// AdmitID judges an identity by the list alone.
func (g *Guard) AdmitID(id transport.PeerID) error {
	if g == nil || g.list.has(id) {
		return nil
	}
	return fmt.Errorf("peer %s is not on the list %s: add a line with its id there if it is to take part: %w", id, g.list.path, transport.ErrNotAdmitted)
}

// Mark implements transport.Admission.
func (g *Guard) Mark() []byte { return g.mark }

// Admit implements transport.Admission.
func (g *Guard) Admit(id transport.PeerID, mark []byte) error {
	if err := g.AdmitID(id); err != nil {
		return err
	}
	if g.keyed() && !hmac.Equal(g.key.mark(id), mark) {
		return fmt.Errorf("peer %s does not show that it knows the run's key: give it the same one: %w", id, transport.ErrNotAdmitted)
	}
	g.shown.Add(id, struct{}{})
	return nil
}

// TakesPart judges a peer where it cannot send a mark, by the list and by marks that it has
// sent elsewhere.
func (g *Guard) TakesPart(id transport.PeerID) error {
	if err := g.AdmitID(id); err != nil || !g.keyed() || id == g.self {
		return err
	}
	if _, ok := g.shown.Get(id); !ok {
		return fmt.Errorf("peer %s has not shown that it knows the run's key: %w", id, transport.ErrNotAdmitted)
	}
	return nil
}

// Members leaves out the records of members that are no longer admitted.
func (g *Guard) Members(records []transport.Record) []transport.Record {
	if g == nil {
		return records
	}
	kept := records[:0]
	for _, r := range records {
		if r.Peer == g.self || g.AdmitID(r.Peer) == nil {
			kept = append(kept, r)
		}
	}
	return kept
}

// Look has Watch read the list again now.
func (g *Guard) Look() {
	if g != nil {
		select {
		case g.look <- struct{}{}:
		default: // it will anyway
		}
	}
}

// Watch reads the list again whenever it changes, until the context ends. It resets the
// streams with removed peers, and calls removed with them.
func (g *Guard) Watch(ctx context.Context, removed func([]transport.PeerID)) {
	if g == nil || g.list == nil {
		return
	}
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-g.look:
		}
		gone, changed, err := g.list.reload()
		gone = slices.DeleteFunc(gone, func(id transport.PeerID) bool { return id == g.self })
		switch {
		case err != nil && err.Error() != said:
			g.log.Warn("the list of peers cannot be read: the one read before holds until that is mended", zap.Error(err))
		case changed:
			g.log.Info("the list of peers has changed", zap.Int("peers", g.list.len()), zap.Int("removed", len(gone)))
			for _, id := range gone {
				g.log.Warn("a peer has been taken off the list: it is disconnected, and no member here any more", zap.String("peer", string(id)))
				g.streams.reset(id)
			}
			removed(gone)
		}
		said = ""
		if err != nil {
			said = err.Error()
		}
	}
}

// Vet checks whether a peer that has sent a hello may take part. The reason is 0 if it may.
func (g *Guard) Vet(t *framed.Stream, hello wire.Hello) (reason wire.Reason, detail string) {
	from := t.Remote()
	if g.AdmitID(from) != nil {
		return wire.ReasonAdmission, detailList
	}
	if !g.keyed() {
		return 0, ""
	}
	own := newNonce()
	var theirs wire.Proof
	err := framed.Say(t, 0, wire.Challenge{Nonce: own})
	if err == nil {
		_, err = t.Receive(&theirs)
	}
	if err != nil {
		return wire.ReasonAdmission, detailNoProof
	}
	want := g.key.proof(labelOpener, from, g.self, hello, theirs.Nonce, own)
	if !hmac.Equal(want[:], theirs.MAC[:]) {
		return wire.ReasonAdmission, detailFalse
	}
	g.shown.Add(from, struct{}{})
	answer := wire.Proof{Nonce: own, MAC: g.key.proof(labelAcceptor, g.self, from, hello, theirs.Nonce, own)}
	if framed.Say(t, 0, answer) != nil {
		return wire.ReasonAdmission, detailNoProof
	}
	return 0, ""
}

// AwaitAnswer waits for the answer to a hello; before that it gives the proof that is demanded. A
// description of the run in the answer is decoded into described, even if a refusal follows it.
func (g *Guard) AwaitAnswer(t *framed.Stream, hello wire.Hello, welcome *wire.Welcome, described *wire.Description) error {
	header, payload, err := g.admitted(t, hello)
	if err == nil && header.Type == wire.TypeDescription {
		if err = described.Decode(payload); err == nil {
			header, payload, err = t.Await(wire.TypeWelcome)
		}
	}
	switch {
	case err != nil:
		return err
	case header.Type == wire.TypeRefuse:
		err = wire.Refused(payload)
		if r, ok := errors.AsType[*wire.Refusal](err); ok && r.Reason == wire.ReasonJoining {
			r.Awaits = header.Exchange
		}
		return err
	case header.Type == wire.TypeWelcome:
		return welcome.Decode(payload)
	}
	return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeWelcome, header.Type, wire.ErrType)
}

// admitted is the first frame of the answer to a hello, after each end has given the proof
// that the other demands.
func (g *Guard) admitted(t *framed.Stream, hello wire.Hello) (header wire.Header, payload []byte, err error) {
	header, payload, err = t.Await(wire.TypeWelcome)
	switch asked := header.Type == wire.TypeChallenge; {
	case err != nil || header.Type == wire.TypeRefuse || !asked && !g.keyed():
		return header, payload, err
	case !asked:
		return header, nil, notAdmitted(detailNotAsks)
	case !g.keyed():
		t.Refuse(0, wire.ReasonAdmission, detailNoProof)
		return header, nil, notAdmitted(detailNoKey)
	}
	var challenge wire.Challenge
	if err := challenge.Decode(payload); err != nil {
		return header, nil, err
	}
	if err := g.prove(t, hello, challenge.Nonce); err != nil {
		return header, nil, err
	}
	return t.Await(wire.TypeWelcome)
}

// prove answers a challenge, and demands the same proof from the other end.
func (g *Guard) prove(t *framed.Stream, hello wire.Hello, theirs [wire.NonceSize]byte) error {
	to, own := t.Remote(), newNonce()
	mine := wire.Proof{Nonce: own, MAC: g.key.proof(labelOpener, g.self, to, hello, own, theirs)}
	if err := framed.Say(t, 0, mine); err != nil {
		return err
	}
	var answer wire.Proof
	if _, err := t.Receive(&answer); err != nil {
		return err
	}
	want := g.key.proof(labelAcceptor, to, g.self, hello, own, theirs)
	if answer.Nonce != theirs || !hmac.Equal(want[:], answer.MAC[:]) {
		t.Refuse(0, wire.ReasonAdmission, detailFalse)
		return notAdmitted(detailFalse)
	}
	g.shown.Add(to, struct{}{})
	return nil
}

// notAdmitted is this peer's refusal of a peer that it has asked.
func notAdmitted(detail string) error {
	return &wire.Refusal{Refuse: wire.Refuse{Reason: wire.ReasonAdmission, Detail: detail}}
}
