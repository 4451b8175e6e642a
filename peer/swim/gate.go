package swim

import (
	"cmp"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// memberlist trusts every process that speaks its protocol. So it receives only what passes
// here: well-formed messages of members, and about each peer nothing beyond what that peer
// has signed. docs/design/026 has the reasons.

// cause is why something was not passed on to memberlist.
type cause uint8

const (
	passed cause = iota
	malformed
	tooMany
	notAMember
	notInPerson
	beyondSigned
	madeUp
	otherVersions
	notAsked
	causes
)

var causeNames = [causes]string{
	malformed:     "malformed",
	tooMany:       "too many",
	notAMember:    "of somebody who is no member",
	notInPerson:   "asks for an answer to somebody else",
	beyondSigned:  "beyond what the peer has signed",
	madeUp:        "about somebody who is no member",
	otherVersions: "of other versions of the protocol",
	notAsked:      "answers what was not asked",
}

const (
	// probesPerSecond and probeBurst bound the probes on behalf of one peer, and
	// allProbesPerSecond and allProbeBurst those of all: each may hold two goroutines for
	// a moment. A peer asks for three at most a second, of three others.
	probesPerSecond    = 4
	probeBurst         = 8
	allProbesPerSecond = 64
	allProbeBurst      = 128
	// When peers leave and come back, news of them overtakes the records that allow it: up
	// to ordinaryBurst at once, and one more every ordinaryEvery, need no action.
	ordinaryBurst = 8
	ordinaryEvery = 10 * time.Second
	// Further ones are logged once in beyondEvery, with their number, whatever the sender:
	// members that stood still or restarted cause them until they are back.
	beyondEvery = time.Hour
	// maxQuestions bounds the pings that are remembered: those of the few seconds that
	// memberlist waits for an answer are a third of it, with all probes for others that a
	// peer makes.
	maxQuestions = 1024
)

// question is a sequence number of memberlist that was sent to a peer, in a ping or in a
// request to ping another. memberlist matches answers by this number only, whoever sends
// them, and the numbers are consecutive: anybody could answer for a dead member.
type question struct {
	number uint64
	to     transport.PeerID
}

// gate judges messages for memberlist.
type gate struct {
	book      *book
	log       *zap.Logger
	probes    *rate.Limiter
	ordinary  *rate.Limiter                  // messages beyond what their peer has signed
	beyond    *rate.Limiter                  // warnings of more of them
	questions *lru.Cache[question, struct{}] // open ones
	kept      [causes]atomic.Uint64
}

func newGate(b *book, log *zap.Logger) *gate {
	log = cmp.Or(log, zap.NewNop())
	questions, _ := lru.New[question, struct{}](maxQuestions) // fails for sizes below one only
	return &gate{
		book: b, log: log, probes: rate.NewLimiter(allProbesPerSecond, allProbeBurst),
		ordinary: rate.NewLimiter(rate.Every(ordinaryEvery), ordinaryBurst), beyond: rate.NewLimiter(rate.Every(beyondEvery), 1), questions: questions,
	}
}

// speaker is the sender of messages.
type speaker struct {
	peer transport.PeerID
	// heeded: a member, or a peer that this one has asked.
	heeded bool
	rate   *allowance
}

func (g *gate) refuse(by transport.PeerID, why cause) {
	g.kept[why].Add(1)
	level := zap.WarnLevel
	switch {
	case why == notAMember, why == madeUp, why == notAsked, // news of members, and answers, may be late
		why == beyondSigned && (g.ordinary.Allow() || !g.beyond.Allow()):
		level = zap.DebugLevel
	}
	g.log.Log(level, "kept a message from the membership", zap.String("peer", string(by)), zap.String("reason", causeNames[why]), zap.Uint64("so_far", g.kept[why].Load()))
}

func (g *gate) refused() map[string]uint64 {
	counts := make(map[string]uint64)
	for why := range causes {
		if n := g.kept[why].Load(); n > 0 {
			counts[causeNames[why]] = n
		}
	}
	return counts
}

// sent records the questions in a packet of memberlist.
func (g *gate) sent(packet []byte, to transport.PeerID) {
	messages, _ := messagesOf(packet)
	for _, raw := range messages {
		if len(raw) == 0 || raw[0] != messagePing && raw[0] != messageIndirectPing {
			continue
		}
		if m, _, err := readFields(raw[1:], shapes[raw[0]]); err == nil {
			g.questions.Add(question{m.numbers[fieldSeqNo], to}, struct{}{})
		}
	}
}

// packet returns the part of a packet that memberlist may receive, nil if there is none.
func (g *gate) packet(packet []byte, by speaker, now time.Time) []byte {
	messages, ok := messagesOf(packet)
	if !ok {
		g.refuse(by.peer, malformed)
		return nil
	}
	if !by.rate.messages.AllowN(now, len(messages)) {
		g.refuse(by.peer, tooMany)
		return nil
	}
	good := messages[:0]
	for _, m := range messages {
		accepted, why := g.judge(m, by, now)
		if why != passed {
			g.refuse(by.peer, why)
			continue
		}
		good = append(good, accepted)
	}
	switch len(good) {
	case 0:
		return nil
	case 1:
		return good[0]
	}
	return compound(good)
}

// judge returns a message in the form that memberlist may receive.
func (g *gate) judge(raw []byte, by speaker, now time.Time) ([]byte, cause) {
	if len(raw) == 0 {
		return nil, malformed
	}
	of, known := shapes[raw[0]]
	m, rest, err := readFields(raw[1:], of)
	if !known || err != nil || len(rest) > 0 {
		return nil, malformed
	}
	node := transport.PeerID(m.texts[fieldNode])
	switch raw[0] {
	case messagePing: // an answer goes to whoever asks
		if m.text(fieldSourceNode) != string(by.peer) {
			return nil, notInPerson
		}
		return raw, passed
	case messageIndirectPing:
		return raw, g.indirectPing(&m, by, now)
	case messageAck, messageNack: // it comes from whom the question went to
		if !g.questions.Contains(question{m.numbers[fieldSeqNo], by.peer}) {
			return nil, notAsked
		}
		return raw, passed
	case messageAlive:
		return raw, g.alive(node, &m, by, now)
	case messageSuspect, messageDead:
		why := g.accusation(node, transport.PeerID(m.texts[fieldFrom]), &m, by)
		if raw[0] == messageDead && why == passed && !(m.text(fieldFrom) == string(node) && g.departed(node, by)) {
			raw = append([]byte{messageSuspect}, raw[1:]...)
		}
		return raw, why
	}
	return nil, malformed
}

// indirectPing: a member is probed for another one.
func (g *gate) indirectPing(m *message, by speaker, now time.Time) cause {
	switch {
	case !by.heeded:
		return notAMember
	case m.text(fieldSourceNode) != string(by.peer):
		return notInPerson
	case !g.book.accepts(transport.PeerID(m.texts[fieldNode])):
		return madeUp
	case !by.rate.probes.AllowN(now, 1) || !g.probes.AllowN(now, 1):
		return tooMany
	}
	return passed
}

// alive: a peer introduces itself, and members introduce others. memberlist's incarnation
// is not signed, but its ceiling is.
func (g *gate) alive(node transport.PeerID, m *message, by speaker, now time.Time) cause {
	switch {
	case !by.heeded && node != by.peer:
		return notAMember
	case !g.book.mayLive(node, m.texts[fieldMeta], uint32(m.numbers[fieldIncarnation])):
		return beyondSigned
	case !compatible(m.texts[fieldVsn]):
		return otherVersions
	case !by.heeded && !g.book.recognizes(node, m.texts[fieldMeta]) && !by.rate.introductions.AllowN(now, 1):
		return tooMany
	}
	return passed
}

// compatible tells whether a peer has the same versions of memberlist's protocol as this
// library: while a peer with others counts as alive, memberlist makes no push/pull with
// anybody.
func compatible(versions []byte) bool {
	return len(versions) == maxVersions && versions[0] <= memberlist.ProtocolVersion2Compatible && versions[1] >= memberlist.ProtocolVersion2Compatible &&
		versions[2] == memberlist.ProtocolVersion2Compatible && versions[3] == 0 && versions[5] == 0 // those of delegates
}

// accusation: a member says that another is silent, dead or gone, and who said so first,
// perhaps the other itself.
func (g *gate) accusation(node, from transport.PeerID, m *message, by speaker) cause {
	switch {
	case !by.heeded && node != by.peer:
		return notAMember
	case from != node && from != by.peer && !g.book.accepts(from):
		return notAMember
	case !g.book.mayBeAccused(node, uint32(m.numbers[fieldIncarnation])):
		return beyondSigned
	}
	return passed
}

// departed tells whether a departure is real: the peer itself or its record says so. Any
// other news of a death is a suspicion, which the accused peer can deny.
func (g *gate) departed(node transport.PeerID, by speaker) bool {
	return node == by.peer || g.book.of(node).left
}

// state judges a node in a push/pull, which it may change.
func (g *gate) state(m *message, raw []byte, by speaker, now time.Time) cause {
	node := transport.PeerID(m.texts[fieldName])
	if m.numbers[fieldState] == stateAlive {
		return g.alive(node, m, by, now)
	}
	why := g.accusation(node, node, m, by)
	if why == passed && m.numbers[fieldState] == stateLeft && !g.departed(node, by) {
		raw[m.stateAt] = stateSuspect
	}
	return why
}
