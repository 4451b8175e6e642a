// The flock: peers on a ring, the links between them, and exchanges as light on them.
import { doubts, label, percent, short, svg, text } from "./format.js";

const outer = 238, inner = 206; // radii of the classes
const maxBirds = 48; // lights on their way at once
const glowTime = 1100, flight = 650; // milliseconds
const still = matchMedia("(prefers-reduced-motion: reduce)");
const narrow = matchMedia("(max-width: 46rem)"); // as in parts.css
const mostNamed = { wide: 40, narrow: 12 }; // of peers, for their names not to meet

const key = (a, b) => (a < b ? a + " " + b : b + " " + a);

export class Ring {
  constructor(root, pick) {
    this.root = root;
    this.pick = pick;
    this.ties = svg("g", {}, root);
    this.glows = svg("g", { "aria-hidden": "true" }, root);
    this.birds = svg("g", { "aria-hidden": "true" }, root);
    this.nodes = svg("g", {}, root);
    this.at = new Map(); // id → place and element
    this.names = new Map(); // id → text
    this.lines = new Map(); // pair → path
    this.hot = new Map(); // pair → { until, path }
    this.flying = [];
    this.shape = "";
    root.addEventListener("keydown", (e) => this.move(e));
    narrow.addEventListener("change", () => (this.shape = ""));
  }

  show(state) {
    this.state = state;
    const shape = JSON.stringify([state.members.map((m) => [m.id, m.role]), state.links]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.lay(state);
    }
    for (const m of state.members) this.dress(m);
  }

  // lay places the peers at even distances, those of each class spread over the ring.
  lay(state) {
    const focused = this.nodes.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    const classes = { active: [], passive: [], undecided: [] };
    for (const m of state.members) (classes[m.role] ?? classes.undecided).push(m);
    this.at.clear();
    this.names.clear();
    this.nodes.replaceChildren();
    const radius = Math.max(5, Math.min(19, 420 / Math.max(state.members.length, 1)));
    const ringed = state.members.length <= (narrow.matches ? mostNamed.narrow : mostNamed.wide);
    const put = (m, i) => {
      const angle = (2 * Math.PI * i) / state.members.length - Math.PI / 2;
      const far = m.role === "active" ? outer : m.role === "passive" ? inner : inner * 0.6;
      const [x, y] = [far * Math.cos(angle), far * Math.sin(angle)];
      const g = svg("g", { class: "node" + (m.id === this.self ? " own" : ""), "data-id": m.id, "data-role": m.role, role: "button" }, this.nodes);
      svg("circle", { class: "halo", cx: x, cy: y, r: radius + 5 }, g);
      svg("circle", { class: "body", cx: x, cy: y, r: radius }, g);
      const mark = svg("text", { class: "mark", x, y }, g);
      if (ringed) {
        const reach = outer + 34, right = Math.cos(angle) > 0.15, left = Math.cos(angle) < -0.15;
        const name = svg("text", { class: "name", x: reach * Math.cos(angle), y: reach * Math.sin(angle) * 1.02, "text-anchor": right ? "start" : left ? "end" : "middle" }, g);
        if (narrow.matches) for (const [k, v] of Object.entries({ x, y: y + (y > 1 ? 1 : -1) * (radius + 16), "text-anchor": "middle" })) name.setAttribute(k, v);
        this.names.set(m.id, name);
      }
      g.addEventListener("click", () => this.pick(m.id));
      this.at.set(m.id, { x, y, angle, g, mark });
    };
    const placed = Object.values(classes).flatMap((all, c) => all.map((m, i) => ({ m, at: (i + c / 2) / all.length })));
    placed.sort((a, b) => a.at - b.at).forEach(({ m }, i) => put(m, i));
    this.draw(state);
    this.rove(focused ?? this.state.members[0]?.id, Boolean(focused));
    this.choose(this.chosen);
  }

  draw(state) {
    this.ties.replaceChildren();
    this.glows.replaceChildren();
    this.hot.clear();
    this.lines.clear();
    for (const [i, j] of state.links) {
      const [a, b] = [state.members[i].id, state.members[j].id];
      this.lines.set(key(a, b), svg("path", { class: "tie", d: this.path(a, b) }, this.ties));
    }
  }

  // path bends towards the middle, the more so the nearer the two are.
  path(a, b) {
    const [p, q] = [this.at.get(a), this.at.get(b)];
    const bend = 0.35;
    return `M${p.x} ${p.y}Q${((p.x + q.x) / 2) * bend} ${((p.y + q.y) / 2) * bend} ${q.x} ${q.y}`;
  }

  dress(m) {
    const { g, mark } = this.at.get(m.id);
    const called = label(m, this.state.members);
    g.classList.toggle("lost", m.state === "lost");
    if (this.names.has(m.id)) text(this.names.get(m.id), called);
    text(mark, { paused: "‖", over: "✓", joining: "…", waiting: "…", copying: "↓", lost: "×" }[m.state] ?? "");
    const told = `${m.id === this.self ? "this peer, " : ""}${called}, ${m.role}, ${m.state}, step ${m.steps}`;
    if (g.getAttribute("aria-label") !== told) g.setAttribute("aria-label", told);
  }

