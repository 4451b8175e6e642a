package decoded

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
)

// Bytes returns what decode makes of a recipe. One job decodes, and the others read its result from the folder. If f is
// nil, or nothing can be kept, each job decodes. An error comes from decode, or from ctx, which ends the wait for another job.
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
		all := bytes.NewBuffer(make([]byte, 0, file.Size+bytes.MinRead))
		if _, fault = all.ReadFrom(file); fault == nil {
			return all.Bytes(), nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return decode()
}

// Value is Bytes for a value that JSON can hold.
func Value[T any](ctx context.Context, f *Folder, r Recipe, decode func() (T, error)) (value T, err error) {
	if f == nil {
		return decode()
	}
	text, err := Bytes(ctx, f, r, func() ([]byte, error) {
		made, err := decode()
		if err != nil {
			return nil, err
		}
		return json.Marshal(made)
	})
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	return value, err
}
