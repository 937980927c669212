// What inspect finds for a query, over all servers.
import { ask } from "./api.js";
import { $, block, el, foreign, say } from "./dom.js";
import { t } from "./texts.js";

export async function searchView(here, ...parts) {
  const query = parts.join("/");
  $("query").value = query;
  const { tools, text, tokens } = await ask("search?query=" + encodeURIComponent(query));
  const found = t("n-found", { n: tools.length });
  say(found);
  return {
    nodes: [
      el("h2", null, found),
      el("ul", { class: "list", "aria-label": found }, tools.map((tool) =>
        el("li", null, el("a", { href: `#/tool/${encodeURIComponent(tool.server)}/${encodeURIComponent(tool.name)}`, translate: "no" }, `${tool.server}.${tool.name}`),
          el("p", null, foreign(tool.description))))),
      el("details", { open: tools.length === 0 }, el("summary", null, t("model-reads", { n: tokens })), block(text, t("answer-of-inspect"))),
    ],
  };
}
