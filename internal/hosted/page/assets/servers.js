// The overview: what happened in the last hour, and the table of all servers, which stays beside a server that is shown.
import { $, el } from "./dom.js";
import { bars, figure } from "./plots.js";
import { known, number, t } from "./texts.js";

export const sum = (list) => (list ?? []).reduce((a, b) => a + b, 0);

export function hourPlots(hour) {
  const one = (kind, title, values) => figure(kind, t(title), values, { total: sum(values), from: t("60-min-ago"), to: t("now"), each: "most-a-minute" });
  $("plots").replaceChildren(
    one("calls", "calls", hour.calls), one("errors", "errors", hour.errors), one("definitions", "definitions-saved", hour.definitions),
    one("compression", "compression-saved", hour.compression), one("cut", "cut-saved", hour.cut));
}

// stateText is the state as a word, with a mark whose form says the same as its colour.
export const stateText = (server) => el("span", { class: "state " + server.state }, known("state", server.state));

const rows = new Map(); // table rows by server name; a row is reused, so that it keeps the focus

function row(name) {
  const cells = { link: el("a", { href: "#/server/" + encodeURIComponent(name), translate: "no" }, name), how: el("small"), state: el("span"), reason: el("span", { class: "reason", translate: "no" }) };
  cells.row = el("tr", { role: "row" },
    el("td", { role: "cell", class: "name" }, cells.link, cells.how), el("td", { role: "cell", class: "status" }, cells.state, cells.reason));
  for (const kind of ["tools", "calls", "errors", "compressed"]) {
    cells[kind] = el("td", { role: "cell", class: "n " + kind });
    cells.row.append(cells[kind]);
  }
  return cells;
}

// forget makes all rows new, in another language.
export function forget() {
  rows.clear();
  $("servers").replaceChildren();
}

// current marks the server that is shown.
export function current(name) {
  for (const [one, cells] of rows) one === name ? cells.row.setAttribute("aria-current", "true") : cells.row.removeAttribute("aria-current");
}

export function serverRows(list, hour) {
  for (const [name, cells] of rows) {
    if (list.some((server) => server.name === name)) continue;
    cells.row.remove();
    rows.delete(name);
  }
  list.forEach((server, i) => {
    const cells = rows.get(server.name) ?? row(server.name);
    rows.set(server.name, cells);
    const last = hour.servers[server.name];
    cells.how.textContent = [server.dialled || server.transport, server.protocol].filter(Boolean).join(" ");
    cells.state.className = "state " + server.state;
    cells.state.textContent = known("state", server.state);
    cells.reason.textContent = server.changed ? t("n-changed", { n: server.changed }) : server.reason ?? "";
    cells.reason.title = server.reason ?? "";
    const fill = (kind, value, ...before) => {
      cells[kind].classList.toggle("zero", value === 0);
      cells[kind].dataset.label = t("col." + kind);
      cells[kind].replaceChildren(...before, number(value));
    };
    fill("tools", server.tools);
    fill("calls", sum(last?.calls), ...(last ? [bars(last.calls, t("calls-of", { server: server.name }))] : []));
    fill("errors", sum(last?.errors));
    fill("compressed", sum(last?.compression));
    if ($("servers").children[i] !== cells.row) $("servers").insertBefore(cells.row, $("servers").children[i] ?? null);
  });
  const states = ["ready", "degraded", "unavailable", "connecting", "idle", "disabled"];
  const inState = (state) => list.filter((server) => server.state === state).length;
  $("summary").textContent = states.filter(inState).map((state) => `${inState(state)} ${known("state", state)}`).join(t("comma"));
  $("summary").hidden = $("table").hidden = list.length === 0;
  $("none").hidden = list.length > 0;
}

// three says what was saved, in tokens: three figures, which mean different things and are never added up.
export const three = (saved) => t("three", { definitions: saved.definitions, compression: saved.compression, cut: saved.cut });

