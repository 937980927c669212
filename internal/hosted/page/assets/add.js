// Adding a server, in two steps: what the viewer says becomes an entry that is shown, and nothing is written or started before the
// viewer has seen it and agreed.
import { ask, parse, sendText } from "./api.js";
import { busy, button, el, fault, foreign, labelled, say } from "./dom.js";
import { addFields, written } from "./entry.js";
import { form, label, mark, Wrong } from "./form.js";
import { cannot, t } from "./texts.js";

const ways = ["command", "url", "snippet", "registry"];

export async function addView(here, way = "command", ...rest) {
  const nodes = [el("p", { class: "crumb" }, el("a", { href: "#/" }, t("all-servers"))), el("h2", null, t("add-server"))];
  if (!here.can) return { nodes: [...nodes, el("p", { class: "note" }, cannot(here.state.can))] };
  nodes.push(el("nav", { class: "tabs", "aria-label": t("ways-to-add") }, ...ways.map((one) =>
    el("a", { href: "#/add/" + one, "aria-current": one === way ? "page" : undefined }, t("from." + one)))));
  const place = el("div", { class: "parts" });
  if (way === "registry") place.replaceChildren(...(rest.length ? await published(here, place, rest.join("/")) : registry()));
  else if (way === "snippet") place.replaceChildren(snippet(here, place));
  else place.replaceChildren(typed(here, place, way === "url" ? "url" : "command"));
  return { nodes: [...nodes, place] };
}

// sheet is a form whose text goes to the preview. read returns JSON text, or throws a Wrong.
function sheet(here, place, { nodes, read, to = (text) => text, submit }) {
  const wrong = fault();
  const next = el("button", { type: "submit" }, submit ?? t("preview"));
  let unmark;
  const made = el("form", { class: "sheet", novalidate: true, submit: (event) => {
    event.preventDefault();
    unmark?.();
    unmark = undefined;
    wrong.textContent = "";
    busy(next, t("working"), async () => {
      try {
        const text = to(read());
        const found = parse(await (await sendText("preview", "POST", text)).text());
        previewed(here, place, made, text, found);
      } catch (failure) {
        if (failure instanceof Wrong) unmark = mark(failure);
        else wrong.textContent = failure.message;
      }
    });
  } }, ...nodes, wrong, el("div", { class: "buttons" }, next));
  return made;
}

// typed is for a command line or a URL.
function typed(here, place, way) {
  const fields = form(addFields[way](), undefined);
  return sheet(here, place, { nodes: [el("p", { class: "sub" }, t("about-way." + way)), fields.node], read() {
    const text = fields.read();
    if (!parse(text)[way]) throw new Wrong(t("needs-value"), fields.control);
    return text;
  } });
}

function snippet(here, place) {
  const control = el("textarea", { rows: "10", spellcheck: "false", autocapitalize: "off" });
  return sheet(here, place, { nodes: [el("p", { class: "sub" }, t("about-way.snippet")), labelled(t("config-text"), control, t("about-config-text"))], read() {
    if (!control.value.trim()) throw new Wrong(t("needs-value"), control);
    return JSON.stringify({ snippet: control.value });
  } });
}

// registry searches the MCP registry.
function registry() {
  const control = el("input", { type: "search", autocomplete: "off" });
  const submit = el("button", { type: "submit" }, t("search"));
  const found = el("div", { class: "parts" }), wrong = fault();
  return [el("form", { class: "sheet", role: "search", "aria-label": t("from.registry"), submit: (event) => {
    event.preventDefault();
    wrong.textContent = "";
    busy(submit, t("working"), async () => {
      try {
        const got = await ask("registry?query=" + encodeURIComponent(control.value.trim()));
        const count = t("n-servers-found", { n: got.servers.length });
        found.replaceChildren(el("p", { class: "sub" }, count, " ", t("registry-says", { registry: got.registry }), got.more ? " " + t("more-there") : ""),
          el("ul", { class: "list", "aria-label": count }, got.servers.map(listed)));
        say(count);
      } catch (failure) {
        found.replaceChildren();
        wrong.textContent = failure.message;
      }
    });
  } }, el("p", { class: "sub" }, t("about-way.registry")), labelled(t("words"), control), wrong, el("div", { class: "buttons" }, submit)), found];
}

const listed = (one) => el("li", null,
  el("a", { href: "#/add/registry/" + one.name.split("/").map(encodeURIComponent).join("/"), translate: "no" }, one.name), el("span", { class: "tag" }, [one.version, ...(one.kinds ?? [])].filter(Boolean).join(" \u00b7 ")),
  one.deprecated && el("p", { class: "warn" }, foreign(one.deprecated)), one.description && el("p", null, foreign(one.description)));

