package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	// maxAttempts bounds the attempts at one file.
	maxAttempts = 6
	// firstPause is the pause after the first attempt; each further pause is twice the one before.
	firstPause = time.Second
	// idleTimeout is how long a server may send nothing.
	idleTimeout = 30 * time.Second
)

// fetcher downloads the files of data sets into a folder.
type fetcher struct {
	client  *http.Client
	dir     string
	tell    func(line string)
	timeout time.Duration
	// pause waits between two attempts, or until ctx ends.
	pause func(ctx context.Context, d time.Duration)
}

func newFetcher(dir string, tell func(string)) *fetcher {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.ResponseHeaderTimeout = idleTimeout
	tr.DisableCompression = true // otherwise a server could change the bytes
	return &fetcher{client: &http.Client{Transport: tr, CheckRedirect: stayPrivate}, dir: dir, tell: tell, timeout: idleTimeout, pause: pause}
}

// stayPrivate forbids redirections from HTTPS to HTTP.
func stayPrivate(next *http.Request, via []*http.Request) error {
	const mostRedirects = 10
	if len(via) >= mostRedirects {
		return fmt.Errorf("more than %d redirects", mostRedirects)
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s, which is not private", next.URL.Redacted())
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fetch makes sure that all files of a set exist and are verified. It returns the number of bytes received over the
// network.
func (f *fetcher) fetch(ctx context.Context, set publicSet) (received int64, err error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return 0, fmt.Errorf("making the folder for %s: %w: choose another with --data", set.name, err)
	}
	whole, err := f.complete(ctx, set.result())
	if whole || err != nil {
		return 0, err
	}
	for _, file := range set.files {
		n, err := f.get(ctx, file, set.bases)
		received += n
		if err != nil {
			return received, err
		}
	}
	if len(set.members) > 0 {
		err = unpack(ctx, f, set)
	}
	return received, err
}

// complete tells whether all files exist.
func (f *fetcher) complete(ctx context.Context, files []publicFile) (bool, error) {
	whole := true
	for _, file := range files {
		there, err := f.verified(ctx, file)
		if err != nil {
			return false, err
		}
		whole = whole && there
	}
	return whole, nil
}

// verified tells whether a file exists. A different file with its name is an error, since it must not be overwritten.
func (f *fetcher) verified(ctx context.Context, file publicFile) (bool, error) {
	path := filepath.Join(f.dir, file.Name)
	sum, err := sumOf(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking whether %s is there: %w", path, err)
	case sum != file.SHA256:
		return false, fmt.Errorf("%s is there, but it is not the original (its SHA-256 is %s, not %s): move it away, or choose another folder with --data", path, sum, file.SHA256)
	}
	f.tell(path + " is there already")
	return true, nil
}

// sumOf is the SHA-256 of a file.
func sumOf(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, untilDone{ctx, file}); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// untilDone reads until its context ends; then it returns an error.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, cli.ErrInterrupted
	}
	return r.from.Read(p)
}

// get downloads one file, with several attempts at one address after the other.
func (f *fetcher) get(ctx context.Context, file publicFile, bases []string) (received int64, err error) {
	if there, err := f.verified(ctx, file); there || err != nil {
		return 0, err
	}
	bases = slices.Clone(bases)
	for attempt := 0; attempt < maxAttempts; attempt++ {
		at := attempt % len(bases)
		n, failed := f.download(ctx, file, bases[at])
		received += n
		if failed == nil {
			f.tell(filepath.Join(f.dir, file.Name) + " is there and verified")
			return received, nil
		}
		err = fmt.Errorf("fetching %s: %w", file.Name, failed)
		switch {
		case ctx.Err() != nil:
			return received, fmt.Errorf("fetching %s: %w", file.Name, cli.ErrInterrupted)
		case errors.As(failed, new(*fs.PathError)):
			return received, err
		case errors.As(failed, new(*refusal)):
			if bases = slices.Delete(bases, at, at+1); len(bases) == 0 {
				return received, err
			}
			continue
		}
		if attempt+1 < maxAttempts {
			wait := firstPause << attempt
			f.tell(fmt.Sprintf("%v; trying again in %s", err, wait))
			f.pause(ctx, wait)
		}
	}
	return received, fmt.Errorf("%w: given up after %d attempts", err, maxAttempts)
}
