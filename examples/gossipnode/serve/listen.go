package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/web"
	"github.com/seed-97356399/murmuration/peer/serve"
)

const (
	// idle bounds a connection between requests, answered the time that a client takes to read an answer.
	idle     = time.Minute
	answered = time.Minute
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 16 << 10
)

// Server serves a model that may change.
type Server struct {
	web    *web.Server
	models serve.Holder
	named  string // the host in the address
	token  string // "" if only this machine reaches it
	checks sync.WaitGroup
	stop   context.CancelFunc
}

// Listen opens an address, on this machine only unless it names a host; elsewhere, or with a file of a token, clients
// need the token.
func Listen(address, tokenFile string) (*Server, error) {
	address, err := web.Local(address)
	if err != nil {
		return nil, cli.Config(err)
	}
	s := &Server{}
	if s.web, err = web.Listen(address); err != nil {
		return nil, cli.Config(fmt.Errorf("serving predictions: %w: give another address", err))
	}
	s.named, _, _ = net.SplitHostPort(address)
	if tokenFile != "" || !web.IsLocal(s.web.Addr()) {
		if s.token, err = web.Token(tokenFile); err != nil {
			return nil, cli.Config(errors.Join(err, s.web.Close()))
		}
	}
	return s, nil
}

// URL is the address that it serves at.
func (s *Server) URL() string { return "http://" + s.web.Addr().String() }

// Serve answers requests, and checks for newer models, until Close. Log hears what comes of the checks.
func (s *Server) Serve(checks serve.Checks, log *zap.Logger, drawn bool) {
	if s.token != "" && drawn {
		log.Warn("clients need this token, as Authorization: Bearer TOKEN; it crosses the network in the clear, so put TLS before it where strangers listen",
			zap.String("address", s.URL()), zap.String("token", s.token))
	}
	handler := serve.Handler(&s.models, s.token)
	s.web.Serve(&http.Server{
		ReadTimeout: serve.Timeout, IdleTimeout: idle, WriteTimeout: serve.Timeout + answered, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(log.Named("serve").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name, _, _ := net.SplitHostPort(r.Host); s.token == "" && !web.NamesMachine(r.Host) && !strings.EqualFold(name, s.named) {
				http.Error(w, `{"error":"nothing is served under that name","remedy":"use the address"}`, http.StatusMisdirectedRequest)
				return
			}
			handler.ServeHTTP(w, r)
		}),
	})
	told := checks.Told
	checks.Told = func(c serve.Checked) {
		tell(log, c)
		if told != nil {
			told(c)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.checks.Go(func() { checks.Run(ctx, &s.models) })
}

// tell logs what came of a check.
func tell(log *zap.Logger, c serve.Checked) {
	figures := []zap.Field{zap.String("version", c.Version), zap.Float64("served", c.Figures.Served), zap.Float64("candidate", c.Figures.Candidate), zap.Float64("fallback", c.Figures.Fallback)}
	switch {
	case c.Err != nil:
		log.Warn("no newer model is looked at", zap.Error(c.Err))
	case c.Decision == serve.RollBack:
		log.Warn("the model turned out to be worse than the one before, which is served again", append(figures, zap.String("worse", c.Other))...)
	case c.Decision == serve.Refuse:
		log.Warn("a newer model is worse, and is not served", append(figures, zap.String("worse", c.Other))...)
	default:
		log.Info("a model is served", figures...)
	}
}

// Close stops serving, and waits until all requests and checks have ended. A nil Server does nothing.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	if s.stop != nil {
		s.stop()
	}
	s.checks.Wait()
	return s.web.Close()
}
