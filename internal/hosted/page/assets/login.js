// Logging in to a server: the browser goes to the server's issuer in another tab, and comes back to mcpx.
import { ask, Failure, path } from "./api.js";
import { busy, button, el, fault, labelled, newID, say } from "./dom.js";
import { t } from "./texts.js";

// web is a URL that may become a link: a server could name a script.
const web = (text) => {
  try {
    const url = new URL(text);
    return ["https:", "http:"].includes(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
};

// login asks mcpx for the address at which to log in, and shows a dialog until it is done or given up.
export function login(here, name, pressed) {
  return busy(pressed, undefined, async () => {
    const to = path("servers", name, "login");
    const flow = await ask(to, "POST");
    const url = web(flow.url);
    if (!url) throw new Failure({ error: t("login-failed", { why: String(flow.url) }) }, 0);
    await shown(name, to, flow, url);
    await here.refresh();
  });
}

function shown(name, to, flow, url) {
  const id = newID();
  const state = el("p", { role: "status" }, t("login-waiting"));
  const go = el("a", { class: "button", href: url.href, target: "_blank", rel: "noopener noreferrer" }, t("login-at", { host: url.host }));
  const paste = pasting(to, flow) ?? "";
  const close = button(t("give-up"), () => dialog.close(), { class: "quiet" });
  const dialog = el("dialog", { "aria-labelledby": id },
    el("h2", { id }, t("login-to", { server: name })), el("p", null, t("login-means")), el("p", null, go), state,
    paste, el("p", { class: "sub" }, t("login-command"), " ", el("code", { translate: "no" }, flow.command)), el("div", { class: "buttons" }, close));
  document.body.append(dialog);
  dialog.showModal();
  let ended = false;
  const look = async () => {
    const now = await ask(`${to}?id=${encodeURIComponent(flow.id)}`).catch((failure) => ({ state: "failed", error: failure.message }));
    if (!dialog.isConnected) return;
    if (now.state === "open") return void (timer = setTimeout(look, 1000));
    ended = true;
    const said = now.state === "done" ? t("login-done", { server: name }) : t("login-failed", { why: now.error });
    state.replaceChildren(said);
    state.classList.toggle("fault", now.state !== "done");
    go.hidden = true;
    if (paste) paste.hidden = true;
    close.textContent = t("close");
    if (now.state !== "done") return;
    say(said);
    dialog.close();
  };
  let timer = setTimeout(look, 1000);
  return new Promise((done) => dialog.addEventListener("close", () => {
    clearTimeout(timer);
    dialog.remove();
    if (!ended) ask(`${to}?id=${encodeURIComponent(flow.id)}`, "DELETE").catch(() => {});
    done();
  }));
}

// pasting is for a browser on another machine than mcpx: it ends at an address of its own loopback, where nobody answers.
function pasting(to, flow) {
  const control = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const wrong = fault();
  const form = el("form", { class: "fields", submit: async (event) => {
    event.preventDefault();
    try {
      await ask(to + "/paste", "POST", { id: flow.id, address: control.value.trim() });
      wrong.textContent = "";
    } catch (failure) {
      wrong.textContent = failure.message;
      control.focus();
    }
  } }, labelled(t("login-address"), control, t("login-paste")), wrong, el("div", { class: "buttons" }, el("button", { type: "submit", class: "quiet" }, t("use-address"))));
  if (flow.redirect === "endpoint") return undefined;
  return flow.redirect === "paste" ? form : el("details", null, el("summary", null, t("login-elsewhere")), form);
}