// published is a server of the registry: the ways to run it, and the values that it needs.
async function published(here, place, name) {
  const one = await ask("registry/server?name=" + encodeURIComponent(name));
  const about = [el("h3", { translate: "no" }, one.name, " ", el("span", { class: "tag" }, one.version)), one.deprecated && el("p", { class: "warn" }, foreign(one.deprecated)),
    one.description && el("p", null, foreign(one.description)), one.repository && el("p", { class: "sub" }, t("source"), " ", foreign(one.repository))].filter(Boolean);
  if (!one.ways.length) return [...about, fault([t("no-way"), ...one.unusable].join("\n"))];
  const first = Math.max(one.ways.findIndex((way) => way.found || !way.runner), 0);
  const select = el("select", { change: () => show() }, ...one.ways.map((way, i) => el("option", { value: String(i) }, way.runner ? `${way.kind} (${way.runner}${way.found ? "" : t("not-installed")})` : way.kind)));
  select.value = String(first);
  const values = el("div");
  let fields;
  const show = () => {
    fields = form(valuesSchema(one, one.ways[Number(select.value)]), undefined);
    values.replaceChildren(fields.node);
  };
  show();
  return [sheet(here, place, { nodes: [...about, labelled(t("way"), select), values],
    read: () => fields.read(), to(text) {
      const { name: called, ...set } = parse(text);
      return JSON.stringify({ registry: one.name, way: Number(select.value), name: called, set: Object.fromEntries(Object.entries(set).filter(([, value]) => value !== "").map(([key, value]) => [key.slice(1), value])) });
    } })];
}

// valuesSchema makes a form of the values that a way asks for. A letter before each keeps them apart from the name.
function valuesSchema(one, way) {
  const properties = { name: { type: "string", [label]: t("key.name"), description: t("about.name"), maxLength: 100, default: one.short } };
  for (const asked of way.asks) {
    properties["=" + asked.name] = {
      type: "string", maxLength: 100, [label]: foreign(asked.name, { class: "key" }), default: asked.secret ? undefined : asked.default,
      description: [asked.description, asked.secret && t(one.keyring ? "to-keyring" : "secret-variable")].filter(Boolean).join("\n") || undefined,
      ...(asked.secret ? { format: "password" } : {}), ...(asked.choices?.length ? { enum: asked.choices } : {}),
    };
    if (properties["=" + asked.name].default === undefined) delete properties["=" + asked.name].default;
  }
  return { type: "object", required: ["name", ...way.asks.filter((asked) => asked.required).map((asked) => "=" + asked.name)], properties };
}

// previewed shows what would be written, with the names that it would have, and adds it.
function previewed(here, place, back, text, { servers, keyring, unset }) {
  const names = new Map();
  const parts = servers.map((server) => {
    if (!server.entry) return el("fieldset", null, el("legend", null, foreign(server.name)), ...written(server)); // its notes say why not
    const control = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    control.value = server.name;
    const chosen = el("input", { type: "checkbox" });
    chosen.checked = servers.length === 1 || !server.taken;
    names.set(server.name, { control, chosen });
    const field = labelled(t("key.name"), control, t("name-means"));
    return el("fieldset", null, el("legend", null, servers.length > 1 ? el("label", { class: "check" }, chosen, foreign(server.name)) : foreign(server.name)), field, ...written(server));
  });
  const wrong = fault();
  const add = el("button", { type: "submit" }, t("add-it"));
  let unmark;
  const made = el("form", { class: "sheet", novalidate: true, submit: (event) => {
    event.preventDefault();
    unmark?.();
    unmark = undefined;
    wrong.textContent = "";
    const wanted = [...names].filter(([, { chosen }]) => chosen.checked).map(([name, { control }]) => [name, control.value.trim()]);
    if (!wanted.length) return void (wrong.textContent = t("none-chosen"));
    const empty = wanted.find(([, to]) => !to);
    if (empty) return void (unmark = mark(new Wrong(t("needs-name"), names.get(empty[0]).control)));
    busy(add, t("working"), async () => {
      try {
        const { added } = JSON.parse(await (await sendText("servers", "POST", `${text.slice(0, -1)},"names":${JSON.stringify(Object.fromEntries(wanted))}}`)).text());
        await here.refresh();
        say(t("added", { server: added.join(", ") }));
        added.length === 1 ? here.go("server", added[0]) : here.go();
      } catch (failure) {
        wrong.textContent = failure.message;
      }
    });
  } },
    el("h3", { tabindex: "-1" }, t("preview-title")), el("p", { class: "sub" }, t("preview-means")), ...parts,
    keyring?.length > 0 && el("p", null, t("keyring-gets", { names: keyring.join(", ") })), unset?.length > 0 && el("p", { class: "warn" }, t("must-set", { names: unset.join(", ") })),
    wrong, el("div", { class: "buttons" }, names.size > 0 && add, button(t("back"), () => {
      place.replaceChildren(back);
      back.querySelector("button[type=submit]").focus();
    }, { class: "quiet" })));
  place.replaceChildren(made);
  made.querySelector("h3").focus();
}
