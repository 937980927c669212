// A form made of a JSON Schema. It makes JSON text, not values, so that numbers keep the digits that were typed. What a form
// cannot show well is a box for JSON: that part, and never more than that part. Nothing is validated here that mcpx validates
// anyway, with the whole of JSON Schema.
import { Digits, parse, write } from "./api.js";
import { button, el, labelled, newID } from "./dom.js";
import { t } from "./texts.js";

// A field is {node, read, control}. read returns JSON text, or undefined for a value that is left out; it throws a Wrong.
// control takes the focus.
export class Wrong extends Error {
  constructor(text, control) {
    super(text);
    this.control = control;
  }
}

// Unfit says that a value is not one that the form can show.
class Unfit extends Error {}

// label is the text of a label where the name is not for people: of forms of this page, not of tools.
export const label = Symbol("label");

const deepest = 8; // what is nested deeper becomes JSON; a schema may nest without an end
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Digits);

// plain resolves references, and puts schemas together of which one alone would not say everything. It returns undefined if there
// is no schema at the end.
function plain(schema, root) {
  for (let hops = 0; hops < 16; hops++) {
    if (!isObject(schema)) return undefined;
    const { $ref, allOf, anyOf, oneOf, ...rest } = schema;
    const choices = (anyOf ?? oneOf ?? []).filter?.((one) => one?.type !== "null") ?? [];
    if (typeof $ref === "string") schema = { ...found($ref, root), ...rest };
    else if (Array.isArray(allOf) && allOf.length === 1) schema = { ...allOf[0], ...rest };
    else if (choices.length === 1 && !(anyOf && oneOf) && !allOf) schema = { ...choices[0], ...rest, nullable: (anyOf ?? oneOf).length > 1 };
    else return schema;
  }
  return undefined;
}

