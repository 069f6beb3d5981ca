import { ask, link, nameOf, offersReplay, replay, save, shortName } from "./api.js";
import { count, h, seconds, span } from "./dom.js";
import { List } from "./list.js";

// Each view returns an element for the main part of the page. A view with a method update is
// told about changes; others are drawn again.

export const ofObject = {
  timeline, why, writes, diff, owners, conditions, managers, admissions, content,
};
export const ofAll = { overview, why, writes, admissions, permissions };

const objectLink = (ref, view = "timeline") => h("a", { href: link({ object: nameOf(ref), view }) }, shortName(ref));

const diffLink = (ref, to, text) => h("a", { href: link({ object: nameOf(ref), view: "diff", to }) }, text);

const nothing = (text) => h("p", { class: "soft" }, text);

async function overview() {
  const [o, recent] = await Promise.all([ask("overview"), ask("why", { limit: 20 })]);
  const facts = [
    count(o.objects, "object"), count(o.reconciles, "reconcile"),
    `${count(o.writes, "write")} (${o.noOps} changed nothing, ${o.failed} failed)`,
    count(o.admissions, "webhook call"), count(o.errors, "logged error"), seconds(o.last),
  ];
  return h("div", {},
    h("h1", {}, o.subject || "Session"),
    h("p", { class: "soft" }, facts.join(" · "), " · ", h("button", { onclick: save }, "Export")),
    h("ul", { class: "notices" }, o.notices.map(notice)),
    o.lastError && h("p", { class: "bad" }, "Last error: " + o.lastError),
    h("h2", {}, "Instances"),
    o.instances.length ? h("ul", {}, o.instances.map((i) => h("li", {}, instance(i)))) : nothing("None was started by this session."),
    h("h2", {}, "Recent reconciles"),
    recent.length ? recent.reverse().map((r) => reconcile(r)) : nothing("None yet."));
}

function notice(n) {
  const view = { field: "writes", "no-op": "writes", fight: "timeline", conflict: "writes" }[n.kind];
  const more = view && n.object.name ? [" ", objectLink(n.object, view)] : [];
  return h("li", { class: n.level }, n.level === "warning" ? h("strong", {}, "! ") : "", n.text, more);
}

function instance(i) {
  const start = `${i.name}, process ${i.pid}, since ${seconds(i.started)}`;
  if (!i.ended) return start;
  return `${start}, ${i.how}${i.how === "exited" ? " with code " + i.exitCode : ""} at ${seconds(i.ended)}`;
}

async function why(object) {
  const all = await ask("why", { object, limit: 100 });
  if (all.length === 0) return nothing("No reconcile is known.");
  return h("div", {}, all.reverse().map((r) => reconcile(r)));
}

function reconcile(r) {
  const name = r.id.startsWith("~") ? `inferred reconcile ${r.id}` : `reconcile ${r.id}`;
  const rows = [];
  const add = (head, at, ...body) => rows.push(h("dt", {}, head), h("dd", { class: "at" }, at), h("dd", {}, ...body));
  if (r.why) add("because", "", r.why);
  if (r.dropped) add("because", "", `of ${r.dropped} earlier events, which are not shown`);
  for (const c of r.causes) add("because", seconds(c.at), cause(c));
  if (r.queue) add("queue", "", queue(r.queue));
  for (const w of r.writes) add("wrote", seconds(w.at), writeLine(w));
  if (r.writes.length === 0) add("wrote", "", "nothing");
  if (r.error) add("error", seconds(r.ended), h("span", { class: "bad" }, r.error));
  if (r.result) add("result", seconds(r.ended), r.result);
  return h("section", { class: "card" },
    h("h3", {}, objectLink(r.object, "why"), `: ${name}, ${span(r.ended - r.began)}`),
    h("p", { class: "soft" }, r.inferred.length === 0 ? r.instance : `${r.instance}, inferred: ${r.inferred.join(", ")}`),
    h("dl", { class: "facts" }, rows));
}

