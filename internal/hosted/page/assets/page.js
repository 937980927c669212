// The script of the page: it signs in, follows the state of mcpx, and shows what the address names.
import { addView } from "./add.js";
import { ask, events, Failure, keep } from "./api.js";
import { callsView } from "./calls.js";
import { changeView } from "./change.js";
import { $, el, fault, say } from "./dom.js";
import { logView } from "./log.js";
import { approveView } from "./approve.js";
import { savingsView } from "./savings.js";
import { searchView } from "./search.js";
import { serverView } from "./server.js";
import { current, forget, hourPlots, serverRows, three } from "./servers.js";
import { cannot, choose, fill, known, other, t } from "./texts.js";
import { toolView } from "./tool.js";

// --- signing in and out ---

let mode; // "desk" for mcpx ui, where a link signs in; "hosted" where a token or an issuer does
let issuer; // the address at which a browser signs in by an issuer; empty where there is none

function showDoor(refusal) {
  stream?.abort();
  leave();
  view = undefined;
  for (const id of ["page", "search", "views", "sign-out"]) $(id).hidden = true;
  live("");
  const desk = mode === "desk";
  for (const node of $("sign-in").querySelectorAll("[data-hosted]")) node.hidden = desk || issuer;
  $("issuer").hidden = !issuer;
  $("sign-out").hidden = !(issuer && refusal); // for another account
  if (issuer) $("issuer").href = issuer;
  $("run-ui").hidden = !desk;
  $("refusal").textContent = refusal ?? "";
  if (!$("door").hidden) return;
  $("door").hidden = false;
  (desk ? $("run-ui") : issuer ? $("issuer") : $("token")).focus();
}

$("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = $("token").value;
  $("token").value = "";
  try {
    await ask("session", "POST", { token });
    await open(t("no-cookie"));
  } catch (failure) {
    $("refusal").textContent = failure.message;
    $("token").focus();
  }
});

$("sign-out").addEventListener("click", async () => {
  await ask("session", "DELETE").catch(() => {});
  location.reload();
});

// link signs in with the link of mcpx ui, which works once and so leaves the address.
async function link() {
  const [, secret] = location.hash.match(/^#link=(.+)$/) ?? [];
  if (!secret) return undefined;
  history.replaceState(null, "", location.pathname);
  try {
    keep((await ask("session", "POST", { link: secret })).session);
  } catch (failure) {
    return failure.status === 401 ? undefined : failure.message; // the door says what a void link means
  }
}

// --- the language ---

function inLanguage() {
  fill();
  const to = other();
  $("language").textContent = to.name;
  $("language").lang = to.tag;
}

$("language").addEventListener("click", () => {
  choose(other().tag);
  inLanguage();
  forget();
  if (!state) return;
  live(t("live"));
  show(state);
  route();
});

// --- the state, and its changes ---

let stream, again;
let state; // the state that was received last

function live(text, lost = false) {
  if ($("live").textContent !== text) $("live").textContent = text;
  $("live").classList.toggle("lost", lost);
}

// open shows the page if the viewer may see it, and keeps it up to date. Otherwise it shows the sign-in form.
async function open(refusal) {
  clearTimeout(again);
  try {
    if (!mode) ({ mode, sign_in: issuer } = await ask("mode"));
    const now = await ask("state");
    show(now.state);
    $("sign-out").hidden = mode === "desk" || !now.session;
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    if (failure.status === 401) return showDoor(refusal);
    if (failure.status === 403) return showDoor(failure.message);
    live(t("trying-again"), true);
    again = setTimeout(open, 5000);
    return;
  }
  $("door").hidden = true;
  if ($("page").hidden) {
    $("page").hidden = $("search").hidden = $("views").hidden = false;
    route();
  }
  follow();
}

// follow shows each new state. Where there is no stream, or it breaks, the page asks again after five seconds.
async function follow() {
  stream?.abort();
  const mine = stream = new AbortController();
  try {
    for await (const { name, data } of events(mine.signal, () => live(t("live")))) {
      if (mine.signal.aborted) return;
      if (name === "refused") return void open(); // signed out in another tab, or the token is no longer valid
      if (name === "ended" && JSON.parse(data).why === "unused") return ended();
      if (name === "message") show(JSON.parse(data));
    }
    live(t("trying-again"), true);
  } catch (failure) {
    if (mine.signal.aborted) return;
    failure instanceof Failure && failure.status ? live(t("not-live")) : live(t("trying-again"), true);
  }
  if (mine.signal.aborted) return;
  again = setTimeout(open, 5000);
}

// ended: mcpx ui has closed its port.
function ended() {
  live(t("closed"), true);
  say(t("closed"));
}

// The port of mcpx ui closes when nobody has used the page for some time. A page that lies behind another does not use it.
let looked = 0, touched = false;
for (const kind of ["keydown", "pointerdown", "wheel", "focus"]) addEventListener(kind, () => { touched = true; }, { passive: true });
setInterval(() => {
  if (mode !== "desk" || !touched || document.visibilityState !== "visible" || $("page").hidden || Date.now() - looked < 60_000) return;
  looked = Date.now();
  touched = false;
  ask("looked", "POST").catch(() => {});
}, 5000);

function show(next) {
  const before = new Map((state?.status.servers ?? []).map((server) => [server.name, server]));
  state = next;
  const { status, hour, can } = next;
  $("add").hidden = !can.change;
  $("cannot").hidden = can.change;
  $("cannot").textContent = cannot(can);
  $("about").textContent = [status.version, t("n-tools", { n: status.tools }), t("since-start", { n: status.savings.calls, saved: three(status.savings) })].join(" \u00b7 ");
  hourPlots(hour);
  serverRows(status.servers, hour);
  current(at[1]);
  const changed = status.servers.filter((server) => before.has(server.name) && before.get(server.name).state !== server.state);
  if (changed.length) say(changed.slice(0, 3).map((server) => t("is-now", { server: server.name, state: known("state", server.state) })).join(t("comma")));
  view?.update?.(state);
}

// --- views: what the address names ---

const views = {
  server: serverView, tool: toolView, log: logView, change: changeView, approve: approveView,
  search: searchView, add: addView, calls: callsView, savings: savingsView,
};

let at = []; // the parts of the address: a view, and what it shows
let view; // what is shown: {nodes, update, leave}
let drawn = 0; // number of calls of route, so that the answer to an older one is ignored

function leave() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  view?.leave?.();
  view = undefined;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // invalid percent-encoding: typed by hand
  }
}

