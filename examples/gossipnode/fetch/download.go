package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
)

// refusal is an answer that will be the same the next time.
type refusal struct {
	url, text string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %s: try another place with --from", r.url, r.text)
}

// errStalled: the server has sent nothing for idleTimeout.
var errStalled = errors.New("the server has sent nothing for too long")

// download downloads a file from one place, verifies it, and gives it its name. The error is a *refusal if another
// attempt there is useless, an *fs.PathError if the disk fails, and otherwise one of the network.
func (f *fetcher) download(ctx context.Context, file publicFile, base string) (received int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(f.timeout, func() { cancel(errStalled) })
	defer stall.Stop()
	url := base + file.Name
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("User-Agent", "gossipnode")
	answer, err := f.client.Do(request)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer answer.Body.Close()
	if err := checkAnswer(answer, url, file.Bytes); err != nil {
		return 0, err
	}
	from := &progressReader{from: answer.Body, stall: stall, fetcher: f, file: file}
	err = files.Replace(filepath.Join(f.dir, file.Name), 0o644, func(out io.Writer) error {
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(out, hash), io.LimitReader(from, file.Bytes+1)); err != nil {
			return err
		}
		sum := hex.EncodeToString(hash.Sum(nil))
		switch {
		case from.received > file.Bytes:
			return &refusal{url, fmt.Sprintf("it sends more than the %d bytes of the original", file.Bytes)}
		case from.received < file.Bytes:
			return fmt.Errorf("the connection ended after %d of %d bytes: %w", from.received, file.Bytes, io.ErrUnexpectedEOF)
		case sum != file.SHA256:
			return &refusal{url, fmt.Sprintf("it sends something else: its SHA-256 is %s, want %s", sum, file.SHA256)}
		}
		return nil
	})
	return from.received, cause(ctx, err)
}

// checkAnswer returns an error if an answer cannot be the file.
func checkAnswer(answer *http.Response, url string, size int64) error {
	switch code := answer.StatusCode; {
	case code == http.StatusOK && answer.ContentLength >= 0 && answer.ContentLength != size:
		return &refusal{url, fmt.Sprintf("it has %d bytes, the original %d", answer.ContentLength, size)}
	case code == http.StatusOK:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return &refusal{url, answer.Status}
}

// cause returns the cause why a context ended, if err is due to that.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// progressReader counts the bytes of a file: each read restarts the timeout, and every tenth of the file is reported.
type progressReader struct {
	from     io.Reader
	stall    *time.Timer
	fetcher  *fetcher
	file     publicFile
	received int64
}

func (a *progressReader) Read(p []byte) (int, error) {
	const tenths = 10
	n, err := a.from.Read(p)
	if n > 0 {
		a.stall.Reset(a.fetcher.timeout)
	}
	done := a.received * tenths / a.file.Bytes
	a.received += int64(n)
	if now := a.received * tenths / a.file.Bytes; now > done && now <= tenths {
		a.fetcher.tell(fmt.Sprintf("%s: %d %% of %s", a.file.Name, 100/tenths*now, cli.Size(uint64(a.file.Bytes))))
	}
	return n, err
}
