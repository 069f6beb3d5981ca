import { ask, follow, link, nameOf, state } from "./api.js";
import { count, h } from "./dom.js";
import { List } from "./list.js";
import { ofAll, ofObject } from "./views.js";

const main = document.getElementById("main");
const filter = document.getElementById("filter");
const status = document.getElementById("state");

// shown is the view in the main part; key identifies it.
let shown, key;

async function show() {
  const now = state();
  const views = now.object ? ofObject : ofAll;
  const view = now.view in views ? now.view : Object.keys(views)[0];
  const wanted = new URLSearchParams({ ...now, view, token: "" }).toString();
  document.body.classList.toggle("object", Boolean(now.object));
  navigation(now, view);
  if (wanted === key && shown?.update) return shown.update();
  const place = wanted === key ? main.scrollTop : 0;
  let element;
  try {
    element = await views[view](now.object, now);
  } catch (error) {
    element = h("p", { class: "bad" }, error.message);
  }
  if (new URLSearchParams({ ...state(), view, token: "" }).toString() !== wanted) return; // another view was opened
  main.replaceChildren(...heading(now, view), element);
  shown = element;
  await element.show?.();
  main.scrollTop = place;
  if (key !== undefined && key !== wanted) document.title = (now.object ? now.object + " – " : "") + view + " – Koboshi inspector";
  key = wanted;
}

function heading(now, current) {
  if (!now.object) return [];
  return [
    h("a", { class: "back", href: link({}) }, "← Objects"),
    h("h1", {}, now.object),
    tabs(Object.keys(ofObject), current, now.object),
  ];
}

const tabs = (names, current, object) => h("nav", { class: "tabs", "aria-label": "Views of the object" },
  names.map((view) => h("a", { href: link({ object, view }), "aria-current": view === current ? "page" : undefined }, view)));

function navigation(now, current) {
  document.getElementById("home").href = link({});
  document.getElementById("everything").replaceChildren(...Object.keys(ofAll).slice(1).map((view) =>
    h("a", { href: link({ view }), "aria-current": !now.object && view === current ? "page" : undefined }, view === "why" ? "reconciles" : view)));
}

const objects = new List(document.getElementById("objects"), "Objects", {
  fetch: async (from, to) => (await ask("objects", { filter: filter.value, offset: from, limit: to - from })).objects,
  draw: (row) => [
    h("span", { class: "grow", title: nameOf(row.object) }, h("span", { class: "kind" }, row.object.kind + " "), [row.object.namespace, row.object.name].filter(Boolean).join("/")),
    row.notices ? h("span", { class: "mark", title: count(row.notices, "notice") }, "!") : "",
    h("span", { class: "kind" }, row.summary?.startsWith("Ready=False") ? "not ready" : ""),
  ],
  open: (row) => { location.hash = link({ object: nameOf(row.object), view: state().object ? state().view : "timeline" }); },
});
objects.classes = (row) => (row.gone ? ["gone"] : []);

async function refreshObjects() {
  const { total } = await ask("objects", { filter: filter.value, limit: 1 });
  document.getElementById("total").textContent = count(total, "object");
  await objects.set(total);
}

filter.addEventListener("input", () => {
  objects.chosen = -1;
  objects.element.scrollTop = 0;
  refreshObjects();
});
filter.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") {
    event.preventDefault();
    objects.element.focus();
    objects.select(Math.max(0, objects.chosen));
  }
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment holds the state of the page
  main.focus();
});

// Keys: / goes to the filter, o to the list of objects, digits to the views, escape back.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const now = state();
  const names = Object.keys(now.object ? ofObject : ofAll);
  if (event.key === "/") {
    event.preventDefault();
    filter.focus();
  } else if (event.key === "o") {
    objects.element.focus();
  } else if (event.key === "Escape") {
    location.hash = link({});
  } else if (names[event.key - 1]) {
    location.hash = link({ object: now.object, view: names[event.key - 1] });
  }
});

window.addEventListener("hashchange", show);

// Changes that come while the page is being drawn are drawn together.
let drawing = false, again = false, drawn = -1;
async function changed(seq) {
  if (seq === drawn) return;
  again = true;
  if (drawing) return;
  drawing = true;
  while (again) {
    again = false;
    drawn = seq;
    try {
      await Promise.all([refreshObjects(), show()]);
    } catch (error) {
      lost(error.message);
    }
  }
  drawing = false;
}

function lost(text) {
  status.textContent = text || "live";
  status.classList.toggle("lost", text !== "");
}

show();
follow(changed, lost);
