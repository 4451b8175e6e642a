package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the dashboard (default: one that is removed)")

// startWatched starts a local run with a dashboard and returns where that is.
func startWatched(t *testing.T, args ...string) (url string) {
	t.Helper()
	const bound = 5 * time.Minute // it is interrupted long before
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	words := humble(os.Args[0], append([]string{"local", "--dashboard", "127.0.0.1:0"}, args...)...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	logged, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		at := regexp.MustCompile(`dashboard at (\S+)`)
		for lines := bufio.NewScanner(logged); lines.Scan(); {
			if found := at.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		_ = cmd.Wait() // it was interrupted
	})
	select {
	case url = <-address:
	case <-time.After(time.Minute):
		t.Fatal("no dashboard in a minute")
	}
	return url
}

// TestDashboardInABrowser looks at a run of eight peers as a person does: pauses and
// resumes it, sees the curves move, walks the table with the keyboard, on a desktop, a
// phone and in the dark, without a complaint of the browser.
func TestDashboardInABrowser(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: eight processes and a browser take a while")
	}
	b := newBrowser(t)
	folder := *screenshots
	if folder == "" {
		folder = t.TempDir()
	} else if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	url := startWatched(t, "--peers", "8", "--steps", "1000000", "--step-time", "4ms", "--batch", "16", "--every", "20", "--codec", "lattice8+4")
	b.screen(1440, 1000, 1, "light")
	b.must("Page.navigate", map[string]any{"url": url}, nil)
	b.until("eight peers that tell how they get on", `document.querySelectorAll('#table tbody tr').length === 8 && !document.getElementById('table').innerText.includes('–\t–\t–')`)
	b.until("curves", `document.querySelector('#curve-loss .line').getAttribute('d')?.split('L').length > 8 && document.querySelector('#curve-accuracy .line').hasAttribute('d')`)
	b.until("a matrix of exchanges", `[...document.querySelectorAll('#matrix td')].filter(c => c.textContent).length >= 8`)
	b.until("a link that lights up", `document.querySelector('#ring .glow')`)
	b.shoot(filepath.Join(folder, "desktop-light.png"))
	fits(t, b)
	pauseAndResume(t, b, folder)
	walk(t, b)

	b.screen(1440, 1000, 1, "dark")
	b.until("the dark", `getComputedStyle(document.body).backgroundColor === 'rgb(14, 20, 27)'`)
	b.shoot(filepath.Join(folder, "desktop-dark.png"))
	for _, scheme := range []string{"light", "dark"} {
		b.screen(390, 844, 2, scheme)
		b.until("a phone's width", `document.documentElement.scrollWidth <= 390 && document.querySelector('#curve-loss svg').getAttribute('viewBox').split(' ')[2] < 390`)
		b.until("labels that are whole", wholeLabels)
		b.shoot(filepath.Join(folder, "phone-"+scheme+".png"))
	}
	for _, fault := range b.complaints() {
		t.Error(fault)
	}
}

// wholeLabels: no tile cuts its label, and no name in the ring is cut by its edge, or meets another.
const wholeLabels = `(() => {
	const ring = document.getElementById('ring').getBoundingClientRect();
	const names = [...document.querySelectorAll('#ring .name')].map(e => e.getBoundingClientRect());
	return names.length > 0 && [...document.querySelectorAll('.tiles dt')].every(e => e.scrollWidth <= e.clientWidth) &&
		names.every(r => r.left >= ring.left && r.right <= ring.right && r.top >= ring.top && r.bottom <= ring.bottom) &&
		names.every((r, i) => names.every((o, j) => i <= j || r.right < o.left || o.right < r.left || r.bottom < o.top || o.bottom < r.top));
})()`

// fits shows that an axis fits what it shows: accuracies of 90 to 98 % are not drawn from 0
// to 100, equal ones are drawn, and none goes beyond 100.
func fits(t *testing.T, b *browser) {
	t.Helper()
	for _, c := range []struct{ from, to, least, most float64 }{{0.9, 0.98, 0.88, 1}, {0.5, 0.5, 0.45, 0.55}, {1, 1, 0.9, 1}} {
		axis := eval[[]float64](b, fmt.Sprintf(`(async () => {
			const { Curve } = await import('/curves.js'), figure = document.createElement('figure');
			figure.style.width = '400px';
			document.body.append(figure);
			const curve = new Curve(figure, { name: 'accuracy', key: 'a', show: String, span: 0.024, most: 1 });
			curve.show([{ steps: 1, a: %g }, { steps: 9, a: %g }]);
			figure.remove();
			return [curve.scale.low, curve.scale.high];
		})()`, c.from, c.to))
		if low, high := axis[0], axis[1]; low < c.least || high > c.most || low >= c.from || high < c.to || high-low < 0.02 {
			t.Errorf("of %g to %g the axis is %g to %g", c.from, c.to, low, high)
		}
	}
}

