package sumnet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/mail"
	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// tickEvery is how often the machine checks the time while a sum is under way.
	tickEvery = time.Second
	// maxQueued bounds the frames that wait for a partner, maxWaiting their bytes. Unless the partner
	// takes none, there are the shares of one attempt, as large as this member's own data, and a few
	// messages. The largest sum has room.
	maxQueued  = 1 << 16
	maxWaiting = wire.NumberSize*sums.MaxLength + 64<<20
	// together is about how many bytes are written at once.
	together = 256 << 10
)

// Members are the members that sum.
type Members interface {
	// Records are the records of the other present members; Here tells whether one is present.
	Records() []transport.Record
	Here(transport.PeerID) bool
	// Unreachable tells whether others cannot dial this peer.
	Unreachable() bool
}

// Net makes the sums of a peer. Do is safe for concurrent use.
type Net struct {
	*requests.Requests
	flock   Members
	began   time.Time
	changed chan struct{} // holds a token if the members may have changed
	closing chan struct{} // closed by Close
	begun   chan struct{} // closed when the machine knows the members
	ended   chan struct{} // closed at the very end

	// The goroutine that receives a frame passes it to the machine itself, under a lock. A goroutine that owned the
	// machine would have to be woken for each frame, and wake the receiver again: a third of the time of a short sum.
	mu      sync.Mutex
	over    bool
	machine *sums.Machine
	waiting map[string]chan<- sums.Result

	mail    *mail.Mailbox
	running sync.WaitGroup
	once    sync.Once
}

// New makes the streams for sums of a peer; nothing happens before Begin.
func New(r *requests.Requests, flock Members) *Net {
	t := &Net{
		Requests: r, flock: flock, machine: sums.New(r.Transport.Self(), sums.Times{}), began: time.Now(),
		changed: make(chan struct{}, 1), closing: make(chan struct{}), begun: make(chan struct{}), ended: make(chan struct{}),
		waiting: make(map[string]chan<- sums.Result),
	}
	var random [32]byte
	rand.Read(random[:]) // it never fails
	keys, err := mask.NewKeys(r.Run, r.Transport, random)
	if t.machine.Keys = keys; err != nil {
		r.Log.Error("this peer makes no sums with masks: its key for them cannot be signed", zap.Error(err))
	}
	t.mail = mail.New(mail.Config{
		Requests: r, Protocol: transport.ProtocolSum, Confirmed: true, Lost: t.broken,
		Bounds: mail.Bounds{Messages: maxQueued, Bytes: maxWaiting, Batch: together, Renew: true}, // the machine retransmits what matters
	})
	return t
}

func (t *Net) now() time.Duration { return time.Since(t.began) }

// Begin begins to serve members and calls.
func (t *Net) Begin() { t.running.Go(t.loop) }

// Close gives up the sums under way, sends the waiting messages as far as partners take them
// in time, and ends all streams. It waits for all goroutines, and is idempotent.
func (t *Net) Close() {
	t.once.Do(func() { close(t.closing) })
	t.running.Wait()
}

// loop tells the machine the members and the time, until Close.
func (t *Net) loop() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	t.machine.View(t.now(), t.members())
	close(t.begun)
	for {
		select {
		case <-t.closing:
			t.end()
			return
		case <-t.changed:
			t.do(func() { t.machine.View(t.now(), t.members()) })
		case <-tick.C:
			t.do(func() {
				if t.machine.Busy() {
					t.machine.Tick(t.now())
				}
			})
		}
	}
}

// end gives up the sums under way, and waits for all senders and receivers.
func (t *Net) end() {
	t.do(func() {
		for name := range t.waiting {
			t.machine.Cancel(t.now(), name)
		}
	})
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	close(t.ended)
	t.mail.Close(context.Background())
}

// do calls what with the machine locked, and carries out the outcomes. It waits for Begin, and
// returns false after the end.
func (t *Net) do(what func()) bool {
	<-t.begun
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		what()
		t.carryOut()
	}
	return !t.over
}

// MembersChanged makes the loop read the members again. It does not wait.
func (t *Net) MembersChanged() {
	select {
	case t.changed <- struct{}{}:
	default: // it is due already
	}
}

