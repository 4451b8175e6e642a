// Package decoded keeps decoded data sets in files that only their user can read. So several jobs on one machine decode
// the same data only once. The first job that asks decodes, and jobs that ask meanwhile wait for it. Then all read one
// file, which the system's page cache holds once. After an error of this package, its caller decodes the data as it does
// without a Folder. docs/design/046 says why files are used.
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
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/filelock"
)

// DefaultLimit is the Folder.Limit of the zero value.
const DefaultLimit = 8 << 30

const (
	// patience bounds how long a job waits for another that decodes, and pause is the time between its attempts.
	patience = 10 * time.Minute
	pause    = 20 * time.Millisecond
	// locks begins the names of the 256 lock files. Recipes whose digests begin with the same byte share one.
	locks = "lock-"
)

var (
	errChanged = errors.New("the files changed while they were decoded")
	errOpen    = errors.New("others than this user have access to the folder")
)

// Folder is where decoded data is kept. Safe for concurrent use, also by several processes.
type Folder struct {
	// Dir is created if it is missing. A folder that another user owns, or may read or write, is not used.
	Dir string
	// Limit bounds the bytes of all files in Dir, 0 means DefaultLimit. The files that were unused for longest
	// are removed. A file that is being written may take up to Limit in addition.
	Limit int64

	checked sync.Map // of the files that this process has read or written, hardly more than those of its data: their fs.FileInfo
}

// OfUser is the folder in the user's cache directory (os.UserCacheDir).
func OfUser() (*Folder, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	return &Folder{Dir: filepath.Join(dir, "murmuration", "decoded")}, nil
}

// Open opens and checks the file of a recipe. If it is missing or damaged, one job calls decode to write it. Decode must
// not open files of this folder. The caller closes the file.
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
	if file, err := f.open(root, name, false); err == nil || errors.Is(err, errTooLarge) {
		return file, err
	}
	lock, err := wait(ctx, root, locks+name[:2])
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if file, err := f.open(root, name, false); err == nil || errors.Is(err, errTooLarge) {
		return file, err
	}
	if err := f.write(root, name, r, decode); err != nil {
		return nil, err
	}
	return f.open(root, name, true)
}

// open opens a file, and sets its time of last use. It checks the content unless this process has written or checked that file.
func (f *Folder) open(root *os.Root, name string, written bool) (*File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	last, known := f.checked.Load(name)
	file, err := openFile(root, name, info.Size(), written || known && os.SameFile(last.(fs.FileInfo), info) && last.(fs.FileInfo).Size() == info.Size())
	if err == nil {
		f.checked.Store(name, info)
		_ = root.Chtimes(name, time.Time{}, time.Now()) // if this fails, the file is only removed earlier
	}
	return file, err
}

// root opens and checks the folder. Through the root, later calls use this very folder, even if its path is replaced.
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

// wait waits until it can lock a lock file. The file is never removed, since another job may just have opened it.
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

// write lets decode fill a file, and gives it its final name when it is complete. It does not sync the file to disk: one
// that a power cut damages is decoded anew.
func (f *Folder) write(root *os.Root, name string, r Recipe, decode func(io.Writer) error) error {
	const partial = ".partial"
	_ = root.Remove(name + partial) // a job that was killed may have left it
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

// makeRoom removes the files that were unused for longest, until the rest is within the limit. It keeps the file fresh, which
// may look older than it is: its time comes from the clock of the file system, which is coarser than that of the other times.
func (f *Folder) makeRoom(root *os.Root, fresh string) {
	var files []fs.FileInfo
	size := int64(0)
	entries, _ := fs.ReadDir(root.FS(), ".") // files that cannot be listed stay
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