function queue(q) {
  const parts = [`${q.waiting} ${q.waiting === 1 ? "other" : "others"} waiting`];
  if (q.waited) parts.unshift(`waited ${span(q.waited)}`);
  if (q.failures) parts.push(`after ${q.failures} ${q.failures === 1 ? "error" : "errors"}`);
  if (q.priority) parts.push(`priority ${q.priority}`);
  return parts.join(", ");
}

function cause(c) {
  const parts = [objectLink(c.object), c.relation === "itself" ? "" : c.relation === "mapped" ? ` (mapped by ${c.handler})` : ` (${c.relation})`, " was ", c.type.toLowerCase()];
  if (c.changed) parts.push(": ", diffLink(c.object, c.resourceVersion, c.changed.join(", ")));
  if (c.manager) parts.push(` by ${c.manager}`);
  if (c.own) parts.push(", the controller's own write in " + c.own);
  return h("span", {}, parts);
}

function writeLine(w) {
  const verb = w.subresource ? `${w.verb} ${w.subresource}` : w.verb;
  const answer = w.code ? `${w.code}${w.reason ? " " + w.reason : ""}` : "no answer";
  const parts = [`${verb} `, objectLink(w.object), `: ${answer}`];
  if (w.message) parts.push(": " + w.message);
  if (w.noOp) parts.push(", changed nothing");
  else if (w.changed) parts.push(": ", diffLink(w.object, w.after, w.changed.slice(0, 6).join(", ") + (w.changed.length > 6 ? ` and ${w.changed.length - 6} more` : "")));
  return h("span", { class: w.failed ? "bad" : "" }, parts);
}

// rows returns a view of many items, each on one line, with the chosen one below.
function rows(label, load, draw, detail) {
  const listed = h("div", { class: "list", id: "rows" });
  const below = h("div", { class: "detail" }, nothing("Choose a line to see all of it."));
  let items = [];
  const list = new List(listed, label, {
    fetch: async (from, to) => items.slice(from, to),
    draw,
    open: async (item) => below.replaceChildren(await detail(item)),
  });
  list.sticky = true;
  const view = h("div", { class: "split" }, listed, below);
  view.update = async () => {
    items = await load();
    await list.set(items.length);
  };
  view.show = async () => {
    await view.update();
    listed.scrollTop = listed.scrollHeight; // the most recent
  };
  return view;
}

function timeline(object) {
  return rows("Timeline", () => ask("timeline", { object, limit: 20000 }),
    (i) => [
      h("span", { class: "at" }, seconds(i.at)), h("span", { class: "kind" }, i.kind),
      h("span", { class: "grow" + (i.bad ? " bad" : "") }, i.text + (i.changed ? ": " + i.changed.join(", ") : "")),
    ],
    async (i) => h("div", {},
      h("p", { class: i.bad ? "bad" : "" }, i.text),
      i.changed && h("p", {}, "Changed ", h("a", { href: link({ object, view: "diff", to: i.resourceVersion }) }, i.changed.join(", ")), i.manager ? " by " + i.manager : ""),
      i.reconcile && h("p", {}, "In the reconcile ", h("a", { href: link({ object, view: "why" }) }, i.reconcile)),
      h("pre", {}, JSON.stringify(await ask("entry", { seq: i.seq }), null, 2))));
}

function writes(object) {
  return rows("Writes", () => ask("writes", { object, limit: 20000 }),
    (w) => [
      h("span", { class: "at" }, seconds(w.at)),
      h("span", { class: "grow" + (w.failed ? " bad" : "") }, `${w.verb}${w.subresource ? " " + w.subresource : ""} ${shortName(w.object)}: ${w.code}`,
        w.noOp ? ", changed nothing" : w.changed ? ": " + w.changed.join(", ") : ""),
    ],
    async (w) => h("div", {}, h("p", {}, writeLine(w)), h("pre", {}, JSON.stringify(await ask("entry", { seq: w.seq }), null, 2))));
}

