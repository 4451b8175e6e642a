// Package web is an HTTP server that ends completely: after Close has returned, nothing of it runs. http.Server.Close
// does not wait for handlers, and Shutdown waits for unused connections that browsers open in advance.
//
// Limits: no TLS. It serves the metrics and the dashboard of gossipnode.
package web

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// Server has an address after Listen, and answers requests after Serve. Close may be called at any time, from any
// goroutine, more than once; Serve once, before Close.
type Server struct {
	listener net.Listener
	http     *http.Server
	served   chan struct{} // closed when Serve's goroutine has returned
	failed   error         // after served: why Serve has ended, if not by Close

	closing sync.RWMutex // held for reading while a handler runs
	closed  bool
}

// Listen opens a TCP address, so that an address in use is noticed before anything else begins.
func Listen(address string) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Server{listener: listener}, nil
}

// Addr is the address that it listens at.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers requests by with, whose handler it then owns, until Close. A handler must return soon after the
// context of its request has ended.
func (s *Server) Serve(with *http.Server) {
	handler := with.Handler
	with.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.closing.RLock()
		defer s.closing.RUnlock()
		if s.closed {
			http.Error(w, "the process is about to end", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	})
	s.http, s.served = with, make(chan struct{})
	go func() {
		defer close(s.served)
		if err := with.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed = err
		}
	}()
}

// Close stops serving, cuts running requests, and waits for all handlers. It returns why serving had ended before, if
// it had.
func (s *Server) Close() error {
	if s.http == nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	err := s.http.Close()
	<-s.served
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	if errors.Is(err, net.ErrClosed) { // an earlier Close has closed it
		err = nil
	}
	return errors.Join(err, s.failed)
}
