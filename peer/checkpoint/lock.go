package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/filelock"
)

// lockFile is held by the process that uses a folder of checkpoints, and says which one
// that is. It stays when the process has ended: to remove it could take it from under
// another that has just opened it.
const lockFile = ".lock"

// ErrInUse: another process has the folder.
var ErrInUse = errors.New("in use by another process")

// Lock keeps other processes from a folder. The system lets go of it when the
// process ends, in whichever way.
type Lock struct{ file *os.File }

// Lock takes the folder for this process, with ErrInUse if another has it. It is nil if the folder
// is not there, or has no name: whoever makes it locks it then. Where there are no locks it warns.
func (c Folder) Lock(log *zap.Logger) (*Lock, error) {
	if c.Dir == "" {
		return nil, nil
	}
	file, err := os.OpenFile(filepath.Join(c.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing to the checkpoint folder: %w", err)
	}
	switch err := filelock.Try(file); {
	case err == nil:
		noteHolder(file)
		return &Lock{file}, nil
	case errors.Is(err, filelock.ErrHeld):
		holder := holderOf(file)
		return nil, errors.Join(fmt.Errorf("the checkpoint folder %s is %w%s", c.Dir, ErrInUse, holder), file.Close())
	case errors.Is(err, filelock.ErrNone):
		log.Warn("the checkpoint folder cannot be locked on this file system: see to it yourself that no two processes use it", zap.String("folder", c.Dir))
		return &Lock{}, file.Close()
	default:
		return nil, errors.Join(fmt.Errorf("locking the checkpoint folder %s: %w", c.Dir, err), file.Close())
	}
}

// Make makes the folder and takes it.
func (c Folder) Make(log *zap.Logger) (*Lock, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the checkpoint folder: %w", err)
	}
	return c.Lock(log)
}

// Close gives the folder free; that of nothing does nothing.
func (l *Lock) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}

// noteHolder writes down whose lock it is, for a person; on a full disk it is not known.
func noteHolder(file *os.File) {
	text := fmt.Sprintf("pid %d", os.Getpid())
	if host, err := os.Hostname(); err == nil {
		text += " on " + host
	}
	if file.Truncate(0) == nil {
		_, _ = file.WriteAt([]byte(text+"\n"), 0)
	}
}

// holderOf is what the holder has noted, in brackets; empty if that is nothing.
func holderOf(file *os.File) string {
	const most = 300 // a pid, and the longest name of a machine
	text, err := io.ReadAll(io.NewSectionReader(file, 0, most))
	line, _, _ := strings.Cut(string(text), "\n")
	if err != nil || !strings.HasPrefix(line, "pid ") {
		return ""
	}
	return fmt.Sprintf(" (%s)", line)
}
