// The calls that were made last: of which tool, by which client, how they ended, and why not well.
import { ask } from "./api.js";
import { block, el, fault, foreign, newID } from "./dom.js";
import { clock, duration, has, known, number, t } from "./texts.js";

const most = 500;

export async function callsView(here) {
  const body = el("tbody", { role: "rowgroup" });
  const column = (key, kind) => el("th", { role: "columnheader", scope: "col", class: kind }, t("col." + key));
  const heading = newID();
  const table = el("table", { role: "table", class: "calls", "aria-labelledby": heading }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
    column("time"), column("tool"), column("outcome"), column("client"), column("took", "n"), column("tokens", "n"))), body);
  const none = el("p", { class: "note" }, t("no-calls"));
  const wrong = fault();
  const failed = el("input", { type: "checkbox", id: "failed", change: () => table.classList.toggle("failed-only", failed.checked) });
  let next, asking = false;
  const more = async () => {
    const got = await ask("calls" + (next === undefined ? "" : "?after=" + next));
    next = got.next;
    body.prepend(...got.calls.map(row));
    while (body.childElementCount > most) body.lastElementChild.remove();
    none.hidden = body.childElementCount > 0;
    table.hidden = !none.hidden;
  };
  await more();
  return {
    nodes: [el("div", { class: "title" }, el("h2", { id: heading }, t("recent-calls")), el("div", { class: "check" }, failed, el("label", { for: "failed" }, t("failed-only")))),
      el("p", { class: "sub" }, t(here.state.calls === "full" ? "calls-full" : "calls-names")), wrong, none, table],
    async update() {
      if (asking) return;
      asking = true;
      try {
        await more();
        wrong.textContent = "";
      } catch (failure) {
        wrong.textContent = failure.message;
      }
      asking = false;
    },
  };
}

function row(call) {
  const cell = (kind, label, ...children) => el("td", { role: "cell", class: kind, "data-label": label }, ...children);
  const whole = (text, label) => text !== undefined && el("details", null, el("summary", null, label), block(text, label));
  const why = call.error?.startsWith(call.outcome + ": ") ? call.error.slice(call.outcome.length + 2) : call.error;
  const outcome = has("outcome." + call.outcome) ? known("outcome", call.outcome) : call.outcome;
  return el("tr", { role: "row", class: call.failed ? "failed" : "fine" },
    cell("time", "", el("time", { datetime: call.time }, clock(call.time))),
    cell("tool", "", el("a", { href: `#/tool/${encodeURIComponent(call.server)}/${encodeURIComponent(call.tool)}`, translate: "no" }, `${call.server}.${call.tool}`)),
    cell("outcome", "", el("span", { class: "ended" }, outcome), why && el("span", { class: "reason" }, foreign(why)),
      whole(call.arguments, t("arguments")), whole(call.result, t("result"))),
    cell("client", "", foreign([call.client, call.display ? `${call.display} (${call.principal})` : call.principal].filter(Boolean).join(" \u00b7 "))),
    cell("n", "", duration(call.milliseconds)),
    cell("n", t("col.tokens"), number(call.sent ?? 0)));
}
