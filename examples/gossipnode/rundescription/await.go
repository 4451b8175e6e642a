package rundescription

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A peer that was started before the one that it is to join does not know the run: no member has described it yet. So
// it keeps asking (--join-wait). Other peers may wait for it at the same time, so it listens, and answers them with a
// number about its waiting. If all peers wait for each other, one of them has to begin: see waiting.mustBegin.
const (
	// askTimeout bounds the wait for all addresses to join together.
	askTimeout = 5 * time.Second
	askEvery   = 250 * time.Millisecond
	sayEvery   = 10 * time.Second
	// maxRefusals is how often in a row a peer asks one that refuses it, since that one may still be starting.
	maxRefusals = 20
	// circleDepth is the depth from which on peers wait in a circle: a chain that ends at an absent peer is shorter.
	circleDepth = 8
	maxDepth    = 1 << 8
)

// The number of a waiting peer has its depth plus one in the low bits. Above these it has the highest rank among
// itself and the peers that it waits for, directly or not. In a circle the peer with the highest rank begins: the
// founder, else the one with the most settings given, else a random one.
const (
	depthBits = 16
	idBits    = 39
	givenBits = 8
)

// rankOf is the rank of a process with these settings.
func rankOf(s settings.Settings, from cli.Origins, self transport.PeerID) (rank uint64) {
	for _, f := range fields() {
		if !f.local && len(chosen(from, f.flags)) > 0 {
			rank++
		}
	}
	if rank = min(rank, 1<<givenBits-1); s.Founder == string(self) {
		rank |= 1 << givenBits
	}
	id := sha256.Sum256([]byte(self))
	return rank<<idBits | binary.LittleEndian.Uint64(id[:])&(1<<idBits-1)
}

// answer is the answer of one address to join.
type answer struct {
	address string
	found   peer.Inquiry
	err     error
}

// ask asks all addresses to join for the description of the run, at the same time, until one has it.
func ask(ctx context.Context, admission peer.Admission, tr transport.Transport, s settings.Settings, log *zap.Logger) (answers []answer) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	said := make(chan answer, len(s.Join))
	for _, address := range s.Join {
		go func() {
			found, err := admission.Inquire(ctx, tr, address, s.Run, [32]byte{})
			said <- answer{address, found, err}
		}()
	}
	for range s.Join {
		a := <-said
		answers = append(answers, a)
		if len(a.found.Description.Fields) > 0 {
			cancel() // ends the other questions
			continue
		}
		log.Debug("an address to join has no description of the run", zap.String("address", a.address), zap.Error(a.err))
	}
	return answers
}

// descriptionIn returns the answer with the description of the run. refused tells that some member refuses this peer.
func descriptionIn(answers []answer, s settings.Settings, log *zap.Logger) (found peer.Inquiry, refused bool, err error) {
	for _, a := range answers {
		_, refuses := errors.AsType[*transport.RefusedError](a.err)
		refused = refused || refuses || errors.Is(a.err, transport.ErrDuplicate)
		signer := string(a.found.Signer)
		switch {
		case len(a.found.Description.Fields) == 0:
			continue
		case s.Founder == "" || signer == s.Founder:
			return a.found, false, nil
		case strings.HasSuffix(a.address, "/p2p/"+string(a.found.Peer)):
			log.Warn("another peer began the run than the token says, as the token's member reports", zap.String("token", s.Founder), zap.String("there", signer))
			return a.found, false, nil
		}
		err = cli.Usagef("the token is for a run that %s began, but the run there was begun by %s: ask for a new token", s.Founder, signer)
	}
	return found, refused, err
}

// waiting is a process that waits for a description of the run.
type waiting struct {
	id      transport.PeerID
	rank    uint64
	message atomic.Uint64 // the number that it answers with
}

