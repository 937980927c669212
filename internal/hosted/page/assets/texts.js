// The language of the page: English or 简体中文, by the browser's until the viewer chooses. Each has one table with all texts of the page.
// Texts from servers, tools and the log of mcpx are shown as they are.
import { en } from "./en.js";
import { zh } from "./zh.js";

const tables = { en, "zh-CN": zh };
const kept = "mcpx-language";

function first() {
  try {
    const chosen = localStorage.getItem(kept);
    if (chosen in tables) return chosen;
  } catch {} // the browser keeps nothing for this page
  const known = navigator.languages.find((one) => /^(en|zh)\b/i.test(one)) ?? "en";
  return /^zh/i.test(known) ? "zh-CN" : "en";
}

export let language = first();
let plural = new Intl.PluralRules(language);

// t is the text with this key. {name} in it becomes values.name. If the text has forms, values.n chooses one.
export function t(key, values = {}) {
  let text = tables[language][key] ?? en[key] ?? key;
  if (typeof text === "object") text = text[plural.select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
}

export const has = (key) => key in tables[language];

// known is t for words of mcpx, such as states: one that this page does not know is shown as it is.
export const known = (kind, word) => (`${kind}.${word}` in en ? t(`${kind}.${word}`) : String(word));

// cannot says why servers cannot be changed here.
export const cannot = ({ why, code }) => (has("code." + code) ? t("code." + code) : why ?? "");

export const number = (n) =>
  n.toLocaleString(language, Math.abs(n) >= 10000 ? { notation: "compact", maximumFractionDigits: 1 } : { maximumFractionDigits: 1 });

export const exact = (n) => n.toLocaleString(language);

// clock is a time of day, with its date if that is not today.
export function clock(at) {
  const date = new Date(at);
  const day = date.toDateString() === new Date().toDateString() ? {} : { month: "short", day: "numeric" };
  return date.toLocaleString(language, { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

export function duration(milliseconds) {
  if (milliseconds < 1) return t("under-ms");
  return milliseconds < 10000 ? t("ms", { n: Math.round(milliseconds) }) : t("seconds", { n: milliseconds / 1000 });
}

// fill writes the texts of page.html: data-t has the key of the content, data-t-NAME that of an attribute.
export function fill() {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const name of ["placeholder", "aria-label"])
    for (const node of document.querySelectorAll(`[data-t-${name}]`)) node.setAttribute(name, t(node.getAttribute(`data-t-${name}`)));
}

// other is the language to which the viewer can change, and its name in itself.
export const other = () => (language === "en" ? { tag: "zh-CN", name: "简体中文" } : { tag: "en", name: "English" });

export function choose(tag) {
  language = tag;
  plural = new Intl.PluralRules(tag);
  try {
    localStorage.setItem(kept, tag);
  } catch {} // it is chosen again next time
  fill();
}
