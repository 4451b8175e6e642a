package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// total is a model of the sum of a row's numbers, or the length of its text.
var total = fake{About{Kind: "total", Version: "v1", Step: 7, Width: 3, Outputs: 1}, func(dst []float64, r Rows) ([]float64, error) {
	for i := range r.Len {
		dst = append(dst, float64(r.Numbers[3*i]+r.Numbers[3*i+1]+r.Numbers[3*i+2]))
	}
	return dst, nil
}}

// serving is a handler of a model.
func serving(m Model, token string) http.Handler {
	h := new(Holder)
	if m != nil {
		h.Swap(m, 0.5)
	}
	return Handler(h, token)
}

// ask sends one request; headers are names and values.
func ask(h http.Handler, method, path string, body io.Reader, headers ...string) (status int, answer string, header http.Header) {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

func TestAnswers(t *testing.T) {
	classes := fake{About{Kind: "k", Version: "c", Width: 3, Classes: []string{"", "b"}, Outputs: 2}, func(dst []float64, r Rows) ([]float64, error) {
		return append(dst, 0.75, 0.25), nil
	}}
	points := fake{About{Kind: "p", Version: "p", Width: 3, Outputs: 2}, classes.predict}
	for _, c := range []struct {
		model              Model
		method, path, body string
		status             int
		want               string
	}{
		{total, "POST", "/predict", `[[1,2,3],[4,5,6]]`, 200, `{"version":"v1","predictions":[{"value":6},{"value":15}]}`},
		{total, "POST", "/predict", `[0,0,0]`, 200, `{"version":"v1","predictions":[{"value":0}]}`},
		{classes, "POST", "/predict", `[1,2,3]`, 200, `{"version":"c","classes":["","b"],"predictions":[{"class":"","probabilities":[0.75,0.25]}]}`},
		{points, "POST", "/predict", `[1,2,3]`, 200, `{"version":"p","predictions":[{"values":[0.75,0.25]}]}`},
		{total, "GET", "/model", "", 200, `{"kind":"total","version":"v1","step":7,"width":3,"outputs":1,"held_out":0.5,"since":"`},
		{total, "GET", "/healthz", "", 200, `{"status":"alive"}`},
		{total, "HEAD", "/healthz", "", 200, ""},
		{nil, "GET", "/healthz", "", 503, `{"error":"there is no model yet","remedy":"try again in a while"}`},
		{nil, "GET", "/model", "", 503, "no model yet"},
		{nil, "POST", "/predict", "[1]", 503, "no model yet"},
		{total, "GET", "/predict", "", 405, `use POST`},
		{total, "POST", "/model", "", 405, `use GET`},
		{total, "DELETE", "/predict", "", 405, `does not take \"DELETE\"`},
		{total, "GET", "/", "", 404, "ask for /predict"},
		{total, "POST", "/predict/", "", 404, "no such page"},
	} {
		status, answer, header := ask(serving(c.model, ""), c.method, c.path, strings.NewReader(c.body))
		if status != c.status || !strings.Contains(answer, c.want) || answer != "" && !json.Valid([]byte(answer)) {
			t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, status, answer, c.status, c.want)
		}
		if (status == 503) != (header.Get("Retry-After") != "") || (status == 405) != (header.Get("Allow") != "") || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d with %v", c.method, c.path, status, header)
		}
	}
}

func TestToken(t *testing.T) {
	h := serving(total, "secret")
	for _, path := range []string{"/predict", "/model", "/metrics", "/healthz", "/other"} {
		for _, given := range []string{"", "secret", "Bearer ", "Bearer secre", "Bearer secret ", "bearer secret", "Bearer secret"} {
			method := http.MethodGet
			if path == "/predict" {
				method = http.MethodPost
			}
			status, answer, header := ask(h, method, path, strings.NewReader("[1,2,3]"), "Authorization", given)
			free := given == "Bearer secret" || path == "/healthz" || path == "/other"
			if (status == 401) == free || (status == 401) != (header.Get("WWW-Authenticate") != "") {
				t.Errorf("%s with %q: %d %s", path, given, status, answer)
			}
		}
	}
}

