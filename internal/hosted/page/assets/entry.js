// The entry of a server in the config file, as a form: the keys that nearly every server has, and the others as JSON.
import { parse, write } from "./api.js";
import { block, el, fault } from "./dom.js";
import { form, label } from "./form.js";
import { t } from "./texts.js";

const text = (key, more) => ({ type: "string", [label]: t("key." + key), description: t("about." + key), maxLength: 100, ...more });
const pairs = (key) => ({ type: "object", additionalProperties: { type: "string", maxLength: 100 }, [label]: t("key." + key), description: t("about." + key) });

// schemas of the forms; what is added has a name, and its command is one line.
const fields = {
  command: () => ({ command: text("program"), args: { type: "array", items: { type: "string", maxLength: 100 }, [label]: t("key.args"), description: t("about.args") }, env: pairs("env"), cwd: text("cwd") }),
  url: () => ({ url: text("url"), headers: pairs("headers") }),
};

export const addFields = {
  command: () => ({ type: "object", required: ["command"], properties: { name: text("name"), command: text("line"), env: pairs("env") } }),
  url: () => ({ type: "object", required: ["url"], properties: { name: text("name"), url: text("url"), headers: pairs("headers") } }),
};

// entryForm is the form of an entry: {node, read}. read returns the whole entry.
export function entryForm(entry) {
  const kind = entry.url !== undefined ? "url" : entry.command !== undefined ? "command" : undefined;
  const properties = kind ? fields[kind]() : {};
  const own = Object.fromEntries(Object.entries(entry).filter(([key]) => Object.hasOwn(properties, key)));
  const rest = Object.fromEntries(Object.entries(entry).filter(([key]) => !Object.hasOwn(properties, key)));
  const main = kind ? form({ type: "object", required: [kind], properties }, own) : undefined;
  const others = form({ type: "object", required: [], properties: { others: { type: "object", [label]: t("key.others"), description: t("about.others") } } }, { others: main ? rest : entry });
  return {
    node: el("div", { class: "fields" }, main && main.node, others.node),
    read() {
      const first = main ? parse(main.read()) : {};
      const more = parse(others.read()).others ?? {};
      return { ...first, ...more };
    },
  };
}

// written shows what would be in the file, or is: what runs, where it connects to, and what to know before.
export function written(server) {
  const { name, runs, url, entry, executes, notes, taken } = server;
  const of = (text, key, i = "") => block(text, `${t(key)}: ${name}${i && " " + i}`);
  return [
    taken && fault(t("name-taken", { server: name }), { role: undefined }),
    runs && el("p", null, t("would-run")), runs && of(runs, "would-run"),
    url && el("p", null, t("would-connect")), url && of(url, "would-connect"),
    ...(executes ?? []).flatMap((one, i) => [el("p", { class: "warn" }, t("would-execute")), of(one, "would-execute", String(i + 1))]),
    ...(notes ?? []).map((note) => el("p", { class: "warn" }, el("bdi", null, note))),
    entry && el("details", { open: Boolean(entry.env || entry.headers) }, el("summary", null, t("as-in-file")), of(write(entry, "  "), "as-in-file")),
  ].filter(Boolean);
}
