package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// browserBound bounds a call to the browser, and a wait for what a page shows.
const browserBound = 60 * time.Second

// browser is a headless Chromium that is spoken to over pipes, in the DevTools
// protocol: JSON messages that end in a zero byte.
type browser struct {
	t       *testing.T
	out     io.Writer
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	faults  []string // what the page complained of, and what it could not load
}

// reply is a message of the browser: the answer to a call, or an event.
type reply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// newBrowser starts Chromium with one page; the test is skipped where there is none.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium on this machine: the dashboard is not tested in a browser (on Debian: apt-get install chromium)")
	}
	hear, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{read, theirs} // descriptors 3 and 4, by the browser's convention
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, out: out, waiting: make(map[int]chan reply)}
	var listening sync.WaitGroup
	listening.Go(func() { b.listen(hear) })
	t.Cleanup(func() {
		_ = b.call("Browser.close", nil, nil)
		ended := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // it was told to end, and how it does is of no interest
		ended.Stop()
		for _, f := range []*os.File{read, theirs, out} {
			f.Close()
		}
		listening.Wait()
		hear.Close()
	})
	b.open()
	return b
}

// open makes the page, and listens to what goes wrong on it.
func (b *browser) open() {
	b.t.Helper()
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.must("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.must(domain+".enable", nil, nil)
	}
}

// listen takes the browser's messages until it ends.
func (b *browser) listen(from io.Reader) {
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(text[:len(text)-1], &r) != nil {
			continue
		}
		b.mu.Lock()
		if waiting := b.waiting[r.ID]; r.ID != 0 && waiting != nil {
			waiting <- r
			delete(b.waiting, r.ID)
		}
		if fault := faultOf(r); fault != "" {
			b.faults = append(b.faults, fault)
		}
		b.mu.Unlock()
	}
}

// faultOf tells what an event says of something that went wrong; nothing if it does not.
func faultOf(r reply) string {
	var p struct {
		Type      string `json:"type"`
		ErrorText string `json:"errorText"`
		Canceled  bool   `json:"canceled"`
		Response  struct {
			URL    string `json:"url"`
			Status int    `json:"status"`
		} `json:"response"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
		} `json:"entry"`
	}
	if json.Unmarshal(r.Params, &p) != nil {
		return ""
	}
	switch {
	case r.Method == "Runtime.exceptionThrown",
		r.Method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning"):
		return "console: " + string(r.Params)
	case r.Method == "Log.entryAdded" && p.Entry.Level == "error":
		return "log: " + p.Entry.Text
	case r.Method == "Network.loadingFailed" && !p.Canceled:
		return "request: " + p.ErrorText
	case r.Method == "Network.responseReceived" && p.Response.Status >= 400:
		return fmt.Sprintf("request: %s answers %d", p.Response.URL, p.Response.Status)
	}
	return ""
}

// complaints are the faults so far, which are then forgotten.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// call has the browser do something and waits for its answer.
func (b *browser) call(method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	answer := make(chan reply, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = answer
	b.mu.Unlock()
	message := map[string]any{"id": id, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.out.Write(append(text, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(r.Result, result)
	case <-time.After(browserBound):
		return fmt.Errorf("%s: no answer in %s", method, browserBound)
	}
}

func (b *browser) must(method string, params map[string]any, result any) {
	b.t.Helper()
	if err := b.call(method, params, result); err != nil {
		b.t.Fatal(err)
	}
}

// eval computes an expression on the page.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	var answer struct {
		Result struct {
			Value T `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	b.must("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	return answer.Result.Value
}

// until waits until an expression holds on the page.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	const look = 100 // milliseconds
	holds := eval[bool](b, fmt.Sprintf(`(async () => { const end = Date.now() + %d; while (Date.now() < end) { if (%s) return true; await new Promise(r => setTimeout(r, %d)); } return false; })()`,
		browserBound.Milliseconds()*2/3, expression, look))
	if !holds {
		b.t.Fatalf("%s: the page never shows it; it says\n%s", what, eval[string](b, "document.body.innerText"))
	}
}

// screen sets the size of the window and the colours that the person prefers.
func (b *browser) screen(width, height int, scale float64, scheme string) {
	b.t.Helper()
	b.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}, nil)
	b.must("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// shoot writes a picture of the whole page.
func (b *browser) shoot(path string) {
	b.t.Helper()
	var picture struct {
		Data string `json:"data"`
	}
	b.must("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &picture)
	png, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// press presses a key.
func (b *browser) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.must("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": map[string]int{"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowRight": 39, "Home": 36}[key]}, nil)
	}
}
