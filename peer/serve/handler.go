// Package serve answers predictions over HTTP, of a model that may change meanwhile: while it is trained, or when a file
// is replaced.
//
//	models := new(serve.Holder)
//	go serve.Checks{Next: snapshots, Judge: onHeldOutRows, Every: time.Second}.Run(ctx, models)
//	http.Handle("/", serve.Handler(models, token))
//
// A request is answered by one Model, whole, however often the Holder's is swapped; Gate decides when that is.
//
// Limits: there is no TLS, and one token for all. Rows and answers are JSON, and are held in memory.
package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/metrics"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// Bounds of requests. Predictions at a time that are more than MaxRequests are refused with 503; as many as there are
// cores compute, and the others wait. Timeout bounds how long a request takes to arrive and waits.
const (
	MaxBody     = 4 << 20 // bytes of a request
	MaxRows     = 4096    // of a request, and fewer if its values are more than 2^20
	MaxRequests = 32
	Timeout     = 10 * time.Second
)

// Handler answers POST /predict, GET /model, GET /metrics and GET /healthz. If there is a token, clients send it as
// "Authorization: Bearer TOKEN", except for /healthz. Give one unless only this machine reaches the handler. Errors are
// JSON too: what is wrong ("error") and what to do ("remedy").
func Handler(models *Holder, token string) http.Handler {
	return &server{
		models: models, open: token == "", token: sha256.Sum256([]byte(token)),
		places: make(chan struct{}, MaxRequests), turns: make(chan struct{}, runtime.GOMAXPROCS(0)), answered: make(map[string]uint64),
	}
}

type server struct {
	models *Holder
	open   bool // without a token
	token  [sha256.Size]byte
	places chan struct{} // of requests
	turns  chan struct{} // of those that compute: more at a time would only take longer

	mutex    sync.Mutex
	answered map[string]uint64 // predictions by status
	rows     uint64
	took     stats.Histogram
}

// fault is an error of a request.
type fault struct {
	status int
	Text   string `json:"error"`
	Remedy string `json:"remedy"`
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	// Of what is refused, too: the server reads it before it answers. An error: the server has a bound of its own.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(Timeout))
	served, method := s.models.Served(), http.MethodGet
	if r.URL.Path == "/predict" {
		method = http.MethodPost
	}
	var wrong *fault
	switch path := r.URL.Path; {
	case path != "/predict" && path != "/model" && path != "/metrics" && path != "/healthz":
		wrong = &fault{http.StatusNotFound, "there is no such page", "ask for /predict, /model, /metrics or /healthz"}
	case path != "/healthz" && !s.open && !s.knows(r):
		w.Header().Set("WWW-Authenticate", `Bearer realm="predictions"`)
		wrong = &fault{http.StatusUnauthorized, "this address asks for a token", "send the header Authorization: Bearer TOKEN"}
	case r.Method != method && (r.Method != http.MethodHead || method == http.MethodPost):
		w.Header().Set("Allow", method)
		wrong = &fault{http.StatusMethodNotAllowed, path + " does not take " + strconv.Quote(r.Method), "use " + method}
	case path == "/metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(s.metrics(served)) // who asked has gone if it fails
		return
	case served == nil:
		wrong = &fault{http.StatusServiceUnavailable, "there is no model yet", "try again in a while"}
	case path == "/healthz":
		answer(w, http.StatusOK, map[string]string{"status": "alive"})
		return
	case path == "/model":
		answer(w, http.StatusOK, described(served))
		return
	default:
		s.predict(w, r, served)
		return
	}
	wrong.write(w)
}

// knows compares tokens in constant time.
func (s *server) knows(r *http.Request) bool {
	given, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(given))
	return is && subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

// description is the answer of GET /model.
type description struct {
	About
	HeldOut *float64 `json:"held_out,omitempty"` // the figure
	Since   string   `json:"since"`
	Seconds float64  `json:"seconds"` // since then
}

func described(s *Served) description {
	d := description{About: s.About(), Since: s.Since.Format(time.RFC3339), Seconds: time.Since(s.Since).Seconds()}
	if !math.IsNaN(s.Figure) && !math.IsInf(s.Figure, 0) {
		d.HeldOut = &s.Figure
	}
	return d
}

// predict answers POST /predict, and counts it.
func (s *server) predict(w http.ResponseWriter, r *http.Request, served *Served) {
	began := time.Now()
	made, rows, wrong := s.predicted(w, r, served)
	s.mutex.Lock()
	s.took.Add(time.Since(began))
	status := http.StatusOK
	if wrong != nil {
		status = wrong.status
	}
	s.answered[strconv.Itoa(status)]++
	s.rows += uint64(rows)
	s.mutex.Unlock()
	if wrong == nil {
		answer(w, status, made)
		return
	}
	wrong.write(w)
}

