package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// content is what a file of a test's data set holds.
func content(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func publicFileOf(name string, data []byte) publicFile {
	sum := sha256.Sum256(data)
	return publicFile{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// mirrorOf serves one file as handle says.
func mirrorOf(t *testing.T, handle http.HandlerFunc) (base string) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// serve answers as servers do, with ranges.
func serve(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// testFetcher waits for nothing.
func testFetcher(t *testing.T, dir string) (f *fetcher, said *strings.Builder) {
	t.Helper()
	said = new(strings.Builder)
	f = newFetcher(dir, func(line string) { fmt.Fprintln(said, line) })
	f.pause = func(context.Context, time.Duration) {}
	t.Cleanup(f.client.CloseIdleConnections)
	return f, said
}

func mustHold(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v, want %d others", path, len(got), err, len(want))
	}
}

func mustBeMissing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

// TestFetch shows that files come whole, into a folder that is made, and only once.
func TestFetch(t *testing.T) {
	one, two := content(1, 300_000), content(2, 70)
	requests := 0
	base := mirrorOf(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		serve(map[string][]byte{"/one": one, "/two": two}[r.URL.Path])(w, r)
	})
	dir := filepath.Join(t.TempDir(), "a", "b")
	set := publicSet{name: "test", bases: []string{base}, files: []publicFile{publicFileOf("one", one), publicFileOf("two", two)}}
	f, said := testFetcher(t, dir)
	for _, want := range []int64{300_070, 0} {
		if n, err := f.fetch(t.Context(), set); err != nil || n != want {
			t.Fatalf("%d bytes came, %v, want %d", n, err, want)
		}
		mustHold(t, filepath.Join(dir, "one"), one)
		mustHold(t, filepath.Join(dir, "two"), two)
	}
	if requests != 2 {
		t.Errorf("%d requests, want 2: what is there is not to be fetched", requests)
	}
	mustBeMissing(t, filepath.Join(dir, "one"+partSuffix))
	for _, line := range []string{"one: 100 % of 300 kB", "two is there and verified", "one is there already"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("not said: %q in\n%s", line, said)
		}
	}
}

// TestFetchResumes shows that a download that is cut off goes on where it was, in
// the same command and in the next one, and starts again where a server cannot.
func TestFetchResumes(t *testing.T) {
	data := content(1, 500_000)
	file := publicFileOf("one", data)
	cut := func(w http.ResponseWriter, r *http.Request) { // after 40,000 bytes, whatever was asked for
		var from int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
			w.Header().Set("Content-Length", fmt.Sprint(len(data)-from))
			w.WriteHeader(http.StatusPartialContent)
		} else {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		}
		_, _ = w.Write(data[from:min(from+40_000, len(data))])
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		part   []byte
		want   int64
	}{
		"cut off, again and again":    {cut, nil, 500_000},
		"a part is there":             {serve(data), data[:123_456], 500_000 - 123_456},
		"all of the part is there":    {serve(data), data, 0},
		"the part is too long":        {serve(data), append(bytes.Clone(data), 1), 500_000},
		"no ranges":                   {func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(data) }, data[:123_456], 500_000},
		"another range than asked":    {anotherRange(data), data[:123_456], 500_000},
		"range not satisfiable, once": {once(http.StatusRequestedRangeNotSatisfiable, serve(data)), data[:123_456], 500_000},
		"busy, once":                  {once(http.StatusServiceUnavailable, serve(data)), data[:100_000], 400_000},
		"too many requests, once":     {once(http.StatusTooManyRequests, serve(data)), nil, 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := testFetcher(t, t.TempDir())
			path := filepath.Join(f.dir, file.Name)
			if c.part != nil {
				if err := os.WriteFile(path+partSuffix, c.part, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n, err := f.get(t.Context(), file, []string{mirrorOf(t, c.handle)})
			if err != nil || n != c.want {
				t.Errorf("%d bytes came, %v, want %d", n, err, c.want)
			}
			mustHold(t, path, data)
			mustBeMissing(t, path+partSuffix)
		})
	}
}

