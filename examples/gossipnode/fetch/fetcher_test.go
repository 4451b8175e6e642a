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
	"strings"
	"sync/atomic"
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
	for _, line := range []string{"one: 100 % of 300 kB", "two is there and verified", "one is there already"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("not said: %q in\n%s", line, said)
		}
	}
}

// TestFetchAgain shows that a download that is cut off, or refused for the moment, begins again.
func TestFetchAgain(t *testing.T) {
	data := content(1, 500_000)
	file := publicFileOf("one", data)
	var cut atomic.Bool
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   int64
	}{
		"cut off, once": {func(w http.ResponseWriter, r *http.Request) {
			if cut.Swap(true) {
				serve(data)(w, r)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:40_000])
		}, 540_000},
		"busy, once":              {once(http.StatusServiceUnavailable, serve(data)), 500_000},
		"too many requests, once": {once(http.StatusTooManyRequests, serve(data)), 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := testFetcher(t, t.TempDir())
			n, err := f.get(t.Context(), file, []string{mirrorOf(t, c.handle)})
			if err != nil || n != c.want {
				t.Errorf("%d bytes came, %v, want %d", n, err, c.want)
			}
			mustHold(t, filepath.Join(f.dir, file.Name), data)
			mustBeAlone(t, f.dir)
		})
	}
}

// mustBeAlone fails if a folder has more than one file.
func mustBeAlone(t *testing.T, dir string) {
	t.Helper()
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("in the folder: %v, %v", all, err)
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

// TestFetchFails shows how a download ends that cannot succeed: with what is wrong, and
// nothing left.
func TestFetchFails(t *testing.T) {
	data := content(1, 5000)
	file := publicFileOf("one", data)
	long := append(bytes.Clone(data), 7)
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		says   []string
	}{
		"wrong hash":     {serve(content(2, 5000)), []string{"SHA-256", file.SHA256, "--from"}},
		"not found":      {http.NotFound, []string{"404 Not Found", "--from"}},
		"forbidden":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, []string{"403"}},
		"another size":   {serve(long), []string{"original 5000"}},
		"a login page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, []string{"it has 6 bytes"}},
		"more and more":  {endless, []string{"more than the 5000 bytes"}},
		"always busy":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, []string{"502", "given up after 6"}},
		"always cut off": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, []string{"EOF", "given up after 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := testFetcher(t, t.TempDir())
			_, err := f.get(t.Context(), file, []string{mirrorOf(t, c.handle)})
			if err == nil {
				t.Fatal("no error")
			}
			for _, text := range append(c.says, "one") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v: does not say %q", err, text)
				}
			}
			if all, err := os.ReadDir(f.dir); err != nil || len(all) > 0 {
				t.Errorf("left: %v, %v", all, err)
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
	f.timeout = 50 * time.Millisecond
	if n, err := f.get(t.Context(), file, []string{base}); err != nil || n != 6000 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if !strings.Contains(said.String(), errStalled.Error()) {
		t.Errorf("said:\n%s", said)
	}
}

// TestArrivingPutsOffTheEndOfPatience shows that whatever comes does.
func TestArrivingPutsOffTheEndOfPatience(t *testing.T) {
	timer := time.AfterFunc(time.Hour, func() {})
	timer.Stop()
	f, _ := testFetcher(t, t.TempDir())
	a := &progressReader{from: strings.NewReader("x"), stall: timer, fetcher: f, file: publicFile{Bytes: 1}}
	if _, err := a.Read(make([]byte, 1)); err != nil || !timer.Stop() {
		t.Errorf("something came, %v: the timer does not run", err)
	}
	if _, err := a.Read(make([]byte, 1)); err == nil || timer.Stop() {
		t.Errorf("nothing came, %v: the timer runs", err)
	}
}

// TestFetchInterrupted shows that Ctrl-C leaves nothing half done.
func TestFetchInterrupted(t *testing.T) {
	data := content(1, 500_000)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	base := mirrorOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:300_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f, _ := testFetcher(t, t.TempDir())
	f.tell = func(line string) {
		if strings.Contains(line, "50 %") {
			interrupt()
		}
	}
	if _, err := f.get(ctx, publicFileOf("one", data), []string{base}); !errors.Is(err, cli.ErrInterrupted) {
		t.Errorf("got %v", err)
	}
	if all, err := os.ReadDir(f.dir); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
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
	if err := os.MkdirAll(filepath.Join(f.dir, ".one.partial", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.fetch(t.Context(), set); err == nil || !strings.Contains(err.Error(), ".one.partial") {
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