func (s *server) predicted(w http.ResponseWriter, r *http.Request, served *Served) (made *predictions, n int, wrong *fault) {
	defer func() {
		if p := recover(); p != nil {
			wrong = &fault{http.StatusInternalServerError, fmt.Sprintf("the model failed: %.200v", p), "report this, with the rows"}
		}
	}()
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Header.Get("Content-Type") != "" && (err != nil || kind != "application/json" && kind != "application/x-www-form-urlencoded") {
		return nil, 0, &fault{http.StatusUnsupportedMediaType, "the body is no JSON", "send rows as JSON, with Content-Type: application/json"}
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return nil, 0, &fault{http.StatusServiceUnavailable, "too many ask at once", "try again in a second, or ask for more rows at a time"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), Timeout)
	defer cancel()
	rows, err := decode(http.MaxBytesReader(w, r.Body, MaxBody), served.About(), MaxRows)
	if err != nil {
		return nil, 0, unreadable(err)
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, 0, &fault{http.StatusServiceUnavailable, "the machine is too busy", "try again in a while, with fewer rows"}
	}
	if now := s.models.Served(); now.About().takes(served.About()) {
		served = now // what has been swapped out while the rows came is not used any more
	}
	values, err := served.Predict(nil, rows)
	about := served.About()
	if err != nil {
		return nil, 0, &fault{http.StatusUnprocessableEntity, err.Error(), "compare the rows with GET /model"}
	}
	if len(values) != rows.Len*about.Outputs || slices.ContainsFunc(values, func(v float64) bool { return v-v != 0 }) {
		return nil, 0, &fault{http.StatusInternalServerError, "the model says what is no number", "see whether the rows are as those that it was trained on; if so, it is damaged"}
	}
	return predictionsOf(about, values), rows.Len, nil
}

// unreadable is the fault for rows that cannot be read.
func unreadable(err error) *fault {
	switch _, long := errors.AsType[*http.MaxBytesError](err); {
	case long:
		return &fault{http.StatusRequestEntityTooLarge, "the request is too long", fmt.Sprintf("send at most %d bytes at a time", MaxBody)}
	case errors.Is(err, errTooMany):
		return &fault{http.StatusRequestEntityTooLarge, err.Error(), "send them in several requests"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &fault{http.StatusRequestTimeout, "the rows did not arrive in time", "send them faster, or fewer"}
	}
	return &fault{http.StatusBadRequest, err.Error(), `send {"rows": [...]} or an array of rows, each an object by column names or an array of numbers: see GET /model`}
}

// predictions is the answer of POST /predict.
type predictions struct {
	Version     string       `json:"version"`
	Classes     []string     `json:"classes,omitempty"` // of probabilities
	Predictions []prediction `json:"predictions"`
}

type prediction struct {
	Class         *string   `json:"class,omitempty"`
	Probabilities []float64 `json:"probabilities,omitempty"`
	Value         *float64  `json:"value,omitempty"`
	Values        []float64 `json:"values,omitempty"` // of several outputs that are no probabilities
}

func predictionsOf(about About, values []float64) *predictions {
	p := &predictions{Version: about.Version, Classes: about.Classes}
	for n := about.Outputs; len(values) > 0; values = values[n:] {
		row := values[:n:n]
		switch {
		case len(about.Classes) == n:
			p.Predictions = append(p.Predictions, prediction{Class: &about.Classes[floats.MaxIdx(row)], Probabilities: row})
		case n == 1:
			p.Predictions = append(p.Predictions, prediction{Value: &row[0]})
		default:
			p.Predictions = append(p.Predictions, prediction{Values: row})
		}
	}
	return p
}

func (f *fault) write(w http.ResponseWriter) {
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, f.status, f)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text := json.NewEncoder(w)
	text.SetEscapeHTML(false) // classes such as "delay>15"; it is no HTML
	_ = text.Encode(value)    // who asked has gone if it fails
}

// metrics are the figures of the server and of the model that is served.
func (s *server) metrics(served *Served) []byte {
	var m metrics.Own
	s.mutex.Lock()
	defer s.mutex.Unlock()
	m.Counter("predict_requests_total", "Requests for predictions, by status.", s.answered, "status")
	m.Counter("predict_rows_total", "Rows predicted.", map[string]uint64{"": s.rows})
	m.Times("predict_duration_seconds", "Time from a request for predictions to its answer.", s.took)
	m.Gauge("predict_requests_running", "Requests for predictions under way.", float64(len(s.places)))
	came := make(map[string]uint64)
	for d := range decisions {
		came[d.String()] = s.models.came[d].Load()
	}
	m.Counter("model_checks_total", "Checks for a newer model, by what came of them.", came, "outcome")
	if served != nil {
		m.Gauge("model_served_seconds", "Time since the model was swapped in.", time.Since(served.Since).Seconds())
		m.Gauge("model_held_out", "Figure of the model on held-out rows at the last check; NaN if unknown.", served.Figure)
		m.Gauge("model_step", "Steps that the model was trained for; 0 if unknown.", float64(served.About().Step))
	}
	return m.Bytes()
}
