package dashboard

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

	"github.com/seed-97356399/murmuration/examples/gossipnode/web"
)

//go:embed page
var page embed.FS

const (
	// timeout bounds a request; in the stream of events, it bounds each message.
	timeout = 15 * time.Second
	// maxHeader and maxBody bound a request, in bytes.
	maxHeader = 16 << 10
	maxBody   = 4 << 10
)

// Config says where and to whom the page is served.
type Config struct {
	// Address is host:port; without a host it is on this machine only.
	Address string
	// TokenFile is the file of the token. Without a file the token is drawn; on this machine, only controlling the
	// run then needs it.
	TokenFile string
}

// Server serves the page that shows the run. It has no access to the peer: it passes on what the board sends.
type Server struct {
	web   *web.Server
	guard guard
	board *Board
}

// Listen opens the address, so that an address in use is noticed before anything else begins. Serve answers requests.
func Listen(c Config) (*Server, error) {
	address, err := web.Local(c.Address)
	if err != nil {
		return nil, fmt.Errorf("serving the dashboard: %w", err)
	}
	server, err := web.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("serving the dashboard: %w: give another address with --dashboard", err)
	}
	guard, err := newGuard(server.Addr(), address, c.TokenFile)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &Server{web: server, guard: guard}, nil
}

// Addr is the address that it listens at.
func (d *Server) Addr() net.Addr { return d.web.Addr() }

// Token is the token that viewers need; "" if everybody who reaches the address may look.
func (d *Server) Token() string {
	if d.guard.open {
		return ""
	}
	return d.guard.token
}

// URL is the address to open in a browser. It has the token if that is useful there, which is known after Serve.
func (d *Server) URL() string {
	host, port, _ := net.SplitHostPort(d.web.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // for this machine; others use its name
	}
	url := "http://" + net.JoinHostPort(host, port) + "/"
	if !d.guard.open || d.board != nil && d.board.about.Controls {
		url += "?token=" + d.guard.token
	}
	return url
}

// Serve answers requests with the content of a board, until Close.
func (d *Server) Serve(b *Board, log *zap.Logger) {
	d.board, b.ruling.may = b, d.guard.knows
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the name of the folder is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", cached(http.FileServerFS(files)))
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, r *http.Request) { answerJSON(w, http.StatusOK, b.whole(r)) })
	mux.HandleFunc("GET /api/events", b.stream)
	mux.Handle("POST /api/control", b.ruling)
	d.web.Serve(&http.Server{
		Handler: d.guard.restrict(http.MaxBytesHandler(mux, maxBody)), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, IdleTimeout: 4 * timeout,
		ErrorLog: zap.NewStdLog(log.Named("dashboard").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	})
	b.start()
}

// cached makes the browser ask each time whether a file has changed: the process may be of a new release.
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
	_, _ = w.Write(text) // a browser that has gone needs no error
}

// Close stops serving and waits until all requests have ended. A nil server does nothing.
func (d *Server) Close() error {
	if d == nil {
		return nil
	}
	err := d.web.Close()
	if d.board != nil {
		d.board.close()
	}
	return err
}
