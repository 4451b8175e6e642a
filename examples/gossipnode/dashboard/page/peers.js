// The table of peers: sorted by its heads, walked with the arrows.
import { count, doubts, figure, html, named, percent, short, span, text } from "./format.js";

const columns = [
  { name: "Peer", of: (m) => m.name || short(m.id), text: true },
  { name: "Role", of: (m) => (m.rows > 0 ? m.does : m.role), text: true, className: "wide" },
  { name: "Stage", of: (m) => m.stage || null, className: "staged", title: "The part of the model that it trains" },
  { name: "Site", of: (m) => m.site, text: true, className: "wide placed", title: "The network that it says it shares with others" },
  { name: "State", of: (m) => m.state, text: true },
  { name: "Steps", of: (m) => m.steps, show: count },
  { name: "Loss", of: (m) => m.loss, show: figure },
  { name: "Apart", of: (m) => m.distance, show: figure, className: "wide", title: "Estimated distance of its model from the mean of all" },
  { name: "Samples/s", of: (m) => m.samples, show: count, className: "wide" },
  { name: "Exchanges", of: (m) => m.exchanges, show: count, className: "wide" },
  { name: "Failed", of: (m) => m.failed, show: count, className: "wide" },
  { name: "Round trip", of: (m) => m.roundTrip, show: span, className: "wide measured", title: "From this peer, where it has begun exchanges with the other" },
  { name: "Trust", of: (m) => m.judged?.trust ?? null, show: (v) => (v == null ? "" : percent(v, 0)), className: "wide judged", title: "How far this peer believes it: less than 100 % where exchanges with it raise this peer's loss" },
  { name: "Heard", of: (m) => m.heard_seconds, show: (s) => (s == null ? "–" : s < 1 ? "now" : span(s)), className: "wide", title: "Since it last told how it gets on" },
];

export class Peers {
  constructor(table, pick) {
    this.pick = pick;
    this.head = table.tHead;
    this.body = table.tBodies[0];
    this.rows = new Map();
    this.sorted = { column: -1, up: true }; // -1 is the order of the ring
    const row = html("tr", {}, this.head);
    this.heads = columns.map((c, i) => {
      const th = html("th", { className: classOf(c), title: c.title }, row);
      th.scope = "col";
      html("button", { content: c.name }, th).addEventListener("click", () => this.sort(i));
      return th;
    });
    this.body.addEventListener("keydown", (e) => this.move(e));
  }

  sort(column) {
    const s = this.sorted;
    if (s.column === column && !s.up) this.sorted = { column: -1, up: true };
    else this.sorted = { column, up: s.column !== column };
    this.heads.forEach((th, i) => {
      if (i === this.sorted.column) th.setAttribute("aria-sort", this.sorted.up ? "ascending" : "descending");
      else th.removeAttribute("aria-sort");
    });
    this.show(this.state);
  }

  order(members) {
    if (this.sorted.column < 0) return members;
    const { of } = columns[this.sorted.column];
    const sign = this.sorted.up ? 1 : -1;
    return members.toSorted((a, b) => {
      const [x, y] = [of(a), of(b)];
      if (x == null || y == null) return (x == null) - (y == null); // unknown comes last
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    });
  }

  show(state) {
    this.state = state;
    const measured = state.members.some((m) => m.roundTrip != null); // by who begins exchanges only
    this.head.parentElement.classList.toggle("unmeasured", !measured);
    this.head.parentElement.classList.toggle("unstaged", state.members.every((m) => !m.stage));
    this.head.parentElement.classList.toggle("unplaced", state.members.every((m) => !m.site));
    this.head.parentElement.classList.toggle("trusting", state.members.every((m) => !m.judged));
    const ordered = this.order(state.members);
    const here = new Set(ordered.map((m) => m.id));
    for (const [id, row] of this.rows) {
      if (!here.has(id)) {
        row.remove();
        this.rows.delete(id);
      }
    }
    ordered.forEach((m, i) => {
      const row = this.rows.get(m.id) ?? this.add(m);
      this.fill(row, m);
      if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i] ?? null);
    });
    if (![...this.body.rows].some((r) => r.tabIndex === 0) && this.body.rows[0]) this.body.rows[0].tabIndex = 0;
  }

  add(m) {
    const row = html("tr", { className: m.id === this.self ? "own" : "" });
    row.dataset.id = m.id;
    row.tabIndex = -1;
    row.addEventListener("click", () => this.pick(m.id));
    columns.forEach((c, i) => html(i === 0 ? "th" : "td", { className: classOf(c) }, row));
    const name = row.cells[0];
    name.scope = "row";
    name.title = m.id;
    html("span", { className: "dot" }, name);
    html("b", { className: "called" }, name);
    html("code", { content: short(m.id) }, name);
    if (m.id === this.self) html("span", { className: "own-mark", content: "this one" }, name);
    this.rows.set(m.id, row);
    row.classList.toggle("chosen", m.id === this.chosen);
    return row;
  }

  fill(row, m) {
    row.cells[0].firstChild.className = `dot ${m.role}`;
    text(row.cells[0].children[1], m.name);
    row.cells[0].children[2].classList.toggle("spare", named(m, this.state.members));
    columns.forEach((c, i) => {
      if (i === 0) return;
      text(row.cells[i], c.show ? c.show(c.of(m)) : c.of(m));
    });
    row.cells[columns.findIndex((c) => c.name === "State")].dataset.state = m.state;
    row.title = doubts(m);
    row.classList.toggle("lost", m.state === "lost");
    row.classList.toggle("stale", m.stale);
  }

  choose(id) {
    this.chosen = id;
    for (const [other, row] of this.rows) {
      row.classList.toggle("chosen", other === id);
      if (other === id) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  move(e) {
    const row = e.target.closest("tr");
    const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: this.body.firstElementChild, End: this.body.lastElementChild }[e.key];
    if (e.key === "Enter" || e.key === " ") this.pick(row.dataset.id);
    else if (next) {
      row.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else return;
    e.preventDefault();
  }
}

function classOf(c) {
  return [c.text ? "text" : "", c.className ?? ""].join(" ").trim();
}