// found is what a reference inside the document names.
function found(ref, root) {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  let at = root;
  for (const part of ref.split("/").slice(1)) {
    const name = unescaped(part).replaceAll("~1", "/").replaceAll("~0", "~");
    at = at && typeof at === "object" && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

function unescaped(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// kind is how a schema is shown: enum, string, number, integer, boolean, array, object, choice, or json.
function kind(schema) {
  if (!schema) return "json";
  if ("const" in schema || (Array.isArray(schema.enum) && schema.enum.length > 0 && schema.enum.length <= 500)) return "enum";
  const types = [schema.type].flat().filter((one) => one !== "null" && one !== undefined);
  const choices = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(choices) && choices.length > 1 && !(schema.oneOf && schema.anyOf)) return "choice";
  if (schema.allOf || types.length > 1) return "json";
  const type = types[0] ?? (isObject(schema.properties) ? "object" : isObject(schema.items) ? "array" : "json");
  if (type === "object" && !isObject(schema.properties)) return isObject(schema.additionalProperties) ? "map" : "json";
  if (type === "array" && !isObject(schema.items)) return "json";
  return ["string", "number", "integer", "boolean", "array", "object"].includes(type) ? type : "json";
}

const nullable = (schema) => schema?.nullable === true || [schema?.type].flat().includes("null");

// Schemas that name themselves grow without an end. What is built at once has at most so many members and items; others are JSON.
const mostFields = 300;
let builds = 0, fields = 0;

function built(make) {
  if (builds++ === 0) fields = 0;
  try {
    return make();
  } finally {
    builds--;
  }
}

function count(more) {
  if ((fields += more) > mostFields) throw new Unfit();
}

// field makes the field of a schema. about has its name (undefined for an item and for the whole), root, required, value and depth.
// Parts of the form whose value or schema does not fit become JSON.
function field(schema, about) {
  let resolved = {};
  try {
    resolved = plain(schema, about.root) ?? {};
    return built(() => (about.depth > deepest ? json : makers[kind(resolved)])(resolved, about));
  } catch {
    try {
      return json(resolved, about);
    } catch {
      return json({}, about); // its default nests too deeply to be written
    }
  }
}

const makers = { enum: choices, string: line, number: digits, integer: digits, boolean: choices, array: list, object, map, choice: variants, json };

// hint says what a field is for: the words of the server, then the default of what may be left out.
function hint(schema, about) {
  const parts = [];
  if (typeof schema.description === "string") parts.push(el("bdi", { translate: "no" }, schema.description.slice(0, 2000)));
  const note = "default" in schema && schema.default !== null && !about?.required ? t("default", { value: write(schema.default).slice(0, 200) }) : schema.format && schema.format !== "password" ? t("format", { value: String(schema.format).slice(0, 40) }) : "";
  if (note) parts.push((parts.length ? "\n" : "") + note);
  return parts.length ? el("span", null, ...parts) : undefined;
}

// name is the text of a label: the name in the schema is what the server and the error messages say.
const name = (schema, about) => el("span", null, schema[label] ?? el("bdi", { translate: "no", class: "key" }, about.name ?? t("item", { n: (about.index ?? 0) + 1 })),
  about.json && el("span", { class: "tag" }, "JSON"), about.required ? "" : el("span", { class: "tag" }, t("optional")));

const boxed = (schema, about, control) => labelled(name(schema, about), control, hint(schema, about));

const start = (schema, about) => (about.value !== undefined ? about.value : about.required ? schema.default : undefined);

function line(schema, about) {
  const value = start(schema, about) ?? "";
  if (typeof value !== "string") throw new Unfit();
  const short = schema.format || schema.pattern || schema.maxLength <= 200;
  const control = short && !value.includes("\n") ? el("input", { type: schema.format === "password" ? "password" : "text", spellcheck: "false", autocomplete: "off" })
    : el("textarea", { rows: "1", class: "text", spellcheck: "false" });
  control.value = value;
  const empty = about.required && !nullable(schema);
  return { node: boxed(schema, about, control), control, read: () => (control.value !== "" || empty ? JSON.stringify(control.value) : about.required ? "null" : undefined) };
}

function digits(schema, about) {
  const value = start(schema, about);
  if (value !== undefined && value !== null && typeof value !== "number" && !(value instanceof Digits)) throw new Unfit();
  const whole = [schema.type].flat().includes("integer");
  const control = el("input", { type: "text", inputmode: whole ? "numeric" : "decimal", autocomplete: "off", class: "short" });
  control.value = value === undefined || value === null ? "" : write(value);
  return {
    node: boxed(schema, about, control), control,
    read() {
      const text = control.value.trim();
      if (text === "" && !about.required) return undefined;
      if (text === "" && nullable(schema)) return "null";
      if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) || (whole && !Number.isInteger(Number(text)))) throw new Wrong(t(whole ? "not-integer" : "not-number"), control);
      return text;
    },
  };
}