async function diff(object, { from, to }) {
  const [versions, d] = await Promise.all([ask("versions", { object }), ask("diff", { object, from, to })]);
  const choice = (label, chosen, key) => h("select", {
    "aria-label": label,
    onchange: (event) => { location.hash = link({ object, view: "diff", from: d.from || "", to: d.to, [key]: event.target.value }); },
  }, versions.map((v) => h("option", { value: v.resourceVersion, selected: v.resourceVersion === chosen }, `${v.resourceVersion} at ${seconds(v.at)}`)));
  const own = d.changes.filter((c) => !c.server);
  const server = d.changes.filter((c) => c.server);
  return h("div", {},
    h("p", {}, "From ", choice("Earlier version", d.from, "from"), " to ", choice("Later version", d.to, "to")),
    own.length ? changes(own) : nothing("Nothing differs, except fields that the server maintains."),
    server.length > 0 && h("details", {}, h("summary", {}, count(server.length, "field") + " that the server maintains"), changes(server)));
}

function changes(all) {
  const value = (v) => (v === undefined ? "" : h("code", {}, typeof v === "string" ? v : JSON.stringify(v)));
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Field", "Before", "After"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, all.map((c) => h("tr", {}, h("th", { scope: "row" }, c.path), h("td", { class: "before" }, value(c.before)), h("td", { class: "after" }, value(c.after)))))));
}

async function owners(object) {
  const node = (n) => h("li", {},
    h("span", { class: n.asked ? "asked" : "" }, objectLink(n.object, "owners")),
    n.summary ? " " + n.summary : "", n.gone ? " deleted" : "",
    n.deleting ? h("span", { class: "bad" }, " is being deleted, and waits for " + (n.finalizers ?? ["its dependents"]).join(", ")) : "",
    n.children ? h("ul", {}, n.children.map(node)) : "");
  return h("ul", { class: "tree" }, node(await ask("owners", { object })));
}

async function conditions(object) {
  const all = await ask("conditions", { object });
  if (all.length === 0) return nothing("The object has no conditions.");
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["At", "Condition", "From", "To", "Reason", "By", "Version"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, all.reverse().map((c) => h("tr", {},
      h("td", { class: "at" }, seconds(c.at)), h("th", { scope: "row" }, c.type), h("td", {}, c.from || "none"), h("td", {}, c.to || "none"),
      h("td", {}, [c.reason, c.message].filter(Boolean).join(": ")), h("td", {}, c.manager ?? ""),
      h("td", {}, h("a", { href: link({ object, view: "diff", to: c.resourceVersion }) }, String(c.resourceVersion))))))));
}

async function managers(object) {
  const all = await ask("managers", { object });
  if (all.length === 0) return nothing("No field managers are known.");
  return h("div", {}, all.map((m) => h("section", { class: "card" },
    h("h3", {}, m.name), h("p", { class: "soft" }, [m.operation, m.subresource && "of " + m.subresource, m.time].filter(Boolean).join(" ")), h("p", {}, m.fields.join(", ")))));
}

// admissions adds new calls and leaves the others as they are, so that neither the focus nor a
// click on a button is lost while the session grows.
async function admissions(object) {
  const offered = await offersReplay();
  const result = h("p", { role: "status", id: "replayed" });
  const list = h("div", {});
  const empty = nothing("No webhook call was recorded.");
  const cards = new Map();
  let pending = false; // a webhook may have side effects, so a second press must not send twice
  const again = async (a) => {
    if (pending) return;
    pending = true;
    result.className = "";
    result.textContent = `Sending call ${a.seq} again…`;
    try {
      const answer = await replay(a.seq);
      result.textContent = `Call ${a.seq} was sent again: ${compared(answer.replay)}.`;
    } catch (error) {
      result.className = "bad";
      result.textContent = error.message;
    } finally {
      pending = false;
    }
  };
  const view = h("div", {}, object ? "" : h("h1", {}, "Webhook calls"), offered ? result : "", empty, list);
  view.update = async () => {
    const all = await ask("admissions", { object, limit: 200 });
    const kept = new Set(all.map((a) => a.seq));
    for (const [seq, card] of cards) {
      if (kept.has(seq)) continue;
      card.remove();
      cards.delete(seq);
    }
    for (const a of all) {
      if (cards.has(a.seq)) continue;
      cards.set(a.seq, admission(a, offered && again));
      list.prepend(cards.get(a.seq));
    }
    empty.hidden = cards.size > 0;
  };
  await view.update();
  return view;
}

