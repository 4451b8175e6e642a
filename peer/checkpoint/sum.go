package checkpoint

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// The metadata of a checkpoint have two checksums: of its values, and of the rest of the header. Any changed bit is
// detected.

// Seal adds the checksums to metadata that are complete otherwise.
func Seal(metadata map[string]string, params *tensor.Params) {
	metadata[keySum] = checksum(params.Vector())
	metadata[keyHeader] = headerSum(metadata, params.Layout())
}

// intact returns an error if a file is damaged. Files of other programs have no checksums. Each checksum that a file
// has is checked, so that damage to the name of the format is noticed too.
func intact(read *tensor.Params, metadata map[string]string) error {
	format := metadata[keyFormat]
	sealed := format == checkpointFormat
	if sum, ok := metadata[keyHeader]; (ok || sealed) && sum != headerSum(metadata, read.Layout()) {
		return errors.New("its header does not fit its checksum: the file is damaged")
	}
	if sum := metadata[keySum]; (sum != "" || sealed) && sum != checksum(read.Vector()) {
		return errors.New("its values do not fit their checksum: the file is damaged")
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the checksum of values, as bytes of the file.
func checksum(values tensor.Vector) string { return Digest(crc32.New(castagnoli), values) }

// Digest is the hash of values as little-endian float32, in hexadecimal digits.
func Digest(of hash.Hash, values tensor.Vector) string {
	const piece = 1 << 14
	scratch := make([]byte, 0, piece*tensor.ValueSize)
	for part := range slices.Chunk(values, piece) {
		scratch = tensor.AppendBytes(scratch[:0], part)
		of.Write(scratch) // never fails
	}
	return hex.EncodeToString(of.Sum(nil))
}

// headerSum is the checksum of a header: each entry of the metadata except the sum itself, by key, where the lengths
// of key and value come first; then names and shapes of the tensors as in Layout.Hash.
func headerSum(metadata map[string]string, layout *tensor.Layout) string {
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if key == keyHeader {
			continue
		}
		text = binary.LittleEndian.AppendUint64(text, uint64(len(key)))
		text = binary.LittleEndian.AppendUint64(text, uint64(len(metadata[key])))
		text = append(append(text, key...), metadata[key]...)
	}
	hash := layout.Hash()
	return fmt.Sprintf("%08x", crc32.Checksum(append(text, hash[:]...), castagnoli))
}