// endless is JSON that does not end.
type endless struct {
	text string
	at   int
}

func endlessly(text string) *endless { return &endless{text: text} }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at%len(e.text)]
		e.at++
	}
	return len(p), nil
}

// cut is a client that goes in the middle.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestHostileBodies: each gets its answer, and the handler goes on.
func TestHostileBodies(t *testing.T) {
	fails := fake{total.about, func(_ []float64, r Rows) ([]float64, error) {
		switch r.Numbers[0] {
		case 1:
			return nil, errors.New("there is no such picture")
		case 2:
			panic("torn")
		case 3:
			return []float64{math.NaN()}, nil
		case 4:
			return []float64{math.Inf(-1)}, nil
		case 5:
			return nil, nil
		case 6:
			return []float64{math.Inf(1), math.Inf(-1)}, nil
		}
		return []float64{0}, nil
	}}
	h := serving(fails, "")
	for _, c := range []struct {
		what   string
		body   io.Reader
		kind   string
		status int
		want   string
	}{
		{"endless rows", io.MultiReader(strings.NewReader("["), endlessly("[0,0,0],")), "", 413, "at most 4096"},
		{"an endless text", io.MultiReader(strings.NewReader(`["`), endlessly("a")), "", 413, "4194304 bytes"},
		{"endless spaces", endlessly(" "), "", 413, "4194304 bytes"},
		{"endless spaces behind", io.MultiReader(strings.NewReader("[0,0,0]"), endlessly(" ")), "", 413, "4194304 bytes"},
		{"endless depth", endlessly("["), "", 400, "depth"},
		{"endless names", io.MultiReader(strings.NewReader("{"), endlessly(`"a":1,`)), "", 413, "4194304 bytes"},
		{"an endless row", io.MultiReader(strings.NewReader("["), endlessly("0,")), "", 400, "more values"},
		{"an endless row of a batch", io.MultiReader(strings.NewReader("[["), endlessly("0,")), "", 413, "4194304 bytes"},
		{"a client that goes", io.MultiReader(strings.NewReader("[0,"), cut{}), "", 400, "connection reset"},
		{"nothing", strings.NewReader(""), "", 400, "EOF"},
		{"NaN", strings.NewReader("[NaN,0,0]"), "", 400, "invalid character 'N'"},
		{"zeros", endlessly("\x00"), "", 400, "invalid"},
		{"a form", strings.NewReader("rows=1"), "application/x-www-form-urlencoded", 400, "invalid"},
		{"a form as curl sends JSON", strings.NewReader("[0,0,0]"), "application/x-www-form-urlencoded", 200, "value"},
		{"other JSON", strings.NewReader("[0,0,0]"), "application/json; charset=utf-8", 200, "value"},
		{"XML", strings.NewReader("<row/>"), "text/xml", 415, "Content-Type: application/json"},
		{"no type", strings.NewReader("[0,0,0]"), ";;", 415, "Content-Type"},
		{"an error of the model", strings.NewReader("[1,0,0]"), "", 422, "no such picture"},
		{"a panic of the model", strings.NewReader("[2,0,0]"), "", 500, "torn"},
		{"NaN of the model", strings.NewReader("[3,0,0]"), "", 500, "no number"},
		{"an infinity of the model", strings.NewReader("[4,0,0]"), "", 500, "no number"},
		{"infinities of the model whose sum is none", strings.NewReader("[[6,0,0],[6,0,0]]"), "", 500, "no number"},
		{"too little of the model", strings.NewReader("[5,0,0]"), "", 500, "no number"},
	} {
		status, answer, _ := ask(h, "POST", "/predict", c.body, "Content-Type", c.kind)
		var said fault
		if err := json.Unmarshal([]byte(answer), &said); status != c.status || !strings.Contains(answer, c.want) || err != nil || (said.Text == "" || said.Remedy == "") && status != 200 {
			t.Errorf("%s: %d %s, want %d %s", c.what, status, answer, c.status, c.want)
		}
	}
	_, text, _ := ask(h, "GET", "/metrics", nil)
	for _, want := range []string{
		`murmuration_predict_requests_total{status="200"} 2`, `murmuration_predict_requests_total{status="500"} 5`, "murmuration_predict_rows_total 2",
		"murmuration_predict_duration_seconds_count 23", "murmuration_predict_requests_running 0", `murmuration_model_checks_total{outcome="rolled_back"} 0`,
		"murmuration_model_held_out 0.5", "murmuration_model_step 7", "murmuration_model_served_seconds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestManyAtOnce: more than MaxRequests are refused with Retry-After, and those that wait for their turn in vain.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		slow := fake{total.about, func(dst []float64, r Rows) ([]float64, error) {
			<-release
			return total.predict(dst, r)
		}}
		h := serving(slow, "")
		var mutex sync.Mutex
		got := map[int]int{}
		var all sync.WaitGroup
		for range MaxRequests + 5 {
			all.Go(func() {
				status, _, header := ask(h, "POST", "/predict", strings.NewReader("[1,2,3]"))
				mutex.Lock()
				defer mutex.Unlock()
				if got[status]++; status == 503 && header.Get("Retry-After") != "1" {
					t.Errorf("refused with %v", header)
				}
			})
		}
		so := func() map[int]int {
			synctest.Wait()
			mutex.Lock()
			defer mutex.Unlock()
			return maps.Clone(got)
		}
		if got := so(); got[503] != 5 || len(got) != 1 {
			t.Errorf("at once %v, want 5 refused", got)
		}
		if status, _, _ := ask(h, "GET", "/model", nil); status != 200 {
			t.Errorf("busy, /model answers %d", status)
		}
		time.Sleep(Timeout)
		computing := cap(h.(*server).turns)
		if got := so(); got[503] != 5+MaxRequests-computing {
			t.Errorf("after %s %v, want all refused but %d that compute", Timeout, got, computing)
		}
		close(release)
		all.Wait()
		if got := so(); got[200] != computing {
			t.Errorf("in the end %v", got)
		}
	})
}

