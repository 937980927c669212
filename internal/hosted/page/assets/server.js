// One server: its state, what can be done with it, and its tools.
import { ask, path } from "./api.js";
import { busy, button, el, fault, foreign, question, say } from "./dom.js";
import { login } from "./login.js";
import { stateText, three } from "./servers.js";
import { known, t } from "./texts.js";

const address = (view, ...names) => `#/${view}/${names.map(encodeURIComponent).join("/")}`;

// head is above all views of a server: {nodes, update}. what is the view that is shown.
export function head(here, name, what) {
  const status = el("div", { class: "about-server" }), actions = el("div", { class: "buttons" }), tabs = el("nav", { class: "tabs", "aria-label": t("parts-of", { server: name }) });
  let shown;
  const update = () => {
    const server = here.server(name);
    const now = JSON.stringify([server, here.can]);
    if (now === shown) return;
    shown = now;
    if (!server) {
      status.replaceChildren(el("p", { class: "note" }, t("no-such-server")));
      for (const place of [actions, tabs]) place.replaceChildren();
      return;
    }
    status.replaceChildren(...about(server));
    const had = actions.contains(document.activeElement) ? document.activeElement.dataset.does : undefined;
    if (here.can && server.configured) actions.replaceChildren(...buttons(here, server));
    if (had) (actions.querySelector(`[data-does="${had}"]`) ?? actions.querySelector("button, a"))?.focus();
    const link = (view, text) => el("a", { href: address(view, name), "aria-current": view === what ? "page" : undefined }, text);
    const focused = tabs.contains(document.activeElement) ? [...tabs.children].indexOf(document.activeElement) : -1;
    tabs.replaceChildren(link("server", t("tools")), link("log", t("log")), ...(here.can && server.configured ? [link("change", t("settings"))] : []),
      link("approve", server.changed ? t("n-changes", { n: server.changed }) : t("definitions")));
    tabs.children[focused]?.focus();
  };
  update();
  return { nodes: [el("p", { class: "crumb" }, el("a", { href: "#/" }, t("all-servers"))), el("h2", { translate: "no" }, name), status, actions, tabs], update };
}

function about(server) {
  const how = [server.dialled || server.transport, server.protocol, server.sessions ? t("n-sessions", { n: server.sessions }) : ""].filter(Boolean).join(" \u00b7 ");
  return [
    el("p", null, stateText(server), " ", el("span", { class: "sub" }, how)),
    server.reason && el("p", { class: "reason" }, foreign(server.reason)),
    server.login === "needed" && el("p", { class: "warn" }, t("needs-login")),
    server.changed > 0 && el("p", { class: "warn" }, t("n-changed", { n: server.changed }), " ", el("a", { href: address("approve", server.name) }, t("show-difference"))),
    server.runs && el("p", { class: "runs" }, el("code", { translate: "no" }, server.runs)),
    server.savings?.calls > 0 && el("p", { class: "sub" }, t("saved-since-start", { saved: three(server.savings) })),
  ].filter(Boolean);
}

// buttons are the actions that make sense in the state of the server.
function buttons(here, server) {
  const act = (word, said) => button(t("do." + word), (event) => busy(event.currentTarget, t("working"), async () => {
    await ask(path("servers", server.name, word), "POST");
    await here.refresh();
    say(t(said ?? "done." + word, { server: server.name }));
  }), { class: "quiet", "data-does": word });
  const list = [];
  if (server.enabled && !server.running) list.push(act("start"));
  if (server.enabled && server.running) list.push(act("stop"), act("restart"));
  list.push(act(server.enabled ? "disable" : "enable"));
  if (server.login) list.push(button(t(server.login === "held" ? "log-in-again" : "log-in"), (event) => login(here, server.name, event.currentTarget), { class: server.login === "needed" ? "" : "quiet", "data-does": "login" }));
  if (server.login === "held") list.push(act("logout"));
  list.push(button(t("remove"), (event) => busy(event.currentTarget, undefined, async () => {
    if (!(await question({ title: t("remove-server", { server: server.name }), text: t("remove-means"), yes: t("remove"), bad: true }))) return;
    await ask(path("servers", server.name), "DELETE");
    await here.refresh();
    say(t("removed", { server: server.name }));
    here.go();
  }), { class: "quiet bad", "data-does": "remove" }));
  if (server.enabled && server.running) list.push(el("span", { class: "sub" }, t("stop-means")));
  return list;
}

// listed are the known hints in words, and others as they are.
export const tags = (hints) => (hints ?? []).map((hint) => el("span", { class: "tag " + hint }, known("hint", hint)));

const toolItem = (name, tool) => el("li", null,
  tool.why ? el("code", { translate: "no" }, tool.name) : el("a", { href: address("tool", name, tool.name), translate: "no" }, tool.name), tags(tool.hints), tool.changed && el("span", { class: "tag warn" }, t("changed")),
  tool.why && el("p", { class: "why" }, t("hidden-why", { why: tool.why })), tool.description && el("p", null, foreign(tool.description)));

export async function serverView(here, name) {
  const top = head(here, name, "server");
  if (!here.server(name)) return top;
  const place = el("div", { class: "parts" });
  let seen;
  const fetched = async () => {
    const server = here.server(name);
    const now = server && [server.state, server.tools, server.hidden, server.changed].join();
    if (!server || now === seen) return;
    seen = now;
    const had = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : undefined;
    place.replaceChildren(...lists(name, await ask("server?name=" + encodeURIComponent(name))));
    if (had) [...place.querySelectorAll("a")].find((one) => one.getAttribute("href") === had)?.focus();
  };
  await fetched();
  return { nodes: [...top.nodes, place], update() { top.update(); fetched().catch(() => { seen = undefined; }); } };
}

function lists(name, { purpose, tools, hidden, faults }) {
  const parts = (faults ?? []).map((one) => fault(one));
  if (purpose) parts.push(el("p", { class: "sub" }, foreign(purpose)));
  if (!tools.length && !hidden?.length) return [...parts, el("p", { class: "note" }, t("no-tools"))];
  if (tools.length) parts.push(el("h3", null, t("n-tools", { n: tools.length })), el("ul", { class: "list", "aria-label": t("tools-of", { server: name }) }, tools.map((tool) => toolItem(name, tool))));
  if (hidden?.length) parts.push(el("h3", null, t("n-hidden", { n: hidden.length })), el("p", { class: "sub" }, t("hidden-means")),
    el("ul", { class: "list hidden-tools", "aria-label": t("hidden-of", { server: name }) }, hidden.map((tool) => toolItem(name, tool))));
  return parts;
}
