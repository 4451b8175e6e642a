package bridge

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-97356399/murmuration/tensor"
)

// memory is P, the values that are shared with the trainer. A file that cannot shrink is
// mapped. Any other is read and written at each commit, since access to a mapped page that
// the file no longer has would end the process.
type memory struct {
	values tensor.Vector // the mapping, or a copy
	file   *os.File      // nil if values is the mapping
	own    bool          // this bridge opened the file and closes it
	unmap  func() error
	buffer []byte
}

// bytesAtOnce is how much of a file is read or written by one call.
const bytesAtOnce = 256 << 10

const memoryRemedy = "give a file of 4 bytes for each value, at best a memfd sealed against shrinking"

// openMemory opens the memory at path, or else uses the file that came with the connection.
func openMemory(path string, handed *os.File, values int) (_ *memory, err error) {
	m := &memory{file: handed}
	if path != "" {
		if m.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
			return nil, refuse(CodeMemory, memoryRemedy, "opening the memory: %v", err)
		}
		m.own = true
	}
	if m.file == nil {
		return nil, refuse(CodeMemory, memoryRemedy, "there is no memory: hello names no file, and no descriptor came with it")
	}
	if err := m.check(values); err != nil {
		m.close()
		return nil, err
	}
	if m.mapIn(values) {
		return m, nil
	}
	m.values, m.buffer = make(tensor.Vector, values), make([]byte, min(bytesAtOnce, tensor.ValueSize*values))
	return m, nil
}

// check refuses a file that cannot hold so many values, before anything is allocated for them.
func (m *memory) check(values int) error {
	info, err := m.file.Stat()
	switch {
	case err != nil:
		return refuse(CodeMemory, memoryRemedy, "looking at the memory: %v", err)
	case !info.Mode().IsRegular():
		return refuse(CodeMemory, memoryRemedy, "the memory is no file but %s", info.Mode().Type())
	case info.Size()/tensor.ValueSize < int64(values):
		return refuse(CodeMemory, memoryRemedy, "the memory has %d bytes, and %d values need %d", info.Size(), values, tensor.ValueSize*int64(values))
	}
	return nil
}

// mapIn maps the file, if it cannot shrink and its mapping can serve as float32 values.
func (m *memory) mapIn(values int) bool {
	content, unmap, ok := mapSealed(m.file, tensor.ValueSize*values)
	if !ok {
		return false
	}
	if m.values, ok = tensor.View(content); !ok {
		_ = unmap() // load reads the file instead
		return false
	}
	m.unmap = unmap
	return true
}

// load copies the trainer's values from the file into values.
func (m *memory) load() error {
	if m.unmap != nil {
		return nil
	}
	for done := 0; done < len(m.values); {
		piece := m.values[done:min(done+len(m.buffer)/tensor.ValueSize, len(m.values))]
		raw := m.buffer[:tensor.ValueSize*len(piece)]
		if _, err := m.file.ReadAt(raw, int64(tensor.ValueSize*done)); errors.Is(err, io.EOF) {
			return refuse(CodeMemory, "give it back its size", "the memory has become too small: value %d is beyond its end", done)
		} else if err != nil {
			return refuse(CodeMemory, memoryRemedy, "reading the memory: %v", err)
		}
		tensor.FromBytes(piece, raw)
		done += len(piece)
	}
	return nil
}

// store writes values to the file for the trainer.
func (m *memory) store() error {
	if m.unmap != nil {
		return nil
	}
	for done := 0; done < len(m.values); {
		piece := m.values[done:min(done+len(m.buffer)/tensor.ValueSize, len(m.values))]
		raw := tensor.AppendBytes(m.buffer[:0], piece)
		if _, err := m.file.WriteAt(raw, int64(tensor.ValueSize*done)); err != nil {
			return refuse(CodeMemory, "what was committed is in the flock: start another bridge", "writing the memory: %v", err).ends()
		}
		done += len(piece)
	}
	return nil
}

func (m *memory) close() error {
	var faults []error
	if m.unmap != nil {
		faults = append(faults, m.unmap())
		m.unmap, m.values = nil, nil
	}
	if m.own {
		faults = append(faults, m.file.Close())
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("letting go of the trainer's memory: %w", err)
	}
	return nil
}