// choices is for enum, const and boolean. The values of the options are JSON.
function choices(schema, about) {
  const values = "const" in schema ? [schema.const] : schema.enum ?? [true, false];
  const texts = values.map((one) => write(one));
  if (nullable(schema) && !texts.includes("null")) texts.push("null");
  const value = about.value !== undefined ? about.value : about.required ? schema.default ?? (values.length === 1 ? values[0] : undefined) : undefined;
  const control = el("select", null, el("option", { value: "" }, t(about.required ? "choose" : "left-out")),
    ...texts.map((text) => el("option", { value: text }, /^"/.test(text) && text.length > 2 ? JSON.parse(text) : text)));
  if (value !== undefined && !texts.includes(write(value))) throw new Unfit();
  control.value = value === undefined ? "" : write(value);
  return {
    node: boxed(schema, about, control), control,
    read() {
      if (control.value === "" && about.required) throw new Wrong(t("must-choose"), control);
      return control.value === "" ? undefined : control.value;
    },
  };
}

function json(schema, about) {
  const value = start(schema, about);
  const control = el("textarea", { rows: "2", spellcheck: "false", autocapitalize: "off" });
  control.value = value === undefined ? "" : write(value, "  ");
  return {
    node: boxed(schema, { ...about, json: true }, control), control,
    read() {
      if (control.value.trim() === "" && !about.required) return undefined;
      try {
        JSON.parse(control.value);
      } catch (failure) {
        throw new Wrong(t("not-json", { why: failure.message }), control);
      }
      return control.value.trim();
    },
  };
}

// group puts several fields under one name.
const group = (schema, about, ...children) => {
  const said = hint(schema);
  return el("fieldset", null, el("legend", null, name(schema, about)), said && el("p", { class: "hint" }, said), ...children);
};

function object(schema, about) {
  const value = start(schema, about) ?? {};
  if (!isObject(value)) throw new Unfit();
  const properties = Object.entries(schema.properties);
  count(properties.length);
  if (Object.keys(value).some((key) => !Object.hasOwn(schema.properties, key))) throw new Unfit();
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const members = properties.sort(([a], [b]) => required.has(b) - required.has(a)).map(([key, inner]) => [key,
    member(inner, { name: key, root: about.root, required: required.has(key), value: Object.hasOwn(value, key) ? value[key] : undefined, depth: about.depth + 1 })]);
  const nodes = members.map(([, one]) => one.node);
  return {
    node: about.depth === 0 ? el("div", { class: "fields" }, ...nodes) : group(schema, about, ...nodes),
    control: members[0]?.[1].control,
    read() {
      const texts = members.map(([key, one]) => [key, one.read()]).filter(([, text]) => text !== undefined);
      return `{${texts.map(([key, text]) => JSON.stringify(key) + ":" + text).join(",")}}`;
    },
  };
}

// member is a field that, if it is a whole object or list that may be left out, is made when the viewer wants it: schemas can
// contain themselves.
function member(schema, about) {
  const resolved = plain(schema, about.root);
  if (about.required || about.value !== undefined || !["object", "map", "array", "choice"].includes(kind(resolved))) return field(schema, about);
  let made;
  const place = el("div", { class: "field" });
  const one = { node: place, control: undefined, read: () => made?.read() };
  const closed = () => {
    made = undefined;
    one.control = button([t("add-part") + " ", resolved[label] ?? el("bdi", { translate: "no", class: "key" }, about.name)], () => {
      made = field(schema, { ...about, required: true });
      const leave = button(t("leave-out"), () => {
        closed();
        one.control.focus();
      }, { class: "quiet small", "aria-label": `${t("leave-out")}: ${about.name}` });
      place.replaceChildren(made.node, leave);
      (made.control ?? leave).focus();
    }, { class: "quiet small" });
    const said = hint(resolved);
    place.replaceChildren(one.control, ...(said ? [el("p", { class: "hint" }, said)] : []));
  };
  closed();
  return one;
}

// items are rows that can be added and taken away; make makes the fields of a row: {node, control, read}.
function items(schema, about, values, make) {
  count(values.length);
  const rows = [];
  const place = el("div", { class: "items" });
  const add = (value) => {
    const one = make(value, rows.length);
    const row = el("div", { class: "item" }, one.node, button("\u00d7", () => {
      const index = rows.findIndex((item) => item.row === row);
      rows.splice(index, 1);
      row.remove();
      (rows[Math.min(index, rows.length - 1)]?.control ?? more).focus();
    }, { class: "quiet small", "aria-label": t("remove-item") }));
    rows.push({ ...one, row });
    place.append(row);
    return one;
  };
  const more = button(t("add-item"), () => add(undefined).control?.focus(), { class: "quiet small", "aria-label": `${t("add-item")}: ${schema[label] ?? about.name ?? ""}` });
  for (const one of values) add(one);
  return { node: group(schema, about, place, more), control: more, read: () => rows.map((one) => one.read()) };
}

const mostItems = 200; // longer lists are JSON

function list(schema, about) {
  const value = start(schema, about) ?? [];
  if (!Array.isArray(value) || value.length > mostItems) throw new Unfit();
  const made = items(schema, about, value, (one, index) => field(schema.items, { index, root: about.root, required: true, value: one, depth: about.depth + 1 }));
  return { ...made, read: () => `[${made.read().join(",")}]` };
}

// map is an object whose members the viewer names.
function map(schema, about) {
  const value = start(schema, about) ?? {};
  if (!isObject(value) || Object.keys(value).length > mostItems) throw new Unfit();
  const made = items(schema, about, Object.entries(value), (entry, index) => {
    const control = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    control.value = entry?.[0] ?? "";
    const inner = field({ ...schema.additionalProperties, [label]: t("value") }, { index, root: about.root, required: true, value: entry?.[1], depth: about.depth + 1 });
    return { node: el("div", { class: "pair" }, labelled(t("name"), control), inner.node), control, read() {
      if (control.value === "") throw new Wrong(t("needs-name"), control);
      return [control, control.value, inner.read()];
    } };
  });
  return { ...made, read() {
    const seen = new Set();
    const texts = made.read().map(([control, key, text]) => {
      if (seen.has(key)) throw new Wrong(t("twice"), control);
      seen.add(key);
      return `${JSON.stringify(key)}:${text}`;
    });
    return `{${texts.join(",")}}`;
  } };
}

// variants lets the viewer choose one of the schemas of oneOf or anyOf, or JSON, which is where a value that is there already goes.
function variants(schema, about) {
  const { oneOf, anyOf, ...rest } = schema;
  const all = (oneOf ?? anyOf).slice(0, 50).map((one) => ({ ...rest, description: undefined, ...plain(one, about.root) }));
  const control = el("select", null, ...all.map((one, i) => el("option", { value: String(i) }, called(one, i))), el("option", { value: "json" }, "JSON"));
  const place = el("div");
  let inner;
  const show = () => {
    const deeper = { ...about, name: t("value"), required: true, depth: about.depth + 1 };
    inner = control.value === "json" ? json({}, deeper) : field(all[Number(control.value)], { ...deeper, value: undefined });
    place.replaceChildren(inner.node);
  };
  control.value = start(schema, about) === undefined ? "0" : "json";
  control.addEventListener("change", show);
  show();
  return { node: group(schema, about, labelled(t("variant"), control), place), control, read: () => inner.read() };
}

function called(schema, i) {
  const members = isObject(schema.properties) ? Object.keys(schema.properties).slice(0, 3).join(", ") : "";
  return String(schema.title ?? ("const" in schema ? write(schema.const) : [[schema.type].flat().filter(Boolean).join(" | "), members].filter(Boolean).join(": ") || t("variant-n", { n: i + 1 }))).slice(0, 80);
}

// form makes the form of a whole schema, with a value if there is one already. It returns undefined if the schema is not one of an
// object whose members it knows, or if the value or the schema does not fit: then there is JSON for all of it.
export function form(schema, value) {
  try {
    const root = schema ?? {};
    const whole = plain({ type: "object", ...root }, root);
    if (kind(whole) !== "object" || (Object.keys(whole.properties).length === 0 && whole.additionalProperties !== false)) return undefined;
    return built(() => object(whole, { root, required: true, value, depth: 0 }));
  } catch {
    return undefined;
  }
}

// example is a value to begin with, where there is JSON alone: the required members.
export function example(schema) {
  const at = plain(schema, schema);
  const of = (one) => {
    const inner = plain(one, schema) ?? {};
    if ("default" in inner) return inner.default;
    if (Array.isArray(inner.enum)) return inner.enum[0];
    return { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} }[[inner.type].flat()[0]] ?? null;
  };
  return Object.fromEntries((Array.isArray(at?.required) ? at.required : []).map((key) => [key, of(at.properties?.[key])]));
}

// mark shows what is wrong at its field, which gets the focus, and returns a function that takes the mark away.
export function mark(wrong) {
  const id = newID();
  const told = el("p", { class: "fault", role: "alert", id }, wrong.message);
  const before = wrong.control.getAttribute("aria-describedby");
  wrong.control.setAttribute("aria-invalid", "true");
  wrong.control.setAttribute("aria-describedby", [before, id].filter(Boolean).join(" "));
  wrong.control.after(told);
  wrong.control.focus();
  return () => {
    told.remove();
    wrong.control.removeAttribute("aria-invalid");
    before ? wrong.control.setAttribute("aria-describedby", before) : wrong.control.removeAttribute("aria-describedby");
  };
}