const here = { // what views get of the page
  get state() { return state; },
  get can() { return state.can.change; },
  server: (name) => state.status.servers.find((one) => one.name === name),
  go: (...parts) => { location.hash = "#/" + parts.map(encodeURIComponent).join("/"); },
  again: () => route(true),
  // refresh is for after a change: the viewer need not wait for the stream, also not for a server that starts.
  async refresh(more = 5) {
    show((await ask("state")).state);
    if (more && state.status.servers.some((one) => one.state === "connecting")) setTimeout(() => here.refresh(more - 1).catch(() => {}), 400);
  },
};

// route shows in the panel what the address names, such as #/tool/SERVER/TOOL. Without a name there is the overview alone.
async function route(moved) {
  const address = location.hash;
  if (address && !address.startsWith("#/")) return;
  at = address.slice(2).split("/").filter(Boolean).map(decoded);
  leave();
  if (at[0] !== "search") $("query").value = "";
  const mine = ++drawn;
  const make = Object.hasOwn(views, at[0] ?? "") ? views[at[0]] : undefined;
  const next = make ? await shown(make) : { nodes: [] };
  if (mine !== drawn) return next.leave?.();
  view = next;
  $("page").dataset.view = make ? at[0] : "overview";
  for (const link of $("views").children) link.getAttribute("href") === `#/${["calls", "savings"].includes(at[0]) ? at[0] : ""}` ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  current(at[1]);
  $("panel").replaceChildren(...view.nodes);
  const heading = make ? $("panel").querySelector("h2") : undefined;
  document.title = heading ? `${heading.textContent} \u00b7 mcpx` : "mcpx";
  if (!moved) return;
  scrollTo(0, 0);
  (make ? $("panel") : $("views").firstElementChild).focus({ preventScroll: true }); // the viewer has navigated, not the script
}
addEventListener("hashchange", () => (location.hash.startsWith("#link=") ? location.reload() : route(true)));

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $(view?.nodes.length ? "panel" : "page").focus();
});

async function shown(make) {
  try {
    return await make(here, ...at.slice(1));
  } catch (failure) {
    if (!(failure instanceof Failure)) reportError(failure); // a fault of the page; its other views go on
    if (failure.status === 401) showDoor();
    return { nodes: [el("h2", null, t("failed")), fault(failure.message)] };
  }
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = $("query").value.trim();
  const parts = query ? ["search", query] : [];
  if (at.join("/") === parts.join("/")) route(true);
  else here.go(...parts);
});

addEventListener("unhandledrejection", (event) => { // of a button: what it asked for was refused
  if (!(event.reason instanceof Failure)) return;
  event.preventDefault();
  if (event.reason.status === 401) return showDoor();
  const told = fault(event.reason.message, { class: "fault passing" });
  $("panel").querySelector(".passing")?.remove();
  $("panel").prepend(told);
  told.scrollIntoView({ block: "nearest" });
});

inLanguage();
open(await link());
