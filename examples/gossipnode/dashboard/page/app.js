// The page: what the stream tells goes to the parts that show it.
import { ahead, clock, count, figure, html, named, percent, short, text, tiles, word } from "./format.js";
import { Ring } from "./ring.js";
import { Curve } from "./curves.js";
import { Peers } from "./peers.js";
import { showMatrix } from "./matrix.js";
import { Controls } from "./controls.js";

const $ = (id) => document.getElementById(id);
const maxEvents = 40;

if (location.search) history.replaceState(null, "", location.pathname); // the token is in the cookie now

const choice = {
  id: null,
  pick(id) {
    this.id = this.id === id ? null : id;
    ring.choose(this.id);
    peers.choose(this.id);
    text($("chosen"), this.id ? ring.describe(this.id) : "A line lights up when two peers average their models.");
  },
};
const ring = new Ring($("ring"), (id) => choice.pick(id));
const peers = new Peers($("table"), (id) => choice.pick(id));
const controls = new Controls($("pause"), notice);
const curves = [
  new Curve($("curve-loss"), { name: "Training loss", key: "loss", low: "lossLow", high: "lossHigh", log: "wide", color: "loss", show: figure }),
  new Curve($("curve-accuracy"), { name: "Accuracy on up to 300 held-out pictures, this peer", key: "accuracy", color: "accuracy", show: (v) => percent(v), span: 0.024, most: 1 }),
  new Curve($("curve-distance"), { name: "Distance of models from their mean, estimated", key: "distance", color: "distance", show: figure, log: true }),
];
let about = null;
let points = [];
let members = [];

function notice(message) {
  text($("notice"), message);
  $("notice").hidden = !message;
}

function showAbout(a) {
  about = a;
  document.title = `${a.run} · murmuration`;
  text($("run"), a.run);
  text($("about"), [a.dataset, a.model, a.strategy, a.codec].join(" · "));
  text($("self"), a.self);
  ring.self = peers.self = a.self;
  controls.may(a.controls);
}

function called(id) {
  const m = members.find((m) => m.id === id);
  return id === about?.self ? "this peer" : m && named(m, members) ? m.name : short(id);
}

function showState(s) {
  members = s.members;
  const state = word(s, about);
  text($("state"), state);
  $("state").dataset.state = state.split(",")[0];
  const done = Math.min(100, 100 * s.progress);
  $("filled").style.width = done + "%";
  $("bar").setAttribute("aria-valuenow", done.toFixed(1));
  text($("percent"), done.toFixed(done < 10 ? 1 : 0) + " %");
  text($("done"), s.target ? `${count(s.flockSteps)} of ${count(s.target)} steps of all peers` : `${count(s.flockSteps)} steps of all peers`);
  text($("left"), ahead(s));
  for (const [name, [label, value, title]] of Object.entries(tiles(s))) {
    const tile = $("tile-" + name);
    text(tile, value);
    text(tile.previousElementSibling, label);
    if (title) tile.parentElement.title = title;
  }
  text($("tile-samples"), count(s.samples));
  text($("tile-peers"), s.lost ? `${s.total} (${s.lost} lost)` : String(s.total));
  text($("tile-bits"), figure(s.bits || null));
  const silent = s.total - s.tell;
  text($("tell"), silent > 0 ? `${s.tell} of ${s.total} tell how they get on; the others have only come, are of an older release, or run with --digests -1s` : "as each tells it");
  showAlarms(s.alarms ?? []);
  controls.show(s);
  ring.show(s);
  peers.show(s);
  showMatrix($("matrix"), s);
  if (choice.id) text($("chosen"), ring.describe(choice.id));
  nameEvents();
}

// showAlarms lists what a person should look at; the list is told anew only if it has changed, so that it is read out once.
function showAlarms(list) {
  const lines = list.map((a) => `${called(a.peer)}: ${a.text}`);
  const now = list.map((a) => a.peer + a.alarm).join();
  $("alarms").hidden = !list.length;
  if ($("alarms").dataset.now !== now) $("alarms").replaceChildren(...lines.map((content) => html("li", { content })));
  else lines.forEach((line, i) => text($("alarms").children[i], line));
  $("alarms").dataset.now = now;
}

function showCurves() {
  for (const c of curves) c.show(points);
}

// addPoint adds to the curves, as the server does for those who come later.
function addPoint(p) {
  if (points.at(-1)?.steps === p.steps) points[points.length - 1] = p;
  else points.push(p);
  if (points.length > 2400) points = points.filter((_, i) => i % 2 === 0);
}

function addEvents(list) {
  for (const e of list) {
    const li = html("li", { className: e.kind });
    html("time", { content: clock(e.at) }, li);
    const told = html("span", { className: e.kind, title: e.detail, content: e.text }, li);
    if (e.peer) Object.assign(told.dataset, { peer: e.peer, text: e.text });
    $("events").prepend(li);
  }
  while ($("events").children.length > maxEvents) $("events").lastChild.remove();
  nameEvents();
}

// nameEvents says whom events are about, by the names that are known by now.
function nameEvents() {
  for (const e of $("events").querySelectorAll("[data-peer]")) text(e, `${called(e.dataset.peer)} ${e.dataset.text}`);
}

function listen() {
  const stream = new EventSource("api/events");
  const on = (name, take) => stream.addEventListener(name, (e) => take(JSON.parse(e.data)));
  on("whole", (w) => {
    notice("");
    showAbout(w.about);
    points = w.history ?? [];
    $("events").replaceChildren();
    showState(w.state);
    addEvents(w.events ?? []);
    showCurves();
  });
  on("state", (s) => {
    showState(s);
    addPoint(s.point);
    showCurves();
  });
  on("exchanges", (list) => ring.light(list));
  on("events", addEvents);
  stream.onerror = () => {
    $("state").dataset.state = "lost";
    $("pause").hidden = true;
    text($("state"), "no answer");
    notice("The peer does not answer: it has ended, or cannot be reached. What it said last is below; it is asked again every few seconds.");
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

listen();
