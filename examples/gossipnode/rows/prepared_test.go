package rows

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// shareOf is all rows of a file with a text.
func shareOf(t *testing.T, text string) Share {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Share{Table: settings.Table{Data: []string{path}, Target: "y>1", Split: "row:7/10", Floor: 1, MaxValues: 3}}
	var err error
	if s.Source, err = Open(t.Context(), s.Table, true); err != nil {
		t.Fatal(err)
	}
	return s
}

// many are rows of which x has mean 4.5 and each has a name of its own.
func many(header string) string {
	var text strings.Builder
	fmt.Fprintln(&text, header)
	for i := range 100 {
		fmt.Fprintf(&text, "%d,%s,n%d,%d\n", i%10, []string{"a", "b"}[i/10%2], i, i/10%3)
	}
	return text.String()
}

// What is prepared once is the same when it is read again: rows, classes and hash.
func TestPreparedIsKept(t *testing.T) {
	share := shareOf(t, many("x,kind,name,y"))
	p, own, err := share.ForModel(t.Context(), table.Alone{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out := LeftOut(p, share.Files.Schema()); p.Rows != 70 || p.Peers != 1 || !slices.Equal(out, []string{"name"}) {
		t.Errorf("%d rows of %d peers, left out %q", p.Rows, p.Peers, out)
	}
	path := filepath.Join(t.TempDir(), "p")
	if _, err := ReadPrepared(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	var peers sync.WaitGroup
	for range 8 { // of one machine, which have prepared their rows together
		peers.Go(func() {
			if err := Save(p, path); err != nil {
				t.Error(err)
			}
		})
	}
	peers.Wait()
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("beside it there are %v, %v", left, err)
	}
	read, err := ReadPrepared(path)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := Hash(p)
	if b, _ := Hash(read); a != b || a == "" {
		t.Errorf("hash %q became %q", a, b)
	}
	here, err := share.Data(t.Context(), p, own)
	if err != nil {
		t.Fatal(err)
	}
	other := shareOf(t, many("x,kind,name,y")) // of which nothing is held yet
	if own, err = other.Take(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	there, err := other.Data(t.Context(), read, own)
	if err != nil {
		t.Fatal(err)
	}
	if here.Train.Len() != 70 || here.HeldOut.Len() != 30 || here.Total != 70 || here.Train.Fingerprint() != there.Train.Fingerprint() || here.HeldOut.Fingerprint() != there.HeldOut.Fingerprint() {
		t.Errorf("%d and %d rows; those of the file that was read differ", here.Train.Len(), here.HeldOut.Len())
	}
	again, err := share.Data(t.Context(), p, own)
	if err != nil || again.HeldOut != here.HeldOut {
		t.Errorf("peers of one process each prepare the held-out rows: %v", err)
	}
	if _, err := shareOf(t, many("x,sort,name,y")).Take(t.Context(), read); err == nil || !strings.Contains(err.Error(), `no column "kind"`) || cli.ExitCode(err) != cli.ExitConfig {
		t.Errorf("another file: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{}", string(text[:len(text)/2])} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPrepared(path); err == nil || cli.ExitCode(err) != cli.ExitConfig || !strings.Contains(err.Error(), path) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// What to do is said once, however many rooms an error goes through.
func TestRemediedOnce(t *testing.T) {
	err := Remedied(fmt.Errorf("opening x.csv: %w", read.ErrSeparator))
	if again := Remedied(err); !strings.Contains(err.Error(), "--separator") || again.Error() != err.Error() || !errors.Is(again, read.ErrSeparator) {
		t.Errorf("%v, then %v", err, again)
	}
}
