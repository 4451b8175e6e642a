package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/tensor"
)

// fitted is a model of y = slope·x, fitted on two rows.
func fitted(t *testing.T, slope float64) learn.File {
	t.Helper()
	m, err := (&learn.Linear{}).Fit(t.Context(), table.Alone{}, learn.Rows{
		Features: &table.Batch{Rows: 2, Columns: []table.Column{{Name: "x", Numbers: []float64{0, 1}}}}, Target: []float64{0, slope},
	})
	if err != nil {
		t.Fatal(err)
	}
	return learn.File{Model: m, Target: "y", Features: []table.Field{{Name: "x"}}}
}

// told is a model of two classes that says "b" of positive x, with a probability.
func told(t *testing.T, slope float64) learn.File {
	t.Helper()
	m, err := (&learn.Logistic{}).Fit(t.Context(), table.Alone{}, learn.Rows{
		Features: &table.Batch{Rows: 4, Columns: []table.Column{{Name: "x", Numbers: []float64{-2, -1, 1, 2}}}},
		Target:   []float64{(1 - slope) / 2, (1 - slope) / 2, (1 + slope) / 2, (1 + slope) / 2}, Classes: []string{"a", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return learn.File{Model: m, Target: "y", Classes: []string{"a", "b"}, Features: []table.Field{{Name: "x"}}}
}

func write(t *testing.T, path string, f learn.File, at time.Time) {
	t.Helper()
	var text bytes.Buffer
	if err := learn.Save(&text, f); err != nil {
		t.Fatal(err)
	}
	put(t, path, text.String(), at)
}

// put writes a file whose time of change is another one, however fast the test is.
func put(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestSeveralModels(t *testing.T) {
	at := serve.Rows{Len: 1, Table: &table.Batch{Rows: 1, Columns: []table.Column{{Name: "x", Numbers: []float64{1}}}}}
	other := fitted(t, 1)
	other.Features = []table.Field{{Name: "x", Kind: table.Category}}
	elsewhere := fitted(t, 1)
	elsewhere.Target = "z"
	for _, c := range []struct {
		combine string
		files   []learn.File
		want    float64
		fault   string
	}{
		{combineAverage, []learn.File{fitted(t, 2), fitted(t, 4)}, 3, ""},
		{combineVote, []learn.File{told(t, 1), told(t, 1), told(t, -1)}, 1. / 3, ""},
		{combineVote, []learn.File{fitted(t, 1)}, 0, "votes are for classes"},
		{combineAverage, []learn.File{fitted(t, 1), told(t, 1)}, 0, "give models of one target"},
		{combineAverage, []learn.File{fitted(t, 1), elsewhere}, 0, "give models of one target"},
		{combineAverage, []learn.File{fitted(t, 1), other}, 0, `column "x" is a number of one model and a category of another`},
		{combineAverage, []learn.File{{Model: &learn.KMeansModel{}}, {Model: &learn.KMeansModel{}}}, 0, "give one --model"},
	} {
		m, err := Of("1", c.combine, c.files...)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) || cli.ExitCode(err) != cli.ExitConfig {
				t.Errorf("%s of %d: %v, want %q", c.combine, len(c.files), err, c.fault)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Predict(nil, at)
		if err != nil || math.Abs(got[0]-c.want) > 1e-6 || len(got) != m.About().Outputs {
			t.Errorf("%s of %d: %v, %v, want %v", c.combine, len(c.files), got, err, c.want)
		}
	}
}

// TestFilesThatAreReplaced: a newer file is served if it is no worse on the rows that are held out, and the one before
// again once those have changed and it is better on them. Half a file changes nothing.
func TestFilesThatAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, now := t.TempDir(), time.Now()
		model, held := filepath.Join(dir, "m.model"), filepath.Join(dir, "held.csv")
		rows := func(slope float64) string {
			text := "x,y,more\n"
			for i := range 9 {
				text += fmt.Sprintf("%d,%v,z\n", i, slope*float64(i))
			}
			return text
		}
		write(t, model, fitted(t, 1), now)
		put(t, held, rows(2), now)
		files := &modelFiles{watched{paths: []string{model}}, combineAverage}
		j := &judge{watched: watched{paths: []string{held}}}
		var holder serve.Holder
		var mutex sync.Mutex
		var heard []string
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			serve.Checks{Every: time.Second, Next: files.next, Judge: j.measure, Told: func(c serve.Checked) {
				mutex.Lock()
				defer mutex.Unlock()
				heard = append(heard, c.Decision.String())
				if c.Err != nil {
					heard[len(heard)-1] = c.Err.Error()
				}
			}}.Run(ctx, &holder)
		})
		for i, c := range []struct {
			what string
			does func(at time.Time)
			want float64 // slope that is served
			says string
		}{
			{"the first", func(time.Time) {}, 1, "swapped"},
			{"a better one", func(at time.Time) { write(t, model, fitted(t, 1.5), at) }, 1.5, "swapped"},
			{"a worse one", func(at time.Time) { write(t, model, fitted(t, 3.5), at) }, 1.5, "refused"},
			{"half a file", func(at time.Time) { put(t, model, "murmuration model 1 linear 900 ", at) }, 1.5, "m.model: "},
			{"no file", func(time.Time) { _ = os.Remove(model) }, 1.5, "no such file"},
			{"one that is back", func(at time.Time) { write(t, model, fitted(t, 1.75), at) }, 1.75, "swapped"},
			{"other rows, on which the one before is better", func(at time.Time) { put(t, held, rows(1.5), at) }, 1.5, "rolled_back"},
			{"rows that are damaged", func(at time.Time) {
				put(t, held, "x,other\n1,2\n", at)
				write(t, model, fitted(t, 1.25), at)
			}, 1.5, `"y"`},
			{"rows that are sound again", func(at time.Time) { put(t, held, rows(1.25), at) }, 1.25, "swapped"},
		} {
			c.does(now.Add(time.Duration(i+1) * time.Minute))
			if i > 0 {
				time.Sleep(time.Second)
			}
			synctest.Wait()
			mutex.Lock()
			last := heard[len(heard)-1]
			mutex.Unlock()
			got, err := holder.Served().Predict(nil, serve.Rows{Len: 1, Table: &table.Batch{Rows: 1, Columns: []table.Column{{Name: "x", Numbers: []float64{1}}}}})
			if err != nil || math.Abs(got[0]-c.want) > 1e-6 || !strings.Contains(last, c.says) {
				t.Errorf("%s: %v, %v, want %v; %q, want %q", c.what, got, err, c.want, last, c.says)
			}
		}
		stop()
		running.Wait()
	})
}

