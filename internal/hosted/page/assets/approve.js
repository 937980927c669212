// The definitions of a server's tools that differ from the approved ones, and approving them.
import { ask, path } from "./api.js";
import { block, busy, button, el, say } from "./dom.js";
import { head } from "./server.js";
import { t } from "./texts.js";

export async function approveView(here, name) {
  const top = head(here, name, "approve");
  if (!here.server(name)) return top;
  const { tools, digest, locked, pin } = await ask("changes?server=" + encodeURIComponent(name));
  const nodes = [...top.nodes];
  if (!tools.length) nodes.push(el("p", { class: "note" }, t(locked ? "nothing-changed" : "nothing-locked")));
  else {
    nodes.push(el("p", null, t(!locked ? "never-approved" : pin === "block" ? "blocked-until" : "changed-means")));
    if (here.can) {
      nodes.push(el("div", { class: "buttons" }, button(t("approve"), (event) => busy(event.currentTarget, t("working"), async () => {
        await ask(path("servers", name, "approve"), "POST", { digest });
        await here.refresh();
        say(t("approved", { server: name }));
        here.again();
      }))));
    }
    for (const tool of tools) nodes.push(difference(tool));
  }
  return { nodes, update: top.update };
}

function difference(tool) {
  const title = el("h3", { translate: "no" }, tool.name);
  const kind = el("p", { class: "sub" }, t("kind." + tool.kind), tool.members?.length ? ": " + tool.members.join(", ") : "");
  const label = t("difference-of", { tool: tool.name });
  const parts = tool.kind === "changed" && !tool.before
    ? [el("p", { class: "sub" }, t("before-unknown")), block(tool.after ?? "", label)]
    : [el("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": label, translate: "no" }, ...lines(split(tool.before), split(tool.after)))];
  return el("details", { class: "difference", open: tool.kind === "changed" }, el("summary", null, title, kind), ...parts);
}

const split = (text) => (text ? text.split("\n") : []);
const most = 1500; // lines of a definition that are compared; of longer ones all lines count as changed
const around = 3; // equal lines that are shown around a change

// lines shows the lines that are gone and new, each with a mark, and what is equal near them.
function lines(before, after) {
  const steps = compared(before, after);
  const near = steps.map((_, i) => steps.slice(Math.max(0, i - around), i + around + 1).some(([mark]) => mark !== " "));
  const out = [];
  const line = ([mark, text]) => out.push(el(mark === "+" ? "ins" : mark === "-" ? "del" : "span", null, `${mark} ${text}\n`));
  let skipped = [];
  const skip = () => {
    if (skipped.length > 1) out.push(el("span", { class: "skipped" }, t("n-equal", { n: skipped.length }) + "\n"));
    else skipped.forEach(line);
    skipped = [];
  };
  steps.forEach((step, i) => {
    if (!near[i]) return void skipped.push(step);
    skip();
    line(step);
  });
  skip();
  return out;
}

// compared is the shortest way from one text to the other, by the longest common subsequence of lines.
function compared(before, after) {
  if (before.length > most || after.length > most) return [...before.map((text) => ["-", text]), ...after.map((text) => ["+", text])];
  const width = after.length + 1;
  const common = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      common[i * width + j] = before[i] === after[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
  const steps = [];
  let i = 0, j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) steps.push([" ", before[i++], j++]);
    else if (i < before.length && (j === after.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) steps.push(["-", before[i++]]);
    else steps.push(["+", after[j++]]);
  }
  return steps;
}
