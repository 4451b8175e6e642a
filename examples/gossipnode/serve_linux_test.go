package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/stats"
)

var serveLoad = flag.Int("serveload", 0, "times of three seconds in which TestServeWhileTraining measures /predict with training, and as many without")

// servingRun starts a peer that serves, and returns its address. The command ends with the test.
func servingRun(t *testing.T, more ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	address := fmt.Sprint("127.0.0.1:", freePorts(t, 1))
	cmd = clitest.Command(t, time.Hour, append([]string{"run", "--serve", address, "--listen", settings.Loopback, "--epochs", "1000000", "--leave-within", "1s"}, more...)...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	clitest.Eventually(t, "it serves", func() bool { return modelAt("http://"+address).Version != "" })
	return cmd, "http://" + address
}

// served is what is read of /model.
type served struct {
	Version string
	Width   int
	Step    uint64
	HeldOut float64 `json:"held_out"`
}

func modelAt(url string) (m served) {
	if answer, err := http.Get(url + "/model"); err == nil {
		defer answer.Body.Close()
		_ = json.NewDecoder(answer.Body).Decode(&m)
	}
	return m
}

// TestServeWhileTraining: a peer answers predictions of pictures while it trains, of models that get better. With
// -serveload it shows what training costs those who ask: two processes serve, one that trains and one that waits for
// others, and by turns one of them is stopped.
func TestServeWhileTraining(t *testing.T) {
	if *serveLoad == 0 {
		t.Parallel()
	}
	defer http.DefaultClient.CloseIdleConnections()
	training, url := servingRun(t, "--strategy", "alone")
	clitest.Eventually(t, "it serves what it has learned", func() bool { m := modelAt(url); return m.Step > 100 && m.HeldOut > 0.5 })
	zeros := strings.Repeat("0,", modelAt(url).Width-1)
	row := "[" + zeros + "0]"
	if status, text := predicted(t, url, "["+row+","+row+"]"); status != 200 || strings.Count(text, `"probabilities":[`) != 2 {
		t.Errorf("%d: %s", status, text)
	}
	for _, pixel := range []string{"256", "-1", "0.5", "1e30"} {
		if status, text := predicted(t, url, "["+zeros+pixel+"]"); status != 422 || !strings.Contains(text, "pixel 784 of row 1") {
			t.Errorf("a pixel of %s: %d %s", pixel, status, text)
		}
	}
	if *serveLoad > 0 {
		idle, idleURL := servingRun(t, "--min-peers", "2", "--min-peers-wait", "1h")
		stop := func(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGSTOP) }
		var with, without stats.Histogram
		for range *serveLoad {
			stop(idle)
			loadFor(t, url, row, &with)
			stop(training)
			_ = idle.Process.Signal(syscall.SIGCONT)
			loadFor(t, idleURL, row, &without)
			_ = training.Process.Signal(syscall.SIGCONT)
		}
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			t.Logf("p%v of %d with training %s, of %d without %s: %.2f times", 100*q, with.Count(), with.Quantile(q), without.Count(), without.Quantile(q), with.Quantile(q).Seconds()/without.Quantile(q).Seconds())
		}
		if with.Quantile(0.99) > 2*without.Quantile(0.99) {
			t.Error("training makes the slowest percent more than twice as slow")
		}
	}
}

// predicted asks for predictions.
func predicted(t *testing.T, url, rows string) (status int, text string) {
	t.Helper()
	answer, err := http.Post(url+"/predict", "application/json", strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(all)
}

// TestServeATable: a peer that trains on a table answers rows as they stand in the file.
func TestServeATable(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	text := "x,color,y\n"
	for i := range 600 {
		text += fmt.Sprintf("%d,%s,%d\n", i*37%101, []string{"red", "blue"}[i%2], i*37%101+40*(i%2))
	}
	_, url := servingRun(t, "--strategy", "alone", "--dataset", "csv", "--data", clitest.WriteFile(t, "rows.csv", text), "--target", "y>70")
	clitest.Eventually(t, "it serves what it has learned", func() bool { return modelAt(url).HeldOut > 0.9 })
	status, answer := predicted(t, url, `[{"x":100,"color":"blue","y":1},{"x":0,"color":"red"},[99,"blue"]]`)
	var said struct{ Predictions []struct{ Class string } }
	if err := json.Unmarshal([]byte(answer), &said); err != nil || status != 200 || fmt.Sprint(said.Predictions) != "[{y>70} {y<=70} {y>70}]" {
		t.Errorf("%d %s: %v", status, answer, err)
	}
	if status, answer := predicted(t, url, `[{"x":100}]`); status != 400 || !strings.Contains(answer, `no column \"color\"`) {
		t.Errorf("%d %s", status, answer)
	}
}

// loadFor asks for one row at a time for three seconds, 8 clients 25 times a second each, whether earlier answers have
// come or not being no matter: each measures from the moment when it meant to ask.
func loadFor(t *testing.T, url, row string, took *stats.Histogram) {
	const clients, every, window, settle = 8, 40 * time.Millisecond, 3 * time.Second, 300 * time.Millisecond
	var mutex sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for n := range clients {
		all.Go(func() {
			for i := range int(window / every) {
				due := began.Add(time.Duration(i)*every + time.Duration(n)*every/clients)
				time.Sleep(time.Until(due))
				answer, err := http.Post(url+"/predict", "application/json", strings.NewReader(row))
				if err == nil {
					_, err = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				if err != nil || answer.StatusCode != 200 {
					t.Errorf("%v, %v", answer, err)
					return
				}
				if due.Sub(began) > settle {
					mutex.Lock()
					took.Add(time.Since(due))
					mutex.Unlock()
				}
			}
		})
	}
	all.Wait()
}
