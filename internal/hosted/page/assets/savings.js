// What was saved, by day and by server, tool or client: three figures that mean different things and are never added up.
import { ask } from "./api.js";
import { el, labelled, newID, say } from "./dom.js";
import { beside, figure } from "./plots.js";
import { exact, number, t } from "./texts.js";

const figures = ["definitions", "compression", "cut"];
const ways = ["server", "tool", "client", "day"];
let chosen = { days: 30, by: "server" }; // stays while the page is open

export async function savingsView() {
  const place = el("div", { class: "parts" });
  const choice = (name, values, text) => {
    const select = el("select", { class: "short", change: () => draw({ ...chosen, [name]: typeof chosen[name] === "number" ? Number(select.value) : select.value }, true) },
      ...values.map((value) => el("option", { value: String(value) }, text(value))));
    select.value = String(chosen[name]);
    return select;
  };
  let drawn = 0;
  const draw = async (next, told) => {
    const mine = ++drawn;
    const [days, rows] = await Promise.all(["day", next.by].map((by) => ask(`stats?days=${next.days}&by=${by}`)));
    if (mine !== drawn) return;
    chosen = next;
    place.replaceChildren(...report(days, rows));
    if (told) say(t("n-rows", { n: rows.rows.length }));
  };
  await draw(chosen, false);
  return {
    nodes: [
      el("h2", null, t("savings")), el("p", { class: "sub" }, t("savings-mean")),
      el("div", { class: "choices" }, labelled(t("period"), choice("days", [7, 30, 90, 365], (n) => t("n-days", { n }))), labelled(t("by"), choice("by", ways, (way) => t("by." + way)))),
      place,
    ],
  };
}

function report(days, by) {
  const at = new Map(days.rows.map((row) => [row.name, row]));
  const dates = [];
  for (let day = new Date(days.since + "T00:00:00Z"), i = 0; i < days.days; i++, day.setUTCDate(day.getUTCDate() + 1)) dates.push(day.toISOString().slice(0, 10));
  const plots = figures.map((kind) => {
    const values = dates.map((date) => at.get(date)?.[kind] ?? 0);
    return figure(kind, t("figure." + kind), values, { total: days.total[kind], from: dates[0], to: dates.at(-1), each: "most-a-day", titles: values.map((value, i) => `${dates[i]}: ${exact(value)}`) });
  });
  return [
    el("p", null, [t("n-calls", { n: days.total.calls }), t("n-all-sessions", { n: days.total.sessions ?? 0 }), t("since", { day: days.since })].join(" \u00b7 ")),
    el("div", { class: "plots three" }, ...plots), table(by)];
}

function table({ by, rows, total }) {
  if (!rows.length) return el("p", { class: "note" }, t("nothing-saved"));
  const heading = newID();
  const most = Object.fromEntries(figures.map((kind) => [kind, Math.max(...rows.map((row) => Math.abs(row[kind])), 1)]));
  const line = (name, row, last) => el("tr", { role: "row", class: last ? "all" : undefined },
    el("td", { role: "cell", class: "name" }, name), el("td", { role: "cell", class: "n", "data-label": t("col.calls") }, number(row.calls)),
    ...figures.map((kind) => el("td", { role: "cell", class: "amount " + kind, "data-label": t("figure." + kind) },
      el("span", { title: exact(row[kind]) }, number(row[kind])), last ? "" : beside(row[kind], most[kind]))));
  const column = (text, kind) => el("th", { role: "columnheader", scope: "col", class: kind }, text);
  const shown = (by === "day" ? [...rows].reverse() : rows).slice(0, 200);
  return el("div", null, el("h3", { id: heading }, t("tokens-by", { by: t("by." + by) })),
    el("table", { role: "table", class: "savings", "aria-labelledby": heading }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
      column(t("by." + by)), column(t("col.calls"), "n"), ...figures.map((kind) => column(t("figure." + kind), "amount")))),
    el("tbody", { role: "rowgroup" }, ...shown.map((row) => line(el("span", { translate: "no" }, row.name), row, false)), line(t("all"), total, true))));
}