// TestWhatCannotBeRead is tried again at each look, though it is no other file.
func TestWhatCannotBeRead(t *testing.T) {
	f := &modelFiles{watched{paths: []string{t.TempDir()}}, combineAverage} // it is there, and is not read
	for range 2 {
		if m, err := f.next(t.Context()); m != nil || err == nil {
			t.Errorf("%v, %v", m, err)
		}
	}
}

// TestFigures shows what models are measured by.
func TestFigures(t *testing.T) {
	held := clitest.WriteFile(t, "held.csv", "x,y\n-1,a\n-2,a\n1,b\n2,a\n3,\n")
	for _, c := range []struct {
		file learn.File
		rows string
		want float64
		says string
	}{
		{told(t, 1), held, 0.75, ""},
		{told(t, -1), held, 0.25, ""},
		{fitted(t, 1), clitest.WriteFile(t, "n.csv", "x,y\n0,0\n1,1\n2,2\n"), 1, ""},
		{fitted(t, 1), clitest.WriteFile(t, "n.csv", "x,y\n0,0\n1,2\n2,4\n"), 1 - 5./8, ""},
		{fitted(t, 1), clitest.WriteFile(t, "n.csv", "x,y\n100000000,100000000\n100000001,100000001\n100000002,100000003\n"), 1 - 3./14, ""}, // far from 0
		{told(t, 1), clitest.WriteFile(t, "n.csv", "x,y\n1,c\n"), 0, `"c", a class`},
		{told(t, 1), clitest.WriteFile(t, "n.csv", "z,y\n1,a\n"), 0, `--held-out has to have the columns of the model, and its target "y"`},
		{learn.File{Model: told(t, 1).Model, Features: told(t, 1).Features}, held, 0, "no target"},
	} {
		m, err := Of("1", combineAverage, c.file)
		if err != nil {
			t.Fatal(err)
		}
		j := &judge{watched: watched{paths: []string{c.rows}}}
		got, err := j.measure(t.Context(), m)
		if c.says == "" && (err != nil || math.Abs(got[0]-c.want) > 1e-6) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%v %v, want %v %q", got, err, c.want, c.says)
		}
	}
}

