// Package gallerytest runs the programs of the gallery in tests.
package gallerytest

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Bound is the longest that a program may take, on a machine that is busy with something else.
const Bound = 5 * time.Minute

// Run runs a program, and returns what it says. It has to draw a sound picture.
func Run(t *testing.T, run func(ctx context.Context, out io.Writer, picture string) error) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), Bound)
	defer stop()
	var out out
	picture := filepath.Join(t.TempDir(), "picture.svg")
	if err := run(ctx, &out, picture); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	Sound(t, picture)
	return string(out)
}

type out []byte

func (o *out) Write(b []byte) (int, error) {
	*o = append(*o, b...)
	return len(b), nil
}

// Scan takes the values out of what a program says.
func Scan(t *testing.T, out, format string, into ...any) {
	t.Helper()
	if n, err := fmt.Sscanf(out, format, into...); n < len(into) {
		t.Fatalf("%q has %d of %d values of %q: %v", out, n, len(into), format, err)
	}
}

// Sound fails the test if a file is no SVG that draws something.
func Sound(t *testing.T, picture string) {
	t.Helper()
	file, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	drawn := 0
	for d := xml.NewDecoder(file); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", picture, err)
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "path" {
			drawn++
		}
	}
	if drawn < 5 {
		t.Errorf("%s: %d lines are drawn", picture, drawn)
	}
}
