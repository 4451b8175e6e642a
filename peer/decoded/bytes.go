package decoded

import (
	"context"
	"io"
)

// Bytes returns what decode makes of a recipe. One job decodes, and the others read its result from the folder. If f is
// nil, or nothing can be kept, each job decodes. An error comes from decode only.
func Bytes(ctx context.Context, f *Folder, r Recipe, decode func() ([]byte, error)) (content []byte, err error) {
	if f == nil {
		return decode()
	}
	made := false
	file, fault := f.Open(ctx, r, func(w io.Writer) error {
		made = true
		if content, err = decode(); err != nil {
			return err
		}
		_, fault := w.Write(content)
		return fault
	})
	if fault == nil {
		defer file.Close()
	}
	if made {
		return content, err
	}
	if fault == nil {
		content = make([]byte, file.Size)
		_, fault = io.ReadFull(file, content)
	}
	if fault != nil {
		return decode()
	}
	return content, nil
}
