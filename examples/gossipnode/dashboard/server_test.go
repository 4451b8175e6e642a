package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/web"
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestFiguresSayWhatTheyAre: the tile and the curve of accuracy are of a sample, the result of all
// held-out pictures; and the distance is an estimate, which the result's is not.
func TestFiguresSayWhatTheyAre(t *testing.T) {
	for file, labels := range map[string][]string{
		"page/index.html": {"<dt>Accuracy, sampled</dt>", fmt.Sprintf("up to %d held-out", watchedPictures), "<dt>Apart, estimated</dt>"},
		"page/app.js":     {fmt.Sprintf("Accuracy on up to %d held-out pictures, this peer", watchedPictures), "from their mean, estimated"},
	} {
		text, err := page.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, label := range labels {
			if !strings.Contains(string(text), label) {
				t.Errorf("%s does not say %q", file, label)
			}
		}
	}
}

// openBoard serves a dashboard and returns where it is, without a token.
func openBoard(t *testing.T, s Config, b *Board) (d *Server, url string) {
	t.Helper()
	d, err := Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	d.Serve(b, zap.NewNop())
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		for range 2 {
			if err := d.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}
	})
	_, port, _ := strings.Cut(d.web.Addr().String(), "]:")
	if port == "" {
		_, port, _ = strings.Cut(d.web.Addr().String(), ":")
	}
	return d, "http://127.0.0.1:" + port
}

func calmBoard(p Peer, rule Ruler) *Board {
	return NewBoard(p, About{Run: "digits", Self: "a"}, nil, rule, zap.NewNop())
}

// ask sends a request with headers and returns the answer's status, text and headers.
func ask(t *testing.T, method, url, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

// TestServes shows that the page, with what it loads, and the run's state are
// served, under a policy that lets nothing else be loaded.
func TestServes(t *testing.T) {
	d, url := openBoard(t, Config{Address: ":0"}, calmBoard(newCalm(), nil))
	if host := d.web.Addr().String(); !strings.HasPrefix(host, "127.0.0.1:") {
		t.Errorf("without a host it listens on %s", host)
	}
	if _, err := Listen(Config{Address: d.web.Addr().String()}); err == nil || !strings.Contains(err.Error(), "--dashboard") {
		t.Errorf("an address in use: error %v", err)
	}
	files, err := page.ReadDir("page")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		status, text, header := ask(t, http.MethodGet, url+"/"+f.Name(), "")
		if f.Name() == "index.html" { // under its own name it is sent on
			status, text, header = ask(t, http.MethodGet, url+"/", "")
		}
		policy := header.Get("Content-Security-Policy")
		if status != http.StatusOK || len(text) == 0 || !strings.HasPrefix(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s answers %d, %d bytes, policy %q", f.Name(), status, len(text), policy)
		}
		if lines := strings.Count(text, "\n"); lines > 250 || strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/", ""), "://") {
			t.Errorf("%s has %d lines, or names another site", f.Name(), lines)
		}
	}
	_, text, _ := ask(t, http.MethodGet, url+"/api/state", "")
	whole := heardOf(t, text)
	s := whole.State
	if s.Total != 3 || s.Tell != 2 || s.Loss != 1 || s.Samples != 10 || len(s.Links) == 0 || len(s.Matrix) != 1 || s.Matrix[0][2] != 3 || whole.About.Controls {
		t.Errorf("the state is %s", text)
	}
}

// heardOf is what the page reads of the first message. What it is told of members has names of its own.
func heardOf(t *testing.T, text string) everything {
	t.Helper()
	var whole struct {
		About About
		State *struct {
			view
			Members []map[string]any `json:"members"`
		}
	}
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	for _, m := range whole.State.Members {
		told := m["id"] != "c"
		for _, name := range []string{"samples", "exchanges", "failed", "heard_seconds"} {
			if told != (m[name] != nil) {
				t.Errorf("of %v is told %s %v", m["id"], name, m[name])
			}
		}
		if known := m["id"] == "a"; known != (m["loss"] != nil) || known != (m["distance"] != nil) || m["state"] != "training" || m["stale"] != false || m["roundTrip"] != nil {
			t.Errorf("of a member is told %v", m)
		}
	}
	if n := len(whole.State.Members); n != 3 {
		t.Errorf("%d members are told of", n)
	}
	return everything{About: whole.About, State: &whole.State.view}
}

// TestShowsTheEnd shows that a run is shown with all its members when the work is done and
// they leave, and that nothing is asked of a peer that has left.
func TestShowsTheEnd(t *testing.T) {
	c := newCalm()
	c.told["b"] = control.Digest{Name: "build-1", Loss: math.NaN(), Received: time.Now()}
	b := calmBoard(c, nil)
	if v := b.see(); v.Total != 3 || v.Members[1].Name != "" && v.Members[2].Name != "" {
		t.Errorf("before the end: %+v", v)
	}
	all := c.members
	c.members = all[:2]
	if v := b.see(); v.Total != 2 || v.Over {
		t.Errorf("one has gone: %+v", v)
	}
	c.members = all
	b.see()
	c.members, c.stats.Over, c.stats.Progress, c.stats.FlockSteps = all[:1], true, 1, 405
	b.Rest()
	c.stats.FlockSteps, c.members = 0, nil
	v := b.whole(nil).State
	if v.Total != 3 || len(v.Members) != 3 || v.Tell != 2 || len(v.Matrix) != 1 || !v.Over || v.FlockSteps != 405 {
		t.Errorf("at the end: %+v", v)
	}
	names := ""
	for _, m := range v.Members {
		names += m.Name
		if m.State != "over" {
			t.Errorf("at the end %s is %s", m.ID, m.State)
		}
	}
	if names != "build-1" {
		t.Errorf("they are called %q", names)
	}
}

