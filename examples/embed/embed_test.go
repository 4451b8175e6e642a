package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// The README shows a part of it (internal/archtest looks at that), and says that this is all.
func TestServiceIsSmall(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	for line := range strings.Lines(string(source)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "\"") {
			code++
		}
	}
	if code >= 60 {
		t.Errorf("%d lines of code beside imports, want less than 60", code)
	}
}

// TestServiceLearnsAndAnswers: after a few steps it reads most digits, over HTTP.
func TestServiceLearnsAndAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- serve(ctx, listener, nil, 400) }()
	heldOut, err := dataset.HeldOutGlyphs(100)
	if err != nil {
		t.Fatal(err)
	}
	var b dataset.Batch
	heldOut.Fill(&b, 0, 100)
	right := 0
	for begun := time.Now(); right < 70 && time.Since(begun) < 3*time.Minute; {
		right = 0
		for i, label := range b.Labels {
			if read(t, listener.Addr(), b.X[i*784:(i+1)*784]) == int(label) {
				right++
			}
		}
	}
	if right < 70 {
		t.Errorf("%d of 100 digits read right", right)
	}
	answer, err := http.Post("http://"+listener.Addr().String(), "application/json", strings.NewReader("[1, 2]"))
	if err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("two numbers: %v, %v", answer, err)
	}
	answer.Body.Close()
	stop()
	if err := <-over; !errors.Is(err, peer.ErrRunOver) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// read is the digit that the service reads, -1 while it cannot be reached.
func read(t *testing.T, address net.Addr, image tensor.Vector) int {
	t.Helper()
	body, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post("http://"+address.String(), "application/json", bytes.NewReader(body))
	if err != nil {
		return -1
	}
	defer answer.Body.Close()
	var digits tensor.Vector
	if err := json.NewDecoder(answer.Body).Decode(&digits); err != nil || len(digits) != 10 {
		t.Fatalf("%v, %d values", err, len(digits))
	}
	best := 0
	for i, v := range digits {
		if v > digits[best] {
			best = i
		}
	}
	return best
}
