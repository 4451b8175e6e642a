package mask

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// Least and Most bound the participants of a masked sum: with two, each would learn the other's numbers from the
	// sum.
	Least, Most = 3, 1024
	// allPairs is up to how many participants are all neighbours.
	allPairs = 64
	// TagSize is the size of the tag that names a member in a list, in bytes.
	TagSize   = 16
	entrySize = TagSize + len(Nonce{})
)

// Nonce is drawn by a member for each sum that it calls, so that masks never repeat.
type Nonce [8]byte

// Tag is the tag of a member, TagSize bytes.
func Tag(id transport.PeerID) string { return string(sum256("tag", []byte(id))[:TagSize]) }

// Roster is the data that the participants of an attempt agree on.
type Roster struct {
	list   []byte
	digest []byte
	ring   []int // ranks in an order that depends on the digest; nil if all are neighbours
}

// NewRoster makes the roster of an attempt from its list: the exponent (see Exponent), as a little-endian int16, and
// the tag and the nonce of each participant, by rank.
func NewRoster(name string, attempt uint64, list []byte) *Roster {
	r := &Roster{list: list, digest: sum256("roster", []byte(name), binary.LittleEndian.AppendUint64(nil, attempt), list)}
	if n := len(list) / entrySize; n > allPairs {
		keys := make([][]byte, n)
		for rank := range n {
			r.ring, keys[rank] = append(r.ring, rank), sum256("ring", r.digest, binary.LittleEndian.AppendUint32(nil, uint32(rank)))
		}
		slices.SortFunc(r.ring, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	}
	return r
}

// ListSize is the size of a list of that many participants, in bytes.
func ListSize(size int) int { return 2 + size*entrySize }

// Exponent is the exponent of the largest value.
func (r *Roster) Exponent() int { return int(int16(binary.LittleEndian.Uint16(r.list))) }

// Entry is the tag and the nonce of the participant of a rank.
func (r *Roster) Entry(rank int) []byte { return r.list[ListSize(rank):ListSize(rank+1)] }

// Neighbours are the ranks with which a rank shares masks, in order: all others up to 64 participants; beyond that,
// the ⌈log₂ n⌉ on either side in the ring.
func (r *Roster) Neighbours(rank int) (ranks []int) {
	n := len(r.list) / entrySize
	if r.ring == nil {
		for other := range n {
			ranks = append(ranks, other)
		}
		return slices.Delete(ranks, rank, rank+1)
	}
	at := slices.Index(r.ring, rank)
	for i := 1; i <= bits.Len(uint(n-1)); i++ {
		ranks = append(ranks, r.ring[(at+i)%n], r.ring[(at+n-i)%n])
	}
	slices.Sort(ranks)
	return ranks
}

// sum256 hashes its purpose, and each part after its length.
func sum256(what string, parts ...[]byte) []byte {
	h := sha256.New()
	h.Write([]byte("murmuration mask " + what))
	for _, p := range parts {
		h.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(p))), p...))
	}
	return h.Sum(nil)
}