// TestAsksForAToken shows that who can reach the dashboard from elsewhere
// needs its token, as a bearer or in the address, which gives a cookie.
func TestAsksForAToken(t *testing.T) {
	d, url := openBoard(t, Config{Address: "0.0.0.0:0"}, calmBoard(newCalm(), nil))
	token := d.guard.token
	if len(token) < 43 || !strings.HasSuffix(d.URL(), "/?token="+token) {
		t.Fatalf("a token of %d characters at %s", len(token), d.URL())
	}
	status, _, header := ask(t, http.MethodGet, url+"/?token="+token, "")
	cookie := header.Get("Set-Cookie")
	if status != http.StatusOK || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("the token in the address: %d, cookie %q", status, cookie)
	}
	kept, _, _ := strings.Cut(cookie, ";")
	for name, c := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"nothing":         {"/", nil, http.StatusUnauthorized},
		"nothing, events": {"/api/events", nil, http.StatusUnauthorized},
		"another token":   {"/?token=" + token[1:] + "x", nil, http.StatusUnauthorized},
		"half a token":    {"/?token=" + token[:20], nil, http.StatusUnauthorized},
		"bearer":          {"/api/state", []string{"Authorization", "Bearer " + token}, http.StatusOK},
		"wrong bearer":    {"/api/state", []string{"Authorization", "Bearer x", "Cookie", kept}, http.StatusUnauthorized},
		"cookie":          {"/api/state", []string{"Cookie", kept}, http.StatusOK},
		"wrong cookie":    {"/api/state", []string{"Cookie", kept + "x"}, http.StatusUnauthorized},
	} {
		if status, text, _ := ask(t, http.MethodGet, url+c.path, "", c.headers...); status != c.want {
			t.Errorf("%s: %d, want %d: %s", name, status, c.want, text)
		}
	}
}

