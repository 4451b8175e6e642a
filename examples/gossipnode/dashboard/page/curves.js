// A curve over the steps of the flock, with the range between peers if it is known.
import { count, html, svg, text } from "./format.js";

const height = 168, foot = 18, side = 44; // in pixels: of the drawing, and of its axes
const wide = 50; // times apart

export class Curve {
  constructor(figure, options) {
    this.o = options;
    this.figure = figure;
    const caption = html("figcaption", {}, figure);
    this.name = html("span", { content: options.name }, caption);
    this.value = html("b", { content: "–" }, caption);
    this.svg = svg("svg", { role: "img" }, figure);
    this.grid = svg("g", { "aria-hidden": "true" }, this.svg);
    if (options.low) this.band = svg("path", { class: `band ${options.color}` }, this.svg);
    this.line = svg("path", { class: `line ${options.color}` }, this.svg);
    this.cross = svg("g", { "aria-hidden": "true" }, this.svg);
    this.points = [];
    this.mark = null; // the place of the point that is looked at
    new ResizeObserver(() => this.draw()).observe(figure);
    figure.addEventListener("pointermove", (e) => this.look(this.nearest(e.clientX - this.svg.getBoundingClientRect().left)));
    figure.addEventListener("pointerleave", () => this.look(null));
    figure.addEventListener("blur", () => this.look(null));
    figure.addEventListener("keydown", (e) => this.walk(e));
  }

  // show draws points; the scale is logarithmic if it is to be, or "wide" and the values
  // are far apart.
  show(points) {
    const known = points.filter((p) => p[this.o.key] != null);
    const values = known.map((p) => p[this.o.key]).filter((v) => v > 0);
    this.log = this.o.log === true || (this.o.log === "wide" && Math.max(...values) > wide * Math.min(...values));
    this.points = this.log ? known.filter((p) => p[this.o.key] > 0) : known;
    this.draw();
  }

  // scales maps steps and values to the drawing: the axis fits the values, but is no shorter
  // than span and does not go beyond most.
  scales(width) {
    const steps = this.points.map((p) => p.steps);
    const values = this.points.flatMap((p) => [p[this.o.key], p[this.o.low], p[this.o.high]].filter((v) => v != null && (!this.log || v > 0)));
    const of = this.log ? Math.log10 : (v) => v;
    let low = of(Math.min(...values)), high = of(Math.max(...values));
    const pad = Math.max((high - low) * 0.06, ((this.o.span ?? (high - low < 1e-9 ? 1 : 0)) - (high - low)) / 2);
    [low, high] = [low - pad, high + pad];
    const over = Math.max(0, high - (this.o.most ?? Infinity));
    [low, high] = [low - Math.min(over, pad), high - over];
    const [first, last] = [steps[0], Math.max(steps.at(-1), steps[0] + 1)];
    return {
      x: (s) => side + ((s - first) / (last - first)) * (width - side - 6),
      y: (v) => 6 + (1 - (of(v) - low) / (high - low)) * (height - foot - 6),
      low, high, first, last,
    };
  }

  draw() {
    const width = this.figure.clientWidth;
    if (width < 60) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.grid.replaceChildren();
    if (this.points.length === 0) {
      const t = svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, this.grid);
      t.textContent = "nothing measured yet";
      return;
    }
    const s = (this.scale = this.scales(width));
    this.axes(s, width);
    const { key, low, high, show, name } = this.o;
    const at = (p, v) => `${s.x(p.steps).toFixed(1)} ${s.y(v).toFixed(1)}`;
    this.line.setAttribute("d", "M" + this.points.map((p) => at(p, p[key])).join("L"));
    if (this.band) {
      const wide = this.points.filter((p) => p[low] != null && p[high] != null);
      this.band.setAttribute("d", wide.length < 2 ? "" : "M" + wide.map((p) => at(p, p[high])).join("L") + "L" + wide.toReversed().map((p) => at(p, p[low])).join("L") + "Z");
    }
    const last = this.points.at(-1);
    this.svg.setAttribute("aria-label", `${name}: ${show(last[key])} at step ${count(last.steps)}, ${show(this.points[0][key])} at step ${count(this.points[0].steps)}`);
    this.look(this.mark);
  }

  axes(s, width) {
    for (const v of ticks(s.low, s.high, this.log)) {
      const y = s.y(v);
      svg("line", { class: "grid", x1: side, x2: width - 6, y1: y, y2: y }, this.grid);
      svg("text", { x: side - 6, y: y + 4, "text-anchor": "end" }, this.grid).textContent = this.o.show(v);
    }
    svg("text", { x: side, y: height - 3 }, this.grid).textContent = count(s.first);
    svg("text", { x: width - 6, y: height - 3, "text-anchor": "end" }, this.grid).textContent = count(s.last) + " steps";
  }

  nearest(x) {
    if (!this.scale || this.points.length === 0) return null;
    let best = 0;
    this.points.forEach((p, i) => {
      if (Math.abs(this.scale.x(p.steps) - x) < Math.abs(this.scale.x(this.points[best].steps) - x)) best = i;
    });
    return best;
  }

  look(place) {
    this.cross.replaceChildren();
    const p = place === null ? undefined : this.points[Math.min(place, this.points.length - 1)];
    this.mark = p ? place : null;
    const shown = p ?? this.points.at(-1);
    if (!shown) return;
    const { key, low, high, show, color } = this.o;
    const range = shown[low] != null && shown[high] != null && shown[high] > shown[low] ? ` (${show(shown[low])} to ${show(shown[high])})` : "";
    text(this.value, (p ? `step ${count(p.steps)}: ` : "") + show(shown[key]) + range);
    if (!p) return;
    const [x, y] = [this.scale.x(p.steps), this.scale.y(p[key])];
    svg("line", { class: "cross", x1: x, x2: x, y1: 4, y2: height - foot }, this.cross);
    svg("circle", { class: color, cx: x, cy: y, r: 4 }, this.cross);
  }

  walk(e) {
    const last = this.points.length - 1, by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[e.key];
    if (e.key === "Escape") this.look(null);
    else if (by !== undefined && last >= 0) {
      this.look(Math.max(0, Math.min(last, (this.mark ?? last) + by)));
      e.preventDefault();
    }
  }
}

// ticks are two to five round values; on a logarithmic scale low and high are powers.
function ticks(low, high, log) {
  if (log && high - low < 1) return ticks(10 ** low, 10 ** high, false);
  if (log) {
    const all = [];
    for (let e = Math.floor(low); e <= high; e++) for (const m of high - low > 2 ? [1] : [1, 2, 5]) all.push(m * 10 ** e);
    const fit = all.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
    return fit.length > 5 ? fit.filter((_, i) => i % Math.ceil(fit.length / 5) === 0) : fit;
  }
  const rough = (high - low) / 4, unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5].find((m) => m * unit >= rough) ?? 10);
  const all = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) all.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return all;
}
