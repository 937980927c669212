// One tool: its interface as a model reads it, and a form that calls it for real.
import { askExactly, Failure, parse, run, write } from "./api.js";
import { block, busy, button, el, fault, labelled, question, say } from "./dom.js";
import { example, form, mark, Wrong } from "./form.js";
import { tags } from "./server.js";
import { duration, number, t } from "./texts.js";

export async function toolView(here, server, name) {
  const tool = await askExactly(`tool?server=${encodeURIComponent(server)}&name=${encodeURIComponent(name)}`);
  let trying;
  try {
    trying = tryIt(server, name, tool.schema);
  } catch {
    trying = tryIt(server, name, {}); // the schema nests too deeply
  }
  return {
    nodes: [
      el("p", { class: "crumb" }, el("a", { href: "#/server/" + encodeURIComponent(server), translate: "no" }, server)),
      el("div", { class: "title" }, el("h2", { translate: "no", class: "mono" }, name), tags(tool.hints)),
      el("h3", null, t("model-reads", { n: tool.tokens })), block(tool.text, t("interface")), trying.node,
    ],
    leave: trying.stop,
  };
}

// tryIt shows the form, or JSON where there can be none or the viewer wants it.
function tryIt(server, tool, schema) {
  const place = el("div"), outcome = el("div", { id: "outcome" });
  let shown, unmark, calling;
  const asForm = (value) => {
    const made = form(schema, value);
    if (made) place.replaceChildren(made.node);
    return made && { ...made, json: false };
  };
  const asJSON = (value) => {
    const control = el("textarea", { id: "arguments", rows: "6", spellcheck: "false", autocapitalize: "off" });
    control.value = write(value, "  ");
    place.replaceChildren(labelled(t("arguments-json"), control));
    return { control, json: true, read() { return checked(control); } };
  };
  const clear = () => {
    unmark?.();
    unmark = undefined;
  };
  const read = () => {
    clear();
    try {
      return shown.read();
    } catch (failure) {
      if (!(failure instanceof Wrong)) throw failure;
      unmark = mark(failure);
      return undefined;
    }
  };
  const turn = button("", () => {
    const text = read();
    if (text === undefined) return;
    const next = shown.json ? asForm(parse(text)) : asJSON(parse(text));
    if (!next) {
      unmark = mark(new Wrong(t("form-cannot"), shown.control));
      return;
    }
    shown = next;
    turn.textContent = t(shown.json ? "as-form" : "all-as-json");
  }, { class: "quiet small" });
  shown = asForm(undefined) ?? asJSON(example({ type: "object", ...schema }));
  turn.textContent = t(shown.json ? "as-form" : "all-as-json");
  const submit = el("button", { type: "submit" }, t("call"));
  const node = el("form", { id: "try", novalidate: true, submit: (event) => {
    event.preventDefault();
    busy(submit, t("calling"), async () => {
      const text = read();
      if (text === undefined) return;
      calling = new AbortController();
      await called({ server, tool, text, outcome, calling });
    });
  }, keydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) node.requestSubmit();
  } },
    el("div", { class: "title" }, el("h3", null, t("try-it")), shown.json && !form(schema, undefined) ? "" : turn), place,
    el("div", { class: "buttons" }, submit, el("span", { class: "sub" }, t("for-real"))), outcome);
  return { node, stop() { calling?.abort(); } };
}

function checked(control) {
  let value;
  try {
    value = JSON.parse(control.value);
  } catch (failure) {
    throw new Wrong(t("not-json", { why: failure.message }), control);
  }
  if (!value || typeof value !== "object" || Array.isArray(value)) throw new Wrong(t("must-be-object"), control);
  return control.value.trim();
}

// called calls the tool and shows progress, a question, and the result. The text of the arguments is sent as it is, so that
// numbers keep all their digits.
async function called({ server, tool, text, outcome, calling }) {
  const began = performance.now();
  const bar = el("progress", { "aria-label": t("progress") }), told = el("p", { class: "sub", role: "status" });
  outcome.replaceChildren(el("div", { class: "running" }, bar, told, button(t("cancel-call"), () => calling.abort(), { class: "quiet small" })));
  const ticking = setInterval(() => bar.setAttribute("aria-valuetext", duration(performance.now() - began)), 1000);
  const progress = (at) => {
    const [done, total] = [at.progress, at.total].map((one) => (Number.isFinite(one) ? one : 0)); // a server may send anything
    if (total > 0) Object.assign(bar, { max: total, value: done });
    told.textContent = [total > 0 ? `${number(done)} / ${number(total)}` : number(done), typeof at.message === "string" && at.message].filter(Boolean).join(" \u00b7 ");
  };
  const body = (confirmed) => `{"server":${JSON.stringify(server)},"tool":${JSON.stringify(tool)},"confirmed":${JSON.stringify(confirmed)},"arguments":${text}}`;
  const end = (...nodes) => outcome.replaceChildren(...nodes);
  try {
    let answer = await run("call", body(""), progress, calling.signal);
    while (answer.confirm !== undefined) {
      if (!(await question({ title: t("confirm-call"), detail: answer.confirm, yes: t("call-it"), no: t("do-not-call") }))) {
        say(t("not-called"));
        return end(el("p", { class: "sub" }, t("not-called")));
      }
      answer = await run("call", body(answer.confirm), progress, calling.signal);
    }
    const title = [t(answer.error ? "error" : "result"), duration(answer.milliseconds), t("n-tokens", { n: answer.tokens })].join(t("comma"));
    say(title);
    end(el("h3", null, title), block(answer.text, t("result-seen"), answer.error ? "fault" : ""));
  } catch (failure) {
    if (failure.name === "AbortError") {
      say(t("cancelled"));
      return end(el("p", { class: "sub" }, t("cancelled")));
    }
    if (!(failure instanceof Failure) || failure.status === 401) throw failure;
    end(fault(failure.message));
  } finally {
    clearInterval(ticking);
  }
}