// TestToken shows what a token in a file has to be.
func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for text, good := range map[string]bool{
		"0123456789abcdef\n": true, "short": false, "0123456789abcdef;Path=/": false, "0123456789 abcdef": false, strings.Repeat("a", web.MaxToken+1): false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Listen(Config{Address: "127.0.0.1:0", TokenFile: path})
		if (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && d.guard.token != strings.TrimSpace(text) {
			t.Errorf("%q is read as %q", text, d.guard.token)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Listen(Config{Address: ":0", TokenFile: path + "x"}); err == nil {
		t.Error("no file is no fault")
	}
}

// TestKeepsOtherSitesOut shows that a page of another site can neither look
// nor rule, by a name that points here or by a request of its own.
func TestKeepsOtherSitesOut(t *testing.T) {
	ruled := 0
	d, url := openBoard(t, Config{Address: "localhost:0"}, calmBoard(newCalm(), func(context.Context, ...control.Command) error { ruled++; return nil }))
	own := "http://" + d.web.Addr().String()
	for name, c := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"another name":         {http.MethodGet, []string{"Host", "evil.example:80"}, http.StatusMisdirectedRequest},
		"a name like ours":     {http.MethodGet, []string{"Host", "localhost.evil.example"}, http.StatusMisdirectedRequest},
		"no name":              {http.MethodGet, []string{"Host", ":80"}, http.StatusMisdirectedRequest},
		"localhost":            {http.MethodGet, []string{"Host", "localhost:1234"}, http.StatusOK},
		"IPv6":                 {http.MethodGet, []string{"Host", "[::1]:1234"}, http.StatusOK},
		"looks, other site":    {http.MethodGet, []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		"looks, other port":    {http.MethodGet, []string{"Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		"looks, sandboxed":     {http.MethodGet, []string{"Origin", "null"}, http.StatusForbidden},
		"looks, cross-site":    {http.MethodGet, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, http.StatusForbidden},
		"a link is followed":   {http.MethodGet, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, http.StatusOK},
		"rules, other site":    {http.MethodPost, []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		"rules, form":          {http.MethodPost, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, http.StatusForbidden},
		"rules, the page":      {http.MethodPost, []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		"rules, by a program":  {http.MethodPost, nil, http.StatusOK},
		"rules, another name":  {http.MethodPost, []string{"Host", "evil.example", "Origin", "http://evil.example"}, http.StatusMisdirectedRequest},
		"changes what is none": {http.MethodDelete, nil, http.StatusMethodNotAllowed},
	} {
		path := map[bool]string{true: "/api/state", false: "/api/control"}[c.method == http.MethodGet]
		if c.method != http.MethodGet {
			c.headers = append(c.headers, "Authorization", "Bearer "+d.guard.token)
		}
		if status, text, _ := ask(t, c.method, url+path, `{"action":"pause"}`, c.headers...); status != c.want {
			t.Errorf("%s: %d, want %d: %s", name, status, c.want, text)
		}
	}
	if ruled != 2 {
		t.Errorf("the run was ruled %d times", ruled)
	}
}

// TestRulingTakesTheToken: whoever uses this machine may look at the run, and nobody holds it
// without the token, which the printed address has where there is a key to rule with.
func TestRulingTakesTheToken(t *testing.T) {
	ruled := 0
	d, url := openBoard(t, Config{Address: ":0"}, calmBoard(newCalm(), func(context.Context, ...control.Command) error { ruled++; return nil }))
	token := d.guard.token
	if len(token) < 43 || !strings.HasSuffix(d.URL(), "/?token="+token) || d.Token() != "" {
		t.Fatalf("a token of %d characters at %s, %q asked for", len(token), d.URL(), d.Token())
	}
	_, _, header := ask(t, http.MethodGet, url+"/?token="+token, "")
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	for name, c := range map[string]struct {
		headers []string
		may     bool
	}{
		"nothing":      {nil, false},
		"bearer":       {[]string{"Authorization", "Bearer " + token}, true},
		"wrong bearer": {[]string{"Authorization", "Bearer x", "Cookie", cookie}, false},
		"cookie":       {[]string{"Cookie", cookie}, true},
		"wrong cookie": {[]string{"Cookie", cookie + "x"}, false},
	} {
		var whole struct{ About About }
		status, text, _ := ask(t, http.MethodGet, url+"/api/state", "", c.headers...)
		if err := json.Unmarshal([]byte(text), &whole); err != nil || status != http.StatusOK || whole.About.Controls != c.may {
			t.Errorf("%s: to look is answered %d, controls %v, want %v", name, status, whole.About.Controls, c.may)
		}
		want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[c.may]
		if status, text, _ = ask(t, http.MethodPost, url+"/api/control", `{"action":"pause"}`, c.headers...); status != want {
			t.Errorf("%s: to pause is answered %d, want %d: %s", name, status, want, text)
		}
	}
	if ruled != 2 {
		t.Errorf("the run was ruled %d times", ruled)
	}
	if d, _ := openBoard(t, Config{Address: ":0"}, calmBoard(newCalm(), nil)); strings.Contains(d.URL(), "token") {
		t.Errorf("a token of no use is told: %s", d.URL())
	}
}

// TestOrders shows what orders the page can give, and what becomes of others.
func TestOrders(t *testing.T) {
	var heard []control.Command
	fault := error(nil)
	d, url := openBoard(t, Config{Address: ":0"}, calmBoard(newCalm(), func(_ context.Context, c ...control.Command) error {
		heard = append(heard, c...)
		return fault
	}))
	for _, c := range []struct {
		body string
		want int
	}{
		{`{"action":"pause","reason":"lunch"}`, http.StatusOK},
		{`{"action":"resume"}`, http.StatusOK},
		{`{"action":"stop"}`, http.StatusBadRequest},
		{`{"action":"pause","reason":"` + strings.Repeat("x", maxReason+1) + `"}`, http.StatusBadRequest},
		{`{"action":"pause","reason":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusBadRequest},
		{`nothing`, http.StatusBadRequest},
	} {
		if status, text, _ := ask(t, http.MethodPost, url+"/api/control?token="+d.guard.token, c.body); status != c.want {
			t.Errorf("%.40s: %d, want %d: %s", c.body, status, c.want, text)
		}
	}
	if len(heard) != 2 || heard[0].Kind != control.Pause || heard[0].Why != "lunch" || heard[1].Kind != control.Resume {
		t.Errorf("the run hears %+v", heard)
	}
	fault = errors.New("nobody listens")
	if status, text, _ := ask(t, http.MethodPost, url+"/api/control?token="+d.guard.token, `{"action":"pause"}`); status != http.StatusBadGateway || !strings.Contains(text, "nobody listens") {
		t.Errorf("an order that fails: %d %s", status, text)
	}
	_, url = openBoard(t, Config{Address: ":0"}, calmBoard(newCalm(), nil))
	if status, text, _ := ask(t, http.MethodPost, url+"/api/control", `{"action":"pause"}`); status != http.StatusForbidden || !strings.Contains(text, "--operator-key") {
		t.Errorf("without the operator's key: %d %s", status, text)
	}
}

// listenTo opens a stream and returns its messages' names and texts.
func listenTo(t *testing.T, url string) (next func() (event, data string), status int) {
	t.Helper()
	answer, err := http.Get(url + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewReader(answer.Body)
	return func() (event, data string) {
		for {
			line, err := lines.ReadString('\n')
			switch {
			case err != nil:
				return "", fmt.Sprint(err)
			case line == "\n":
				return event, data
			case strings.HasPrefix(line, "event: "):
				event = strings.TrimSpace(line[7:])
			case strings.HasPrefix(line, "data: "):
				data = line[6:]
			}
		}
	}, answer.StatusCode
}
