package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// refusal is an answer that will not be another one next time.
type refusal struct {
	url, text string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %s: try another place with --from", r.url, r.text)
}

// errStalled: the server sends nothing.
var errStalled = errors.New("the server has sent nothing for too long")

// download is a file from one place.
type download struct {
	*fetcher
	publicFile
	url, part string
}

// attempt makes one request for what is missing of the file, and appends what comes
// to the part that is there. The error is a *refusal if it is no use to ask again,
// an *fs.PathError if the disk will not have it, and otherwise one of the network.
func (d download) attempt(ctx context.Context) (received int64, err error) {
	out, err := os.OpenFile(d.part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	offset, err := out.Seek(0, io.SeekEnd)
	if err == nil && offset > d.Bytes {
		offset, err = 0, restart(out)
	}
	if err != nil || offset == d.Bytes {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(d.patience, func() { cancel(errStalled) })
	defer stall.Stop()
	answer, err := d.ask(ctx, offset)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer answer.Body.Close()
	if offset, err = d.place(answer, out, offset); err != nil {
		return 0, err
	}
	received, err = d.copy(out, &heartbeat{answer.Body, stall, d.patience}, offset)
	if err == nil && offset+received > d.Bytes {
		return received, errors.Join(&refusal{d.url, fmt.Sprintf("it sends more than the %d bytes of the original", d.Bytes)}, restart(out))
	}
	return received, cause(ctx, err)
}

// cause is why a context ended, if that is what an error is about.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// ask requests a file from an offset on.
func (d download) ask(ctx context.Context, offset int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "gossipnode")
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	return d.client.Do(request)
}

// place sees to it that the answer goes where it belongs in the file, which is at
// the start if the server cannot resume.
func (d download) place(answer *http.Response, out *os.File, offset int64) (int64, error) {
	first, whole := extent(answer)
	switch code := answer.StatusCode; {
	case code == http.StatusOK || code == http.StatusPartialContent:
		if whole >= 0 && whole != d.Bytes {
			return 0, &refusal{d.url, fmt.Sprintf("it has %d bytes, the original %d", whole, d.Bytes)}
		}
		if first == offset {
			return offset, nil
		}
		if first == 0 {
			return 0, restart(out)
		}
		return 0, errors.Join(fmt.Errorf("%s: asked for what follows byte %d, it sends what follows byte %d", d.url, offset, first), restart(out))
	case code == http.StatusRequestedRangeNotSatisfiable:
		return 0, errors.Join(fmt.Errorf("%s: asked for what follows byte %d: %s", d.url, offset, answer.Status), restart(out))
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return 0, fmt.Errorf("%s: %s", d.url, answer.Status)
	}
	return 0, &refusal{d.url, answer.Status}
}

// extent is the first byte of the file that an answer has, and the size of the
// whole file; -1 for what it does not say.
func extent(answer *http.Response) (first, whole int64) {
	if answer.StatusCode != http.StatusPartialContent {
		return 0, answer.ContentLength
	}
	var last int64
	text := answer.Header.Get("Content-Range")
	if _, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &whole); err == nil {
		return first, whole
	}
	if _, err := fmt.Sscanf(text, "bytes %d-%d/*", &first, &last); err == nil {
		return first, -1
	}
	return -1, -1
}

// restart empties a file.
func restart(out *os.File) error {
	if err := out.Truncate(0); err != nil {
		return err
	}
	_, err := out.Seek(0, io.SeekStart)
	return err
}

// copy appends what comes, up to one byte more than there should be, and tells of
// every tenth.
func (d download) copy(out *os.File, from io.Reader, offset int64) (received int64, err error) {
	const tenths, pieceSize = 10, 1 << 16
	piece := make([]byte, pieceSize)
	for {
		done := (offset + received) * tenths / d.Bytes
		n, err := from.Read(piece[:min(pieceSize, d.Bytes+1-offset-received)])
		if _, failed := out.Write(piece[:n]); failed != nil {
			return received, failed
		}
		received += int64(n)
		have := offset + received
		if now := have * tenths / d.Bytes; now > done {
			d.tell(fmt.Sprintf("%s: %d %% of %s", d.Name, 100/tenths*now, cli.Size(uint64(d.Bytes))))
		}
		switch {
		case have > d.Bytes, err == io.EOF && have == d.Bytes:
			return received, nil
		case err == io.EOF:
			return received, fmt.Errorf("the connection ended after %d of %d bytes: %w", have, d.Bytes, io.ErrUnexpectedEOF)
		case err != nil:
			return received, fmt.Errorf("after %d of %d bytes: %w", have, d.Bytes, err)
		}
	}
}

// heartbeat puts a timer off whenever something comes.
type heartbeat struct {
	from  io.Reader
	timer *time.Timer
	every time.Duration
}

func (h *heartbeat) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if n > 0 {
		h.timer.Reset(h.every)
	}
	return n, err
}