// pipes is a listener of connections in memory, whose deadlines are of virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestSlowBodies: rows that do not arrive in time are given up, whatever the server's own limits, and give their place
// back; and what is swapped out while rows arrive is not used any more.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := new(Holder)
		models.Swap(total, 0)
		h, listener := Handler(models, "").(*server), make(pipes)
		s := &http.Server{Handler: h}
		var serving sync.WaitGroup
		serving.Go(func() { _ = s.Serve(listener) })
		for i, c := range []struct {
			every  time.Duration
			status string
			want   string
		}{{3 * time.Second, "408 Request Timeout", "did not arrive in time"}, {time.Second, "200 OK", `"later 1"`}} {
			client, server := net.Pipe()
			listener <- server
			var writing sync.WaitGroup
			writing.Go(func() {
				_, _ = io.WriteString(client, "POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nConnection: close\r\n\r\n")
				for _, b := range "[1,2,3]" {
					time.Sleep(c.every)
					if _, err := io.WriteString(client, string(b)); err != nil {
						return
					}
				}
			})
			time.Sleep(2 * time.Second)
			later := total
			later.about.Version = fmt.Sprint("later ", i)
			models.Swap(later, 0)
			text, _ := io.ReadAll(client)
			if !strings.Contains(string(text), c.status) || !strings.Contains(string(text), c.want) {
				t.Errorf("a byte every %s: %s", c.every, text)
			}
			_ = client.Close()
			writing.Wait()
			if n := len(h.places); n != 0 {
				t.Errorf("%d places are taken", n)
			}
		}
		h.open = false // what is refused without a look at its rows has as long
		client, server := net.Pipe()
		listener <- server
		began := time.Now()
		_, _ = io.WriteString(client, "POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n")
		if text, _ := io.ReadAll(client); !strings.Contains(string(text), "401 Unauthorized") || time.Since(began) > Timeout {
			t.Errorf("after %s: %s", time.Since(began), text)
		}
		_ = client.Close()
		close(listener)
		_ = s.Close()
		serving.Wait()
	})
}
