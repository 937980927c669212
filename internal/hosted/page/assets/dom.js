// Making elements. Texts from servers and tools become text nodes only: the policy of the page refuses markup from strings.
import { t } from "./texts.js";

export const $ = (id) => document.getElementById(id);

// el makes an element. Strings among the children become text nodes; a function as an attribute becomes the listener of that event.
export function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== "" && child !== undefined && child !== null && child !== false));
  return made;
}

let numbered = 0;
export const newID = () => "id-" + ++numbered;

export const button = (text, click, attributes) => el("button", { type: "button", click, ...attributes }, ...[text].flat());

// foreign is a text of a server in a line: translators of browsers leave it alone, and its direction stays inside it.
export const foreign = (text, attributes) => el("bdi", { translate: "no", ...attributes }, text);

// block is a longer text of a server. It takes the focus, because it may have to be scrolled.
export const block = (text, label, kind) =>
  el("pre", { tabindex: "0", role: "region", "aria-label": label, class: kind, translate: "no" }, text);

export const fault = (text, attributes) => el("p", { class: "fault", role: "alert", ...attributes }, text ?? "");

// say tells a screen reader what has happened. A text that is said twice must change in between.
export function say(text) {
  const to = $("say");
  to.textContent = to.textContent === text ? text + "\u00a0" : text;
}

// busy disables a button, but keeps its focus, while work is done, and returns what the work returns. A second press does nothing.
export async function busy(pressed, text, work) {
  if (pressed.getAttribute("aria-disabled") === "true") return undefined;
  const before = pressed.textContent;
  pressed.setAttribute("aria-disabled", "true");
  if (text) pressed.textContent = text;
  try {
    return await work();
  } finally {
    pressed.removeAttribute("aria-disabled");
    if (text && pressed.textContent === text) pressed.textContent = before;
  }
}

// labelled puts a label above a control, and a hint between them that a screen reader reads with it.
export function labelled(text, control, hint, attributes) {
  control.id ||= newID();
  const parts = [el("label", { for: control.id }, text)];
  if (hint) {
    const told = el("div", { class: "hint", id: newID() }, hint);
    control.setAttribute("aria-describedby", [control.getAttribute("aria-describedby"), told.id].filter(Boolean).join(" "));
    parts.push(told);
  }
  return el("div", { class: "field", ...attributes }, ...parts, control);
}

// question shows a dialog with a text, and optionally a block of foreign text, and resolves to whether the viewer agreed. The
// browser gives the focus back to the element that had it.
export function question({ title, text, detail, yes, no, bad }) {
  const id = newID();
  const dialog = el("dialog", { "aria-labelledby": id },
    el("form", { method: "dialog" },
      el("h2", { id }, title), text && el("p", null, text), detail && block(detail, title),
      el("div", { class: "buttons" },
        el("button", { value: "no", class: "quiet" }, no ?? t("cancel")), el("button", { value: "yes", class: bad ? "bad" : "" }, yes))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => {
    dialog.remove();
    done(dialog.returnValue === "yes");
  }, { once: true }));
}
