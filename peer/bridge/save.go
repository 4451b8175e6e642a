package bridge

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/seed-97356399/murmuration/internal/atomicfile"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// savedMode is the mode of a file of parameters: everybody with access to the folder may read it.
const savedMode fs.FileMode = 0o644

// write saves a peer's parameters to a file, under the layout's names.
func write(path string, p *peer.Peer, layout *tensor.Layout) error {
	const remedy = "give an absolute path in a folder that the bridge may write to"
	if !filepath.IsAbs(path) {
		return refuse(CodeSave, remedy, "the path %q is not absolute", path)
	}
	values := make(tensor.Vector, layout.Len())
	_, err := p.Snapshot(values, 0)
	params, unfit := tensor.WrapParams(layout, values)
	if err := errors.Join(err, unfit); err != nil {
		return refuse(CodeSave, "", "reading the model: %v", err)
	}
	if err := atomicfile.Replace(path, savedMode, func(w io.Writer) error { return params.WriteSafetensors(w, nil) }); err != nil {
		return refuse(CodeSave, remedy, "%v", err)
	}
	return nil
}