// once answers the first request with a code.
func once(code int, then http.HandlerFunc) http.HandlerFunc {
	var asked atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if !asked.Swap(true) {
			w.WriteHeader(code)
			return
		}
		then(w, r)
	}
}

// anotherRange answers a request for a part with one that begins elsewhere.
func anotherRange(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			r.Header.Set("Range", "bytes=7-")
		}
		serve(data)(w, r)
	}
}

// TestFetchFails shows how a download ends that cannot succeed: with what is wrong,
// and what is left.
func TestFetchFails(t *testing.T) {
	data := content(1, 5000)
	file := publicFileOf("one", data)
	long := append(bytes.Clone(data), 7)
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		part   []byte
		says   []string
		left   int // bytes of the part, -1 for none
	}{
		"wrong hash":     {serve(content(2, 5000)), nil, []string{"SHA-256", file.SHA256, "removed"}, -1},
		"not found":      {http.NotFound, data[:10], []string{"404 Not Found", "--from"}, 10},
		"forbidden":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, data[:10], []string{"403"}, 10},
		"another size":   {serve(long), data[:10], []string{"original 5000"}, 10},
		"a login page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, data[:10], []string{"it has 6 bytes"}, 10},
		"more and more":  {endless, nil, []string{"more than the 5000 bytes"}, 0},
		"always busy":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, data[:10], []string{"502", "given up after 6", "kept"}, 10},
		"always cut off": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, data[:10], []string{"EOF", "given up after 6"}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := testFetcher(t, t.TempDir())
			part := filepath.Join(f.dir, file.Name+partSuffix)
			if c.part != nil {
				if err := os.WriteFile(part, c.part, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := f.get(t.Context(), file, []string{mirrorOf(t, c.handle)})
			if err == nil {
				t.Fatal("no error")
			}
			for _, text := range append(c.says, "one") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v: does not say %q", err, text)
				}
			}
			mustBeMissing(t, filepath.Join(f.dir, file.Name))
			if c.left < 0 {
				mustBeMissing(t, part)
			} else if info, err := os.Stat(part); err != nil || info.Size() != int64(c.left) {
				t.Errorf("the part: %v, %v, want %d bytes", info, err, c.left)
			}
		})
	}
}

