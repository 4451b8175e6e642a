package web

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCloseWaitsForHandlers closes while a handler is at work, which ends some time
// after its request has.
func TestCloseWaitsForHandlers(t *testing.T) {
	s, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	entered, cancelled, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.Serve(&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(cancelled)
		<-release
		ended.Store(true)
	})})
	var asking, closing sync.WaitGroup
	asking.Go(func() {
		if answer, err := http.Get("http://" + s.Addr().String()); err == nil {
			answer.Body.Close()
			t.Error("a request that was cut has an answer")
		}
	})
	<-entered
	for range 2 {
		closing.Go(func() {
			if err := s.Close(); err != nil || !ended.Load() {
				t.Errorf("Close: %v; the handler has ended: %v", err, ended.Load())
			}
		})
	}
	<-cancelled
	close(release)
	closing.Wait()
	asking.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	late := httptest.NewRecorder()
	if s.http.Handler.ServeHTTP(late, nil); late.Code != http.StatusServiceUnavailable {
		t.Error("a handler may begin after Close")
	}
}

func TestCloseWithoutServe(t *testing.T) {
	s, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(s.Addr().String()); err == nil {
		t.Error("an address was taken twice")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestServingThatFails: the listener is taken away.
func TestServingThatFails(t *testing.T) {
	s, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(&http.Server{Handler: http.NotFoundHandler()})
	s.listener.Close()
	<-s.served
	if err := s.Close(); err == nil {
		t.Error("Close does not say that serving had failed")
	}
}
