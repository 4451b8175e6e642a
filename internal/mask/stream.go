package mask

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// streamed is how many bytes of a stream are computed at a time.
const streamed = 32 << 10

// Seed begins a stream of masks: AES-128 in counter mode, from zero.
type Seed [16]byte

// add adds factor times the stream to numbers, modulo 2^64; factor is 1 or -1.
func (s Seed) add(words []uint64, factor int) {
	block, _ := aes.NewCipher(s[:]) // fails for other sizes only
	stream := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	for buf := make([]byte, min(streamed, 8*len(words))); len(words) > 0; {
		run := words[:min(len(words), len(buf)/8)]
		words = words[len(run):]
		clear(buf)
		stream.XORKeyStream(buf, buf)
		masks := buf
		for i := range run {
			run[i] += uint64(factor) * binary.LittleEndian.Uint64(masks[:8])
			masks = masks[8:]
		}
	}
}

// Join makes the seed of a participant's second mask from its neighbours' pieces, by their ranks.
func Join(pieces [][]byte) Seed { return Seed(sum256("second", pieces...)) }

// Open subtracts the second masks of all participants from a sum.
func Open(words []uint64, seeds []byte) {
	for ; len(seeds) > 0; seeds = seeds[len(Seed{}):] {
		Seed(seeds).add(words, -1)
	}
}
