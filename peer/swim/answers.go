package swim

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// maxQuestions bounds the pings that are remembered: those of the few seconds that
// memberlist waits for an answer are a third of it, with all probes for others that a peer
// makes.
const maxQuestions = 1024

// question is a number of memberlist's that was sent to a peer, in a ping or in the wish
// that it ping another.
type question struct {
	number uint64
	to     seam.PeerID
}

// questions are those that are open. memberlist takes an answer for what its number says,
// whoever sends it, and numbers in order: anybody could answer for the dead.
type questions struct {
	open *lru.Cache[question, struct{}]
}

func newQuestions() questions {
	open, err := lru.New[question, struct{}](maxQuestions)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return questions{open}
}

// sent looks at a packet of memberlist's for questions.
func (q questions) sent(packet []byte, to seam.PeerID) {
	messages, _ := messagesOf(packet)
	for _, raw := range messages {
		if len(raw) == 0 || raw[0] != messagePing && raw[0] != messageIndirectPing {
			continue
		}
		if m, _, err := readFields(raw[1:], shapes[raw[0]]); err == nil {
			q.open.Add(question{m.numbers[fieldSeqNo], to}, struct{}{})
		}
	}
}

func (q questions) asked(peer seam.PeerID, number uint64) bool {
	return q.open.Contains(question{number, peer})
}