  describe(id) {
    const m = this.state.members.find((m) => m.id === id);
    if (!m || m.state === "lost") return `${m?.name || short(id)} is no member any more.`;
    const i = this.state.members.indexOf(m);
    const ties = this.state.links.filter((l) => l.includes(i)).length;
    const began = this.state.matrix.filter(([from]) => from === i).reduce((sum, [, , n]) => sum + n, 0);
    const told = m.exchanges == null ? "" : `; ${m.exchanges} exchanges, ${began} of which it began`;
    const by = m.harm && this.state.members.find((o) => o.id === m.harm.partner);
    const harmed = by ? `; exchanges with ${label(by, this.state.members)} raise its loss, and it trusts that one at ${percent(m.harm.trust, 0)}` : "";
    return `${m.name} ${short(id)}: ${m.role}, ${m.state}, ${ties} neighbours${told}${m.stage ? "; stage " + m.stage : ""}${m.site ? "; at " + m.site : ""}${m.unreachable ? "; others cannot dial it" : ""}${m.judged ? "; " + doubts(m) : ""}${harmed}.`;
  }

  choose(id) {
    this.chosen = id;
    const near = new Set([id]);
    for (const [pair, line] of this.lines) {
      const [a, b] = pair.split(" ");
      const touches = a === id || b === id;
      line.classList.toggle("near", touches);
      if (touches) near.add(a).add(b);
    }
    for (const [other, { g }] of this.at) {
      g.classList.toggle("chosen", other === id);
      g.classList.toggle("dim", id !== null && id !== undefined && this.at.has(id) && !near.has(other));
    }
  }

  // rove lets one peer be reached with the tabulator; arrows go on from there.
  rove(id, focus) {
    for (const [other, { g }] of this.at) {
      g.setAttribute("tabindex", other === id ? "0" : "-1");
      if (other === id && focus) g.focus();
    }
  }

  move(e) {
    const id = document.activeElement?.dataset?.id;
    if (!id || !this.at.has(id)) return;
    if (e.key === "Enter" || e.key === " ") this.pick(id);
    else if (["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"].includes(e.key)) {
      const around = [...this.at.keys()].sort((a, b) => turn(this.at.get(a)) - turn(this.at.get(b)));
      const by = e.key === "ArrowRight" || e.key === "ArrowDown" ? 1 : around.length - 1;
      this.rove(around[(around.indexOf(id) + by) % around.length], true);
    } else return;
    e.preventDefault();
  }

  // light shows exchanges: those of others, told in sums, spread over the time that
  // they took.
  light(list) {
    for (const { from, to, count, over } of list) {
      if (!this.at.has(from) || !this.at.has(to)) continue;
      const times = Math.min(count, over > 0 ? 6 : 3);
      const within = 1000 * Math.min(over > 0 ? over : 0.25, 5);
      for (let i = 0; i < times; i++) setTimeout(() => this.flash(from, to), within * ((i + Math.random()) / times));
    }
  }

  flash(from, to) {
    if (document.hidden || !this.at.has(from) || !this.at.has(to)) return;
    const pair = key(from, to);
    let glow = this.hot.get(pair);
    if (!glow) {
      glow = { path: svg("path", { class: "glow", d: this.path(from, to) }, this.glows) };
      this.hot.set(pair, glow);
    }
    glow.until = performance.now() + glowTime;
    if (!still.matches && this.flying.length < maxBirds) {
      const bird = svg("circle", { class: "bird", r: 4.5 }, this.birds);
      this.flying.push({ bird, path: glow.path, length: glow.path.getTotalLength(), back: glow.path.getAttribute("d") !== this.path(from, to), from: performance.now() });
    }
    this.frame ??= requestAnimationFrame((now) => this.step(now));
  }

  step(now) {
    for (const [pair, glow] of this.hot) {
      const heat = (glow.until - now) / glowTime;
      if (heat <= 0) {
        glow.path.remove();
        this.hot.delete(pair);
      } else glow.path.style.opacity = still.matches ? 0.9 : 0.9 * heat;
    }
    this.flying = this.flying.filter(({ bird, path, length, back, from }) => {
      const share = (now - from) / flight;
      if (share >= 1 || !path.isConnected) {
        bird.remove();
        return false;
      }
      const at = path.getPointAtLength(length * (back ? 1 - share : share));
      bird.setAttribute("cx", at.x);
      bird.setAttribute("cy", at.y);
      return true;
    });
    this.frame = this.hot.size + this.flying.length > 0 ? requestAnimationFrame((t) => this.step(t)) : undefined;
  }
}

const turn = (place) => (place.angle + 5 * Math.PI) % (2 * Math.PI);