// mustBegin tells whether this process is to begin: all processes that it waits for wait in a circle and it has the
// highest rank, or there is only itself. The depth of a process is one more than the least depth of those it waits
// for; one that waits for an absent process has depth 0.
func (w *waiting) mustBegin(answers []answer) (begins bool) {
	depth, highest := uint64(maxDepth), w.rank
	reached := func(address string) bool {
		return slices.ContainsFunc(answers, func(a answer) bool {
			return (a.found.Awaits > 0 || a.found.Peer == w.id) && strings.HasSuffix(address, "/p2p/"+string(a.found.Peer))
		})
	}
	for _, a := range answers {
		switch {
		case a.found.Peer == w.id || errors.Is(a.err, transport.ErrSelf) || strings.HasSuffix(a.address, "/p2p/"+string(w.id)):
		case a.found.Awaits > 0:
			depth = min(depth, a.found.Awaits&(1<<depthBits-1))
			highest = max(highest, a.found.Awaits>>depthBits)
		case !reached(a.address):
			depth = 0
		}
	}
	w.tell(depth, highest)
	return depth >= circleDepth && highest == w.rank
}

func (w *waiting) tell(depth, highest uint64) { w.message.Store(highest<<depthBits | (depth + 1)) }

// Await asks the addresses to join for the description of the run, for s.JoinWait or until a member answers without
// one, and takes it over as Join does. If no member answers, it takes the settings of the checkpoints, if there are
// any, at once. It returns the settings that it has taken over, and reports its waiting by say.
func Await(ctx context.Context, s *settings.Settings, from cli.Origins, log *zap.Logger, say func(string)) (taken []string, err error) {
	key, err := s.Lasting(log)
	if err != nil {
		return nil, cli.Config(err)
	}
	s.Identity = key
	known := s.KnownPeers()
	if _, absent := os.Stat(filepath.Dir(known)); absent != nil {
		known = "" // what is no run of this peer leaves no folder behind
	}
	tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: s.Listen, Known: known, Log: log})
	if err != nil {
		return nil, cli.ConfigOf(err, settings.Unusable...)
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	return await(ctx, tr, s, from, log, say)
}

// await is Await with a given transport.
func await(ctx context.Context, tr transport.Transport, s *settings.Settings, from cli.Origins, log *zap.Logger, say func(string)) (taken []string, err error) {
	admission, err := s.Admission(log)
	if err != nil {
		return nil, cli.Config(err)
	}
	w := &waiting{id: tr.Self(), rank: rankOf(*s, from, tr.Self())}
	w.tell(0, w.rank)
	stop, err := admission.Await(tr, s.Run, w.message.Load)
	if err != nil {
		return nil, cli.Config(err)
	}
	defer stop()
	began, said, refusals := time.Now(), time.Now(), 0
	for {
		answers := ask(ctx, admission, tr, *s, log)
		found, refused, err := descriptionIn(answers, *s, log)
		if err != nil || ctx.Err() != nil {
			return nil, cmp.Or(err, context.Cause(ctx))
		}
		if len(found.Description.Fields) == 0 {
			found.Description, found.Signed = Kept(s.Checkpoints())
			if found.Description.Run != s.Run || found.Signed.Signer == w.id && s.Founder != string(w.id) {
				found.Description = description.Description{} // or a run that began alone, with default settings
			}
		}
		if len(found.Description.Fields) > 0 {
			taken, differences, err := takeOver(s, from, found)
			return taken, cmp.Or(err, Contradiction(from, differences))
		}
		if refusals++; !refused {
			refusals = 0
		}
		waited := time.Since(began)
		if w.mustBegin(answers) || silent(answers) || refusals > maxRefusals || waited >= s.JoinWait {
			return nil, nil
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			say(fmt.Sprintf("waiting for the run: nobody at --join says what it is; asking for another %s before this peer trains alone", cli.Duration(s.JoinWait-waited)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(askEvery, s.JoinWait-waited)):
		}
	}
}

// silent tells whether some member has answered without a description: it is of an older release, or of a service
// that describes no run, or it does not admit this peer. Further questions are useless.
func silent(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool {
		refused, ok := errors.AsType[*transport.RefusedError](a.err)
		return a.err == nil || ok && refused.Why != transport.ErrUnknownRun
	})
}

// Kept is the description of the run in the newest checkpoint; it may be empty.
func Kept(in checkpoint.Folder) (d description.Description, signed description.Signed) {
	names, err := in.Names()
	if err != nil || len(names) == 0 {
		return d, signed
	}
	file, err := checkpoint.Open(filepath.Join(in.Dir, names[len(names)-1]))
	if err != nil {
		return d, signed
	}
	progress, err := file.Progress()
	if err != nil || json.Unmarshal(progress.Description.Text, &d) != nil {
		return description.Description{}, signed
	}
	return d, progress.Description
}
