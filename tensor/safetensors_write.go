package tensor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// chunkValues is how many values are converted at a time when a file is read or written: large enough that calls cost
// little, small enough for the cache.
const chunkValues = 1 << 14

// headerAlign is the alignment of the data in the file: a reader that maps the file can use the values in place.
const headerAlign = 8

// encodeHeader returns the length word and the padded JSON. The JSON is built by
// hand because its keys stand in the layout's order.
func encodeHeader(l *Layout, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, headerAlign)) // the length word, filled in below
	b.WriteByte('{')
	if len(metadata) > 0 {
		raw := 0 // a lower bound of the length of the JSON
		for k, v := range metadata {
			if raw += len(k) + len(v); raw > maxHeader {
				return nil, headerError(raw)
			}
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("tensor: write safetensors: metadata %.64q is not UTF-8", k)
			}
		}
		text, err := json.Marshal(metadata) // sorts the keys
		if err != nil {
			return nil, fmt.Errorf("tensor: write safetensors metadata: %w", err)
		}
		fmt.Fprintf(&b, "%q:%s", reservedName, text)
	}
	for i, r := range l.ranges {
		if i > 0 || len(metadata) > 0 {
			b.WriteByte(',')
		}
		if err := appendEntry(&b, r); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	for b.Len()%headerAlign != 0 {
		b.WriteByte(' ')
	}
	header := b.Bytes()
	size := len(header) - headerAlign
	if size > maxHeader {
		return nil, headerError(size)
	}
	binary.LittleEndian.PutUint64(header, uint64(size))
	return header, nil
}

func headerError(size int) error {
	return fmt.Errorf("tensor: write safetensors: header of %d bytes or more: the limit is %d", size, maxHeader)
}

func appendEntry(b *bytes.Buffer, r Range) error {
	name, err := json.Marshal(r.Name)
	if err != nil {
		return fmt.Errorf("tensor: write safetensors name %q: %w", r.Name, err)
	}
	shape, err := json.Marshal(append([]int{}, r.Shape...)) // a list even without dimensions, never null
	if err != nil {
		return fmt.Errorf("tensor: write safetensors shape of %q: %w", r.Name, err)
	}
	fmt.Fprintf(b, `%s:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`,
		name, shape, ValueSize*r.Offset, ValueSize*(r.Offset+r.Len))
	return nil
}