// pauseAndResume holds the run by the button, and lets it go on.
func pauseAndResume(t *testing.T, b *browser, folder string) {
	t.Helper()
	const curve = `document.querySelector('#curve-loss .line').getAttribute('d')`
	before := eval[string](b, curve)
	b.until("a curve that moves", curve+` !== '`+before+`'`)
	eval[any](b, `document.getElementById('pause').click()`)
	b.until("a pause", `document.getElementById('state').textContent === 'paused' && document.getElementById('pause').textContent === 'Resume'`)
	b.until("that all are paused", `[...document.querySelectorAll('#table tbody td[data-state]')].every(c => c.textContent === 'paused')`)
	const steps = `document.getElementById('done').textContent`
	held := eval[string](b, `(async () => { const read = () => `+steps+`; for (let i = 0, was = read(); i < 20; i++) { await new Promise(r => setTimeout(r, 2500)); if (read() === was) return was; was = read(); } return ''; })()`)
	if held == "" {
		t.Error("the flock's steps go on in a pause")
	}
	b.shoot(filepath.Join(folder, "desktop-paused.png"))
	paints(t, b)
	eval[any](b, `document.getElementById('pause').click()`)
	b.until("that it goes on", `document.getElementById('state').textContent === 'training' && `+steps+` !== '`+held+`'`)
	b.until("that its curve goes on", curve+` !== '`+before+`'`)
	if events := eval[string](b, `document.getElementById('events').innerText`); !strings.Contains(events, "holds all peers") {
		t.Errorf("the events say nothing of the pause: %s", events)
	}
}

// paints shows that the page is there in less than a second, while the flock leaves the
// machine to it: the quickest of a few loads, since others may use it too.
func paints(t *testing.T, b *browser) {
	t.Helper()
	const loads, most = 4, 1000 // milliseconds
	quickest := math.Inf(1)
	for i := 0; i < loads && quickest > most; i++ {
		b.must("Page.reload", nil, nil)
		b.until("the page, loaded again", `document.querySelectorAll('#table tbody tr').length === 8 && performance.getEntriesByName('first-contentful-paint').length > 0`)
		quickest = min(quickest, eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
	}
	if t.Logf("first paint after %.0f ms", quickest); quickest > most {
		t.Errorf("the first paint comes after %.0f ms, want at most %d", quickest, most)
	}
}

// walk goes through the page with the keyboard.
func walk(t *testing.T, b *browser) {
	t.Helper()
	b.press("Tab")
	for range 12 {
		if eval[bool](b, `document.activeElement.classList.contains('node')`) {
			break
		}
		b.press("Tab")
	}
	first := eval[string](b, `document.activeElement.dataset.id ?? ''`)
	b.press("ArrowRight")
	b.press("Enter")
	if chosen := eval[string](b, `document.querySelector('.node.chosen')?.dataset.id ?? ''`); first == "" || chosen == "" || chosen == first {
		t.Errorf("the arrows go from peer %q to %q of the ring", first, chosen)
	}
	if told := eval[string](b, `document.getElementById('chosen').textContent`); !strings.Contains(told, "neighbours") {
		t.Errorf("of a chosen peer is told %q", told)
	}
	eval[any](b, `document.querySelector('#table tbody tr[tabindex="0"]').focus()`)
	b.press("Home")
	b.press("ArrowDown")
	below := eval[string](b, `document.activeElement.dataset.id ?? ''`)
	if eval[bool](b, `document.activeElement.classList.contains('chosen')`) { // by the ring: to choose it again is to leave it
		b.press("Enter")
	}
	b.press("Enter")
	if row := eval[string](b, `document.querySelector('#table tr.chosen')?.dataset.id ?? ''`); below == "" || row != below {
		t.Errorf("the arrows choose row %q", row)
	}
	eval[any](b, `document.querySelectorAll('#table thead button')[3].click()`)
	if sorted := eval[string](b, `document.querySelectorAll('#table thead th')[3].getAttribute('aria-sort') ?? ''`); sorted != "ascending" {
		t.Errorf("a click on the head sorts %q", sorted)
	}
	eval[any](b, `document.querySelector('.node.chosen').dispatchEvent(new MouseEvent('click', {bubbles: true}))`)
}