function admission(a, again) {
  const ok = a.allowed && !a.error;
  const answer = a.error ? "no answer: " + a.error : a.allowed === undefined ? "not a review" : a.kind === "conversion" ? (ok ? "converted to " + a.to : "not converted") : ok ? "allowed" : "denied";
  const facts = [`call ${a.seq}`, seconds(a.at), span(a.took), a.held && `held for ${span(a.held)}`, a.operation, a.user && "by " + a.user, a.dryRun && "dry run"];
  return h("section", { class: "card" },
    h("h3", { class: ok ? "" : "bad" }, `${a.path}: ${answer}${a.message ? ": " + a.message : ""}`),
    h("p", { class: "soft" }, facts.filter(Boolean).join(" · "), " · ", a.objects.slice(0, 10).flatMap((ref) => [objectLink(ref), " "])),
    (a.warnings ?? []).map((w) => h("p", {}, "Warning: " + w)),
    a.patch && h("pre", {}, JSON.stringify(a.patch, null, 2)),
    a.replay && h("div", {}, h("p", {}, `Sent again by hand: ${compared(a.replay)}.`), a.replay.differences.length > 0 && changes(a.replay.differences)),
    again && h("button", { id: `again-${a.seq}`, onclick: () => again(a), "aria-label": `Send call ${a.seq} again` }, "Send again"));
}

function compared(replay) {
  if (!replay.known) return `the answer to call ${replay.of} is no longer known`;
  if (replay.differences.length === 0) return `the same answer as to call ${replay.of}`;
  return `the answer differs from that to call ${replay.of} in ${replay.differences.map((d) => d.path).join(", ")}`;
}

async function content(object, { to }) {
  return h("pre", {}, JSON.stringify(await ask("content", { object, to }), null, 2));
}

async function permissions() {
  const r = await ask("permissions");
  return h("div", {}, h("h1", {}, "Permissions"), h("p", { class: "soft" }, r.note),
    r.used.length ? usedPermissions(r.used) : nothing("The controller made no request."),
    r.account && [h("h2", {}, "Not used in this session"), h("p", { class: "soft" }, "Granted to " + r.account + ":"),
      r.unused.length ? unusedPermissions(r.unused) : nothing("Nothing.")],
    (r.unknown ?? []).map((role) => h("p", {}, `The role ${role} is bound too, but its rules are not known.`)));
}

const resourceOf = (p) => p.path || p.resource.replace(/^[^/]*/, (name) => (p.group ? `${name}.${p.group}` : name));

const table = (heads, rows) => h("div", { class: "scroll" }, h("table", {},
  h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, rows)));

const usedPermissions = (all) => table(["Resource", "Verb", "Requests", "Refused"], all.map((u) => h("tr", {},
  h("th", { scope: "row" }, resourceOf(u)), h("td", {}, u.verb), h("td", {}, String(u.count)),
  h("td", { class: u.refused ? "bad" : "" }, u.refused ? `${u.refused}: ${u.message ?? ""}` : ""))));

// unusedPermissions has one row for the verbs of a resource that differ in nothing else.
function unusedPermissions(all) {
  const rows = new Map();
  for (const u of all) {
    const { verb, since, ...rest } = u;
    const key = JSON.stringify(rest);
    rows.set(key, { ...rest, verbs: [...(rows.get(key)?.verbs ?? []), verb] });
  }
  return table(["Resource", "Verbs", "Role", "Perhaps needed"], [...rows.values()].map((u) => h("tr", {},
    h("th", { scope: "row" }, resourceOf(u), u.resourceNames ? " of " + u.resourceNames.join(", ") : ""), h("td", {}, u.verbs.join(", ")),
    h("td", {}, u.role, u.namespace ? " in namespace " + u.namespace : "", u.file ? " – " + u.file : ""), h("td", {}, u.unseen ?? ""))));
}
