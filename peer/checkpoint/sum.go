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

// A checkpoint has two checksums among its metadata: of its values, and of all else that
// the header says. No single bit of a file can change unseen.

// Seal adds the checksums to metadata that are complete but for them.
func Seal(metadata map[string]string, params *tensor.Params) {
	metadata[keySum] = checksum(params.Vector())
	metadata[keyHeader] = headerSum(metadata, params.Layout())
}

// intact tells what is damaged in a file that was read. Files of other programs have no
// checksums; all are held to those they have, so that damage to the name of the format
// shows too.
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

// checksum is that of values, as the bytes of the file.
func checksum(values tensor.Vector) string { return Digest(crc32.New(castagnoli), values) }

// Digest is what a hash makes of values as float32, little-endian, in hexadecimal digits.
func Digest(of hash.Hash, values tensor.Vector) string {
	const piece = 1 << 14
	scratch := make([]byte, 0, piece*tensor.ValueSize)
	for part := range slices.Chunk(values, piece) {
		scratch = tensor.AppendBytes(scratch[:0], part)
		of.Write(scratch) // fails never
	}
	return hex.EncodeToString(of.Sum(nil))
}

// headerSum is that of what a header says: each entry of the metadata but the sum itself,
// by key, with the lengths of key and value before them, then names and shapes of the
// tensors as Layout.Hash has them.
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
