package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestDescriptionInABrowser looks at the page of describe as a person does, on a desktop and a phone, by day and by
// night: no part of it is wider than the screen, no label is cut, nothing is loaded and nothing complained of.
func TestDescriptionInABrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	folder := *screenshots
	if folder == "" {
		folder = t.TempDir()
	}
	text := "a long name of a column of numbers,speed,kind,late\n"
	for i := range 500 {
		text += fmt.Sprintf("%d,%g,%s,%v\n", i*i%97, float64(i%50)/7, []string{"MCDONNELL DOUGLAS AIRCRAFT", "W", "x"}[i%3], i%5 == 0)
	}
	data, page := filepath.Join(t.TempDir(), "rows.csv"), filepath.Join(folder, "description.html")
	if err := os.WriteFile(data, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	if code := execute([]string{"describe", "--data", data, "--target", "late", "--html", page}, cli.Streams{In: strings.NewReader(""), Out: &log, Err: &log}); code != 0 {
		t.Fatal(log.String())
	}
	for _, width := range []int{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.screen(width, 900, 1, scheme)
			b.must("Page.navigate", map[string]any{"url": "file://" + page}, nil)
			b.until("all plots within the page", fmt.Sprintf(`document.querySelectorAll('svg').length === 7 && document.documentElement.scrollWidth <= %d`, width))
			b.until("labels that are whole", `[...document.querySelectorAll('svg text')].every(e => { const t = e.getBoundingClientRect(), s = e.closest('svg').getBoundingClientRect(); return t.left >= s.left - 1 && t.right <= s.right + 1 && t.top >= s.top - 1 && t.bottom <= s.bottom + 1; })`)
			b.until("bars", `[...document.querySelectorAll('rect.bar')].filter(e => e.getBoundingClientRect().height > 20).length > 20`)
			b.shoot(filepath.Join(folder, fmt.Sprintf("description-%d-%s.png", width, scheme)))
		}
	}
	for _, fault := range b.complaints() {
		t.Error(fault)
	}
}
