// The log of mcpx about one server: its last lines, and each new one.
import { ask } from "./api.js";
import { el, fault } from "./dom.js";
import { head } from "./server.js";
import { t } from "./texts.js";

const most = 2000; // lines on the page

export async function logView(here, name) {
  const top = head(here, name, "log");
  const lines = el("pre", { class: "log", tabindex: "0", role: "log", "aria-label": t("log-of", { server: name }), "aria-live": "off", translate: "no" });
  const follow = el("input", { type: "checkbox", checked: true, id: "follow" });
  const empty = el("p", { class: "note" });
  const wrong = fault();
  let next, timer, left = false;
  const more = async () => {
    const got = await ask(`log?server=${encodeURIComponent(name)}${next === undefined ? "" : "&after=" + next}`);
    next = got.next;
    for (const { text } of got.lines) lines.append(el("span", { class: level(text) }, text + "\n"));
    while (lines.childElementCount > most) lines.firstElementChild.remove();
    empty.textContent = t(got.kept === false ? "no-log" : "no-lines");
    empty.hidden = lines.childElementCount > 0;
    lines.hidden = !empty.hidden;
    if (got.lines.length && follow.checked) lines.scrollTop = lines.scrollHeight;
  };
  const look = async () => {
    try {
      if (document.visibilityState === "visible") await more();
      wrong.textContent = "";
    } catch (failure) {
      wrong.textContent = failure.message;
    }
    if (!left) timer = setTimeout(look, 2000);
  };
  await more();
  timer = setTimeout(look, 2000);
  requestAnimationFrame(() => { lines.scrollTop = lines.scrollHeight; });
  return {
    nodes: [...top.nodes, el("div", { class: "check" }, follow, el("label", { for: "follow" }, t("follow"))), wrong, empty, lines],
    update: top.update,
    leave() {
      left = true;
      clearTimeout(timer);
    },
  };
}

const level = (text) => (/\blevel=(WARN|ERROR)|"level":"(WARN|ERROR)"/.test(text) ? "warn" : undefined);