// TestTheCommand answers at its address until it is interrupted.
func TestTheCommand(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.model")
	write(t, model, fitted(t, 2), time.Now())
	ctx, stop := context.WithCancel(t.Context())
	said, saying := io.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		o := options{models: []string{model}, listen: "127.0.0.1:0", combine: combineAverage, every: time.Second}
		if err := o.run(ctx, cli.Streams{Out: saying, Err: io.Discard}); err != nil {
			t.Error(err)
		}
		_ = saying.Close()
	})
	buffer := make([]byte, 100)
	n, err := said.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(buffer[:n]))
	if status, answer := post(t, url, ""); status != 200 || !strings.Contains(answer, `"value":4`) {
		t.Errorf("%d %s", status, answer)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	running.Wait()
	for _, o := range []options{{models: []string{model + "x"}}, {models: []string{model}, heldOut: []string{model + "x"}}, {models: []string{model}, listen: "256.0.0.1:0"}} {
		if err := o.run(t.Context(), cli.Streams{Out: io.Discard, Err: io.Discard}); cli.ExitCode(err) != cli.ExitConfig {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// post asks for the prediction of one row.
func post(t *testing.T, url, token string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/predict", strings.NewReader(`[{"x":2}]`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || !json.Valid(text) {
		t.Errorf("%s: %v", text, err)
	}
	return got.StatusCode, string(text)
}

// TestWhoMayAsk: on this machine everybody, under its own names only; elsewhere who has the token.
func TestWhoMayAsk(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	one, err := Of("1", combineAverage, fitted(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	file := clitest.WriteFile(t, "token", "0123456789abcdef\n")
	for _, c := range []struct{ address, file string }{{":0", ""}, {"127.0.0.1:0", file}, {"0.0.0.0:0", ""}} {
		s, err := Listen(c.address, c.file)
		if err != nil {
			t.Fatal(err)
		}
		s.Serve(serve.Checks{Next: func(context.Context) (serve.Model, error) { return one, nil }}, zap.NewNop(), c.file == "")
		clitest.Eventually(t, "a model is served", func() bool { return s.models.Served() != nil })
		open := c.address == ":0"
		url := strings.Replace(strings.Replace(s.URL(), "0.0.0.0", "127.0.0.1", 1), "[::]", "127.0.0.1", 1)
		for token, may := range map[string]bool{"": open, "0123456789abcdee": open, s.token: true} {
			if status, answer := post(t, url, token); (status == 200) != may || !may && status != 401 {
				t.Errorf("%s with token %q: %d %s", c.address, token, status, answer)
			}
		}
		if (s.token == "") != open || c.file != "" && s.token != "0123456789abcdef" {
			t.Errorf("%s: token %q", c.address, s.token)
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
		r.Host = "rebound.example"
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if (got.StatusCode == http.StatusMisdirectedRequest) != open {
			t.Errorf("%s under another name: %s", c.address, got.Status)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Listen("127.0.0.1:0", file+"x"); cli.ExitCode(err) != cli.ExitConfig {
		t.Errorf("no such token: %v", err)
	}
}

// TestModelsOfPictures are served from their files for rows of pixels, and measured on rows with their labels.
func TestModelsOfPictures(t *testing.T) {
	set, err := dataset.NewSet(make([]uint8, 4), []uint8{0}, dataset.Shape{Height: 2, Width: 2, Channels: 1}, 3, dataset.Normalization{Mean: 0.5, Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	model, err := nets.ByName("softmax", set.Shape(), set.Classes())
	if err != nil {
		t.Fatal(err)
	}
	params, metadata := tensor.NewParams(model.Layout()), map[string]string{"model": "softmax"}
	model.Init(1, params.Vector())
	if err := rows.About(metadata, set, nil); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := params.WriteSafetensors(&text, metadata); err != nil {
		t.Fatal(err)
	}
	files := &modelFiles{watched{paths: []string{clitest.WriteFile(t, "m.safetensors", text.String())}}, combineAverage}
	m, err := files.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var h serve.Holder
	h.Swap(m, math.NaN())
	for body, want := range map[string]string{
		"[[0,255,7,1],[0,0,0,0]]":                         `"class":"`,
		`{"pixel0":0,"pixel1":255,"pixel2":7,"pixel3":1}`: `"class":"`,
		"[[0,255,7]]":             "3 values: want 4",
		"[[0,255,7,1,1]]":         "5 values: want 4",
		"[[0,0,0,0],[0,256,0,0]]": "pixel1 of row 2 is 256",
		"[[0,0,0,null]]":          "pixel3 of row 1 is NaN",
	} {
		w := httptest.NewRecorder()
		serve.Handler(&h, "").ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/predict", strings.NewReader(body)))
		if good := strings.Contains(want, "class"); !strings.Contains(w.Body.String(), want) || (w.Code == http.StatusOK) != good || !good && w.Code/100 != 4 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	said := model.Probabilities(params.Vector(), set)
	class := slices.Index(said, slices.Max(said))
	j := &judge{watched: watched{paths: []string{clitest.WriteFile(t, "held.csv", fmt.Sprintf("label,pixel3,pixel2,pixel1,pixel0\n%d,0,0,0,0\n%d,0,0,0,0\n", class, (class+1)%3))}}}
	if figures, err := j.measure(t.Context(), m); err != nil || figures[0] != 0.5 {
		t.Errorf("%v %v", figures, err)
	}
}
