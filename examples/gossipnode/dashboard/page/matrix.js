// Who met whom: rows are peers that begin exchanges, columns those that serve them.
import { count, html, label, text } from "./format.js";

const maxShown = 64; // of either class
const dense = 12; // from so many columns on, cells have no figures

let shape = "";

export function showMatrix(table, state) {
  const places = state.members.map((_, i) => i).filter((i) => state.members[i].state !== "lost");
  const from = places.filter((i) => state.members[i].role === "active" || state.matrix.some((m) => m[0] === i)).slice(0, maxShown);
  const to = places.filter((i) => state.members[i].role === "passive" || state.matrix.some((m) => m[1] === i)).slice(0, maxShown);
  const name = (i) => label(state.members[i], state.members);
  const now = JSON.stringify([from.map((i) => [state.members[i].id, name(i)]), to.map((i) => [state.members[i].id, name(i)])]);
  if (now !== shape) {
    shape = now;
    lay(table, state, from, to, name);
  }
  const most = Math.max(1, ...state.matrix.map((m) => m[2]));
  const counts = new Map(state.matrix.map(([a, b, n]) => [a + " " + b, n]));
  from.forEach((a, r) => {
    to.forEach((b, c) => {
      const n = counts.get(a + " " + b) ?? 0;
      const cell = table.tBodies[0].rows[r].cells[c + 1];
      text(cell, n ? count(n) : "");
      cell.style.setProperty("--share", n / most);
      cell.title = n ? `${name(a)} began ${n} exchanges with ${name(b)}` : "";
    });
  });
}

function lay(table, state, from, to, name) {
  table.replaceChildren();
  table.classList.toggle("dense", to.length >= dense);
  const head = html("tr", {}, html("thead", {}, table));
  html("th", { content: "from / to" }, head);
  for (const b of to) html("th", { content: name(b), title: state.members[b].id }, head).scope = "col";
  const body = html("tbody", {}, table);
  for (const a of from) {
    const row = html("tr", {}, body);
    html("th", { content: name(a), title: state.members[a].id }, row).scope = "row";
    for (let i = 0; i < to.length; i++) html("td", {}, row);
  }
}
