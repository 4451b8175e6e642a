// Package decoded keeps data sets, as they are once decoded, in files of a user's own, so that several jobs of one
// machine read and decode the same data once. The first job that asks decodes, and those that ask meanwhile wait for it;
// all read one file then, which the system's page cache holds once. An error of this package is none of its caller's,
// who decodes as without a Folder. docs/design/046 says why it is files.
package decoded

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/internal/filelock"
)

// DefaultLimit is the Folder.Limit of the zero value.
const DefaultLimit = 8 << 30

const (
	// patience bounds how long a job waits for another that decodes, and pause is how often it looks.
	patience = 10 * time.Minute
	pause    = 20 * time.Millisecond
	// locks begins the names of the 256 files that are locked: recipes whose digests begin alike share one.
	locks = "lock-"
)

var (
	errChanged = errors.New("the files changed while they were decoded")
	errOpen    = errors.New("others than this user have access to the folder")
)

// Folder is where decoded data is kept. Safe for concurrent use, also by several processes.
type Folder struct {
	// Dir is made if it is not there. One that another user owns, or may read or write, is not used.
	Dir string
	// Limit bounds the bytes of all files in it, 0 is DefaultLimit: those that were not used for longest are
	// removed. What is being written takes up to so much on top.
	Limit int64
}

// OfUser is the folder in the user's cache directory (os.UserCacheDir).
func OfUser() (*Folder, error) {
	dir, err := os.UserCacheDir()
	return &Folder{Dir: filepath.Join(dir, "murmuration", "decoded")}, err
}

// Open opens what is kept of a recipe, checked. If there is nothing, or it is damaged, decode writes it, in this job
// alone; it must not open anything of the folder. Close the file.
func (f *Folder) Open(ctx context.Context, r Recipe, decode func(io.Writer) error) (*File, error) {
	name, err := r.name()
	if err != nil {
		return nil, err
	}
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if file, err := openFile(root, name); err == nil || errors.Is(err, errTooLarge) {
		return file, err
	}
	lock, err := wait(ctx, root, locks+name[:2])
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if file, err := openFile(root, name); err == nil || errors.Is(err, errTooLarge) {
		return file, err
	}
	if err := f.write(root, name, r, decode); err != nil {
		return nil, err
	}
	return openFile(root, name)
}

// root opens the folder: what is done below it is done in the one that was looked at, whatever has its name by then.
func (f *Folder) root() (*os.Root, error) {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat("."); err != nil || !private(info) {
		return nil, errors.Join(cmp.Or(err, errOpen), root.Close())
	}
	return root, nil
}

// wait locks a file, once nobody else has. It stays: to remove it could take it from one who has just opened it.
func wait(ctx context.Context, root *os.Root, name string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for err = filelock.Try(file); errors.Is(err, filelock.ErrHeld) && ctx.Err() == nil; err = filelock.Try(file) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	if err != nil {
		return nil, errors.Join(err, ctx.Err(), file.Close())
	}
	return file, nil
}

// write has decode fill a file, and gives it its name when it is whole. It is not forced to disk: what a power cut
// damages is decoded anew.
func (f *Folder) write(root *os.Root, name string, r Recipe, decode func(io.Writer) error) error {
	const partial = ".partial"
	_ = root.Remove(name + partial) // what a job left that was killed
	out, err := root.OpenFile(name+partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(fill(out, cmp.Or(f.Limit, DefaultLimit), decode), out.Close())
	if now, fault := r.name(); err == nil && (fault != nil || now != name) {
		err = errChanged
	}
	if err == nil {
		f.makeRoom(root, name+partial)
		err = root.Rename(name+partial, name)
	} else if errors.Is(err, errTooLarge) {
		err = errors.Join(err, root.WriteFile(name, []byte(tooLarge), 0o600))
	}
	_ = root.Remove(name + partial)
	return err
}

// makeRoom removes what was not used for longest until the rest is within the limit. What is fresh stays: the clock of the
// file system, which says when it was written, is coarser than that which says when others were used.
func (f *Folder) makeRoom(root *os.Root, fresh string) {
	var files []fs.FileInfo
	size := int64(0)
	entries, _ := fs.ReadDir(root.FS(), ".") // what cannot be listed is not removed
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !strings.HasPrefix(e.Name(), locks) {
			files, size = append(files, info), size+info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if size > cmp.Or(f.Limit, DefaultLimit) && info.Name() != fresh && root.Remove(info.Name()) == nil {
			size -= info.Size()
		}
	}
}
