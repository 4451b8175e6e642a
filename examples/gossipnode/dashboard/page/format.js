// Numbers, times and names as people read them.

export const short = (id) => (id.length <= 8 ? id : id.slice(-8));

// named tells whether a member has a name that no other has; label is that, or the end of its
// id.
export const named = (m, members) => m.name !== "" && members.every((o) => o.id === m.id || o.name !== m.name);
export const label = (m, members) => (!named(m, members) ? short(m.id).slice(-5) : m.name.length > 14 ? m.name.slice(0, 13) + "…" : m.name);

// word is what the run is about, as this peer sees it.
export function word(s, about) {
  if (s.stopped) return "stopped";
  if (s.over) return "over";
  if (s.paused) return "paused";
  return s.state === "waiting" ? `waiting, ${s.total} of ${about.minPeers} here` : s.state;
}

// ahead is what is to come.
export function ahead(s) {
  if (s.over) return s.progress < 1 ? "ended by the operator" : "the work is done";
  return s.paused ? "held by the operator" : s.left == null ? "" : `${span(s.left)} left`;
}

// tiles are the labels and figures of what is sampled and estimated on the way; at the end
// those of the result stand in their place.
export function tiles(s) {
  const f = s.final;
  if (!f) return { loss: ["Loss", figure(s.loss)], accuracy: ["Accuracy, sampled", percent(s.accuracy)], distance: ["Apart, estimated", figure(s.distance)] };
  const whose = f.peer ? "The result of this peer" : "The result of all peers";
  return {
    loss: ["Loss", figure(f.loss), whose],
    accuracy: ["Accuracy", percent(f.test_accuracy.mean, 2), whose + ", on all held-out data"],
    distance: ["Apart", figure(f.consensus_distance), f.consensus_distance == null ? "Unknown: the others' last exchanges may follow this peer's" : whose + ", measured at the end"],
  };
}

const known = (v) => typeof v === "number" && Number.isFinite(v);

// figure is a number with about three digits that count.
export function figure(v) {
  if (!known(v)) return "–";
  if (v !== 0 && Math.abs(v) < 0.001) return v.toExponential(1);
  return v.toLocaleString("en", { maximumSignificantDigits: 3, useGrouping: true });
}

export function count(v) {
  if (!known(v)) return "–";
  if (v >= 1e6) return (v / 1e6).toFixed(v < 1e7 ? 2 : 1) + " M";
  if (v >= 1e5) return Math.round(v / 1e3) + " k";
  return Math.round(v).toLocaleString("en");
}

export const percent = (v, digits = 1) => (known(v) ? (100 * v).toFixed(digits) + " %" : "–");

// doubts is what this peer says of a member whose exchanges do harm; nothing if it trusts it in full.
export const doubts = (m) => (m.judged ? `trusted at ${percent(m.judged.trust, 0)}: an exchange with it raises this peer's loss by ${figure(m.judged.harm)} of what others change it by` : "");

// span is a time in seconds.
export function span(s) {
  if (!known(s)) return "–";
  if (s < 0.001) return Math.round(s * 1e6) + " µs";
  if (s < 1) return (s * 1000).toPrecision(2) * 1 + " ms";
  if (s < 90) return Math.round(s) + " s";
  if (s < 5400) return Math.floor(s / 60) + " min " + String(Math.round(s % 60)).padStart(2, "0") + " s";
  return Math.floor(s / 3600) + " h " + String(Math.round((s % 3600) / 60)).padStart(2, "0") + " min";
}

export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

// text changes an element only if it has to: a screen reader would repeat it.
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

const svgSpace = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, parent = null) {
  const e = document.createElementNS(svgSpace, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (parent) parent.append(e);
  return e;
}

export function html(name, { className, title, content } = {}, parent = null) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (title) e.title = title;
  if (content !== undefined) e.textContent = content;
  if (parent) parent.append(e);
  return e;
}