// endless sends without end, and without saying how much.
func endless(w http.ResponseWriter, r *http.Request) {
	for range 1000 {
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// TestFetchFromTheNextPlace shows that one place that refuses or fails is no reason
// to give up another.
func TestFetchFromTheNextPlace(t *testing.T) {
	data := content(1, 5000)
	file := publicFileOf("one", data)
	for name, first := range map[string]http.HandlerFunc{
		"not found": http.NotFound,
		"failing":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		f, _ := testFetcher(t, t.TempDir())
		if _, err := f.get(t.Context(), file, []string{mirrorOf(t, first), mirrorOf(t, serve(data))}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFetchStalls shows that a server that falls silent is asked again.
func TestFetchStalls(t *testing.T) {
	data := content(1, 5000)
	file := publicFileOf("one", data)
	var asked atomic.Bool
	base := mirrorOf(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Swap(true) {
			serve(data)(w, r)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f, said := testFetcher(t, t.TempDir())
	f.patience = 50 * time.Millisecond
	if n, err := f.get(t.Context(), file, []string{base}); err != nil || n != 5000 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if !strings.Contains(said.String(), errStalled.Error()) {
		t.Errorf("said:\n%s", said)
	}
}

// TestHeartbeat shows that whatever comes puts off the end of patience.
func TestHeartbeat(t *testing.T) {
	timer := time.AfterFunc(time.Hour, func() {})
	timer.Stop()
	h := &heartbeat{strings.NewReader("x"), timer, time.Hour}
	if _, err := h.Read(make([]byte, 1)); err != nil || !timer.Stop() {
		t.Errorf("something came, %v: the timer does not run", err)
	}
	if _, err := h.Read(make([]byte, 1)); err == nil || timer.Stop() {
		t.Errorf("nothing came, %v: the timer runs", err)
	}
}

// TestFetchInterrupted shows that Ctrl-C keeps what has come.
func TestFetchInterrupted(t *testing.T) {
	data := content(1, 500_000)
	file := publicFileOf("one", data)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	base := mirrorOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:300_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f, said := testFetcher(t, t.TempDir())
	f.tell = func(line string) {
		if fmt.Fprintln(said, line); strings.Contains(line, "50 %") {
			interrupt()
		}
	}
	_, err := f.get(ctx, file, []string{base})
	if !errors.Is(err, cli.ErrInterrupted) || !strings.Contains(err.Error(), "kept") {
		t.Errorf("got %v", err)
	}
	part, err := os.ReadFile(filepath.Join(f.dir, "one"+partSuffix))
	if err != nil || len(part) < 250_000 || !bytes.Equal(part, data[:len(part)]) {
		t.Errorf("the part has %d bytes, %v", len(part), err)
	}
	n, err := f.get(t.Context(), file, []string{mirrorOf(t, serve(data))})
	if err != nil || n != int64(len(data)-len(part)) {
		t.Errorf("then %d bytes came, %v", n, err)
	}
	mustHold(t, filepath.Join(f.dir, "one"), data)
}

// TestFetchOntoBadDisks shows that a disk's faults are told at once, with the path.
func TestFetchOntoBadDisks(t *testing.T) {
	data := content(1, 5000)
	file := publicFileOf("one", data)
	base := mirrorOf(t, serve(data))
	set := publicSet{name: "test", bases: []string{base}, files: []publicFile{file}}

	inTheWay := clitest.WriteFile(t, "file", "")
	f, _ := testFetcher(t, filepath.Join(inTheWay, "folder"))
	if _, err := f.fetch(t.Context(), set); err == nil || !strings.Contains(err.Error(), inTheWay) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a file in the way: %v", err)
	}
	f, _ = testFetcher(t, t.TempDir())
	if err := os.Mkdir(filepath.Join(f.dir, "one"+partSuffix), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.fetch(t.Context(), set); err == nil || !strings.Contains(err.Error(), "one"+partSuffix) {
		t.Errorf("a folder in the way: %v", err)
	}
	f, _ = testFetcher(t, t.TempDir())
	path := filepath.Join(f.dir, "one")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.fetch(t.Context(), set); err == nil || !strings.Contains(err.Error(), "not the original") {
		t.Errorf("another file of that name: %v", err)
	}
	mustHold(t, path, []byte("mine"))
	if runtime.GOOS != "linux" {
		t.Skip("no /dev/full to stand for a disk that is full")
	}
	f, said := testFetcher(t, t.TempDir())
	if err := os.Symlink("/dev/full", filepath.Join(f.dir, "one"+partSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.fetch(t.Context(), set); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "one"+partSuffix) || strings.Contains(said.String(), "trying again") {
		t.Errorf("a full disk: %v; said:\n%s", err, said)
	}
}

// TestFetchIsPrivate shows that no server can lead from HTTPS to HTTP.
func TestFetchIsPrivate(t *testing.T) {
	request := func(url string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	from := []*http.Request{request("https://a.example/x")}
	if err := stayPrivate(request("http://b.example/x"), from); err == nil {
		t.Error("led to HTTP")
	}
	if err := stayPrivate(request("https://b.example/x"), from); err != nil {
		t.Error(err)
	}
	for range 10 {
		from = append(from, from[0])
	}
	if err := stayPrivate(request("https://b.example/x"), from); err == nil {
		t.Error("led in circles")
	}
}
