package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

//go:embed dashboard
var dashboardFiles embed.FS

const (
	// dashboardTimeout bounds a request, but for the stream of events, whose every
	// message it bounds.
	dashboardTimeout = 15 * time.Second
	// maxDashboardHeader and maxDashboardBody bound what a request may hold, in bytes.
	maxDashboardHeader = 16 << 10
	maxDashboardBody   = 4 << 10
)

// dashboardServer serves the page that shows the run. It holds no part of the peer:
// what the board tells it, it passes on.
type dashboardServer struct {
	listener net.Listener
	guard    dashboardGuard
	server   http.Server
	done     chan error
	board    *board
}

// listenDashboard takes the address, so that one that is in use is noticed before
// anything else begins; serve answers.
func listenDashboard(s watchSettings) (*dashboardServer, error) {
	address, err := dashboardAddress(s.Dashboard)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the dashboard: %w: give another address with --dashboard", err)
	}
	guard, err := newDashboardGuard(listener.Addr(), address, s.DashboardToken)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &dashboardServer{listener: listener, guard: guard}, nil
}

// URL is what to open in a browser, token included.
func (d *dashboardServer) URL() string {
	host, port, _ := net.SplitHostPort(d.listener.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // from this machine; others take its name
	}
	url := "http://" + net.JoinHostPort(host, port) + "/"
	if d.guard.token != "" {
		url += "?token=" + d.guard.token
	}
	return url
}

// serve answers with what a board tells, until Close.
func (d *dashboardServer) serve(b *board, log *zap.Logger) {
	d.board = b
	files, err := fs.Sub(dashboardFiles, "dashboard")
	if err != nil {
		panic(err) // the folder is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", cached(http.FileServerFS(files)))
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, b.whole()) })
	mux.HandleFunc("GET /api/events", b.stream)
	mux.HandleFunc("POST /api/control", b.control)
	d.server = http.Server{
		Handler: d.guard.over(http.MaxBytesHandler(mux, maxDashboardBody)), MaxHeaderBytes: maxDashboardHeader,
		ReadHeaderTimeout: dashboardTimeout, ReadTimeout: dashboardTimeout, WriteTimeout: dashboardTimeout, IdleTimeout: 4 * dashboardTimeout,
		ErrorLog: zap.NewStdLog(log.Named("dashboard").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	d.done = make(chan error, 1)
	go func() { d.done <- d.server.Serve(d.listener) }()
	b.start()
}

// cached has the browser ask each time whether a file has changed: the process may be
// another release by then.
func cached(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a browser that has gone is noticed by nobody
}

// Close stops serving and waits for it. A nil server has nothing to stop.
func (d *dashboardServer) Close() error {
	if d == nil {
		return nil
	}
	if d.done == nil {
		return d.listener.Close()
	}
	err := d.server.Close()
	if served := <-d.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	d.done <- http.ErrServerClosed // Close may be called again
	d.board.close()
	return err
}
