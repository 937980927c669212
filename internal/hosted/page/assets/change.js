// Changing the entry of a server in the config file.
import { askExactly, path, sendText, write } from "./api.js";
import { busy, el, fault, say } from "./dom.js";
import { entryForm } from "./entry.js";
import { mark, Wrong } from "./form.js";
import { head } from "./server.js";
import { cannot, t } from "./texts.js";

export async function changeView(here, name) {
  const top = head(here, name, "change");
  if (!here.server(name) || !here.can) return { nodes: [...top.nodes, el("p", { class: "note" }, cannot(here.state.can))], update: top.update };
  const { entry, digest, secret } = await askExactly("entry?name=" + encodeURIComponent(name));
  const fields = entryForm(entry);
  const save = el("button", { type: "submit" }, t("save"));
  const wrong = fault();
  let unmark;
  const form = el("form", { class: "sheet", novalidate: true, submit: (event) => {
    event.preventDefault();
    unmark?.();
    unmark = undefined;
    wrong.textContent = "";
    busy(save, t("working"), async () => {
      try {
        await sendText(path("servers", name), "PUT", `{"digest":${JSON.stringify(digest)},"entry":${write(fields.read())}}`);
      } catch (failure) {
        if (failure instanceof Wrong) unmark = mark(failure);
        else wrong.textContent = failure.message;
        return;
      }
      await here.refresh();
      say(t("saved", { server: name }));
      here.go("server", name);
    });
  } },
    el("p", { class: "sub" }, t("change-means")), secret?.length > 0 && el("p", { class: "sub" }, t("struck-out")), fields.node, wrong, el("div", { class: "buttons" }, save));
  return { nodes: [...top.nodes, form], update: top.update };
}
