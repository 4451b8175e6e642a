package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/web"
)

const (
	// tokenCookie and the port are the name of the cookie: cookies do not depend on the port, and one machine may
	// serve several dashboards.
	tokenCookie = "murmuration-"
	// pagePolicy allows the page to load only what this server serves.
	pagePolicy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// guard checks who may use the dashboard. If the address is open to other machines, all need a token. Otherwise
// everybody on this machine may look, but controlling the run needs the token. A page of another site, which a
// browser on this machine shows, must not reach the dashboard under a name of that site.
type guard struct {
	token, cookie string
	named         string // the host in the address
	open          bool   // looking needs no token
}

// newGuard reads the token from a file, or draws one.
func newGuard(at net.Addr, given, file string) (guard, error) {
	g := guard{}
	g.named, _, _ = net.SplitHostPort(given)
	_, port, _ := net.SplitHostPort(at.String())
	g.cookie = tokenCookie + port
	g.open = file == "" && web.IsLocal(at)
	token, err := web.Token(file)
	g.token = token
	return g, err
}

// restrict passes only allowed requests on to next.
func (g guard) restrict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !g.hostFits(r.Host):
			http.Error(w, "This dashboard is not served under that name: open it by its address.", http.StatusMisdirectedRequest)
		case !ownOrigin(r):
			http.Error(w, "Another site asks for this: open the dashboard itself.", http.StatusForbidden)
		case !g.authorize(w, r) && !g.open:
			h.Set("WWW-Authenticate", `Bearer realm="dashboard"`)
			http.Error(w, "This dashboard asks for a token: open the address that the peer printed when it started, with its ?token=", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hostFits tells whether a request was meant for this server: its host is an IP address, localhost, or the host in
// the address. The owner of any other name could let it point here. Such a name is accepted only if the token is
// required, which a page under that name does not have.
func (g guard) hostFits(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	return web.NamesMachine(host) || strings.EqualFold(name, g.named) || !g.open && name != ""
}

// ownOrigin tells whether a request comes from the page that this server serves, or from no page: browsers name the
// page that sends a changing request.
func ownOrigin(r *http.Request) bool {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && (changes || r.Header.Get("Sec-Fetch-Mode") != "navigate") {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Scheme != "" && strings.EqualFold(from.Host, r.Host)
}

// authorize tells whether a request has the token. If the token is in the address, it sets a cookie with it, which
// further requests of the page send.
func (g guard) authorize(w http.ResponseWriter, r *http.Request) bool {
	known := g.knows(r)
	if known && r.URL.Query().Has("token") {
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	return known
}

// knows tells whether a request has the token.
func (g guard) knows(r *http.Request) bool {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.is(bearer)
	}
	if given := r.URL.Query().Get("token"); given != "" {
		return g.is(given)
	}
	kept, err := r.Cookie(g.cookie)
	return err == nil && g.is(kept.Value)
}

// is compares in constant time: the time does not depend on the token's content or length.
func (g guard) is(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
