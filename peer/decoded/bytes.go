package decoded

import (
	"context"
	"io"
)

// Bytes are what decode makes by a recipe: by one job, and for the others read from the folder. Without a folder, and
// where nothing can be kept, all decode. The error is decode's.
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