// members are the present members, this peer included, in the order in which they coordinate sums: the same
// at all that know the same members. Members that cannot be dialled come last.
func (t *Net) members() []transport.PeerID {
	self := t.Transport.Self()
	late := map[transport.PeerID]int{}
	ids := []transport.PeerID{self}
	if t.flock.Unreachable() {
		late[self] = 1
	}
	for _, r := range t.flock.Records() {
		if r.Peer == self {
			continue
		}
		if ids = append(ids, r.Peer); r.Flags&transport.FlagUnreachable != 0 {
			late[r.Peer] = 1
		}
	}
	slices.SortFunc(ids, func(a, b transport.PeerID) int { return cmp.Or(late[a]-late[b], cmp.Compare(a, b)) })
	return ids
}

// carryOut carries out the machine's outcomes.
func (t *Net) carryOut() {
	for all := t.machine.Outcomes(); len(all) > 0; all = t.machine.Outcomes() {
		for _, o := range all {
			switch {
			case o.Result != nil:
				t.waiting[o.Result.Name] <- *o.Result // has room
				delete(t.waiting, o.Result.Name)
			case o.Message != nil:
				send(t, o.To, "", *o.Message)
			case o.Share != nil:
				if o.Share.Step == 0 && o.Share.Offset == 0 {
					t.mail.Forget(o.Share.Name) // shares of an earlier attempt, which would pile up if the partner takes none
				}
				send(t, o.To, o.Share.Name, *o.Share)
			}
		}
	}
	for _, f := range t.machine.Facts() {
		Log(t.Log, f)
	}
}

// Log logs a fact of a sum for people.
func Log(log *zap.Logger, f sums.Fact) {
	who := zap.Any("peers", f.Who)
	if len(f.Who) == 1 {
		who = zap.String("peer", string(f.Who[0])) // the log limits lines by this peer
	}
	log.Warn(f.What, zap.String("sum", f.Sum), zap.String("why", f.Why), who)
}

// send sends a member a message or a share of a sum.
func send[M wire.Message](t *Net, to transport.PeerID, sum string, message M) {
	if err := mail.Send(t.mail, to, sum, message); err != nil {
		t.Log.Error("a word of a sum cannot be sent", zap.Error(err)) // a bug here
	}
}

// Do makes a sum. It returns when the sum has ended, or ctx.
func (t *Net) Do(ctx context.Context, call sums.Call) (sums.Result, error) {
	rand.Read(call.Nonce[:])
	result := make(chan sums.Result, 1)
	twice := false
	begun := t.do(func() {
		// The caller may have waited for a member that the loop has not reported yet. Members read
		// before the lock could be older than those reported.
		t.machine.View(t.now(), t.members())
		if _, twice = t.waiting[call.Name]; !twice {
			t.waiting[call.Name] = result
			t.machine.Call(t.now(), call)
		}
	})
	switch {
	case !begun:
		return sums.Result{}, transport.ErrClosed
	case twice:
		return sums.Result{}, fmt.Errorf("sum %q is under way already", call.Name)
	}
	select {
	case r := <-result:
		return r, r.Err
	case <-t.ended:
		return sums.Result{}, transport.ErrClosed
	case <-ctx.Done():
		t.do(func() {
			if t.waiting[call.Name] == result {
				t.machine.Cancel(t.now(), call.Name)
				delete(t.waiting, call.Name)
			}
		})
	}
	select {
	case r := <-result: // the result came just before
		return r, r.Err
	default:
		return sums.Result{}, fmt.Errorf("sum %q: %w", call.Name, context.Cause(ctx))
	}
}

// broken tells the machine that messages to or from a member may be lost.
func (t *Net) broken(member transport.PeerID, err error) {
	t.Log.Debug("a stream of sums has broken", zap.String("peer", string(member)), zap.Error(err))
	t.do(func() {
		if errors.Is(err, transport.ErrUnknownProtocol) {
			t.machine.Excuse(t.now(), member)
		}
		t.machine.Broken(t.now(), member)
	})
}
