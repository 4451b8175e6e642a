package history

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/stats"
)

func recorder(t *testing.T, history, trace string) (*Recorder, *observer.ObservedLogs) {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	r, err := Open(history, trace, false, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	return r, logged
}

// TestTwoPeersWriteOneFile: the lines of both are whole, in files that are begun once, and a picture is drawn of them.
func TestTwoPeersWriteOneFile(t *testing.T) {
	dir := t.TempDir()
	path, trace := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "trace.json")
	for range 2 { // the first is emptied
		if err := Begin(path, trace, false); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				r, _ := recorder(t, path, trace)
				defer r.Close()
				s := stats.Peer{Name: fmt.Sprint("peer-", i), Self: "p", Loss: math.NaN(), Members: 2}
				r.Named(s.Name, s.Self)
				r.Evaluated(0.5)
				for k := range 100 {
					s.Steps = uint64(k)
					now := time.Unix(0, int64(k)*int64(time.Second))
					r.Computed(now, now.Add(time.Millisecond))
					r.Exchanged("q", k%2 == 0, time.Millisecond)
					r.Progress(s, time.Duration(k)*time.Second, false)
				}
			})
		}
		both.Wait()
	}
	peers, spoilt, err := Read(path)
	if err != nil || spoilt != 0 || len(peers) != 2 || len(peers[0]) != 100 || len(peers[1]) != 100 || peers[1][99].Step != 99 || peers[0][3].Accuracy != 0.5 || !math.IsNaN(float64(peers[0][0].Loss)) {
		t.Errorf("%d peers, %d spoilt, %v", len(peers), spoilt, err)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var events []map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSuffix(string(text), ",\n")+"]"), &events); err != nil {
		t.Fatal(err)
	}
	count := map[any]int{}
	for _, e := range events {
		count[e["name"]]++
	}
	if count["compute"] != 200 || count["wait"] != 198 || count["exchange with q"] != 200 || count["process_name"] != 2 {
		t.Errorf("events %v", count)
	}
	for _, name := range []string{"p.png", "p.svg"} {
		var out strings.Builder
		cmd := Command(cli.Streams{Out: &out, Err: &out})
		cmd.SetArgs([]string{path, "--out", filepath.Join(dir, name), "--json"})
		if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), `"lines":200`) {
			t.Errorf("%s: %s, %v", name, out.String(), err)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 5_000 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestSpoiltLines are counted, and the others are read; so is a line that was cut, followed by a whole one.
func TestSpoiltLines(t *testing.T) {
	good := string(Line{Peer: "a", Step: 1}.Encoded())
	peers, spoilt, err := read(strings.NewReader(good + good[:20] + "\n" + "{}\n" + good + "null\n" + good[:30]))
	if err != nil || spoilt != 4 || len(peers) != 1 || len(peers[0]) != 2 {
		t.Errorf("%v, %d spoilt, %v", peers, spoilt, err)
	}
	if peers, spoilt, err := read(strings.NewReader(strings.Repeat("x", maxLength+1))); err != nil || spoilt != 1 || peers != nil {
		t.Errorf("a line without an end: %v, %d spoilt, %v", peers, spoilt, err)
	}
}

// TestATraceIsBounded: it ends after so many events, and says so.
func TestATraceIsBounded(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	r, logged := recorder(t, "", trace)
	r.Named("n", "p")
	for range MaxEvents + 10 {
		r.Exchanged("q", true, 0)
		if len(r.events) > 1<<16 {
			r.flush()
		}
	}
	r.Close()
	text, _ := os.ReadFile(trace)
	if n := strings.Count(string(text), "exchange with"); n != MaxEvents || logged.FilterMessageSnippet("full").Len() != 1 {
		t.Errorf("%d events, %d warnings", n, logged.Len())
	}
}

// TestAFullDisk costs lines, and is told once.
func TestAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	r, logged := recorder(t, "/dev/full", "")
	for k := range 3 {
		r.Progress(stats.Peer{}, time.Duration(k)*time.Minute, false)
	}
	r.Close()
	if logged.Len() != 1 {
		t.Errorf("%d warnings", logged.Len())
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none", "x"), "", true, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "--history") {
		t.Error(err)
	}
}

// FuzzRead reads any bytes as a history.
func FuzzRead(f *testing.F) {
	f.Add(string(Line{Peer: "a", Loss: 2}.Encoded()))
	f.Add(`{"peer":"b","step":-1}` + "\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		if peers, _, err := read(strings.NewReader(text)); err == nil {
			for _, lines := range peers {
				if len(lines) == 0 || lines[0].Peer == "" {
					t.Fatalf("accepted %+v", peers)
				}
			}
		}
	})
}

// TestALongLine is one that cannot be read, such as zeros where a power cut came, and the lines after it are there.
func TestALongLine(t *testing.T) {
	line := string(Line{Peer: "a"}.Encoded())
	for _, long := range []string{strings.Repeat("\x00", 3*maxLength) + line, line[:len(line)-2] + `,"files":"` + strings.Repeat("<", maxLength) + "\"}\n"} {
		peers, spoilt, err := read(strings.NewReader(line + long + line + long[:maxLength+9]))
		if err != nil || spoilt != 2 || len(peers) != 1 || len(peers[0]) != 2 {
			t.Errorf("%d peers, %d spoilt, %v", len(peers), spoilt, err)
		}
	}
}
