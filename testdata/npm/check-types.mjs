// Checks TypeScript renderings of JSON Schemas, mechanically. Reads a JSON file
//   {"cases": [{"id", "schema"?, "draft"?, "declaration"?, "types"?, "member"?, "args"?, "result"?, "open"?, "null"?}]}
// args and result are the schemas that member and types stand for; open and null
// ("inside" or "all") are what the header of the tool says of all its objects and of
// all optional properties. Writes one JSON object to stdout:
//   syntax:   parse and declaration errors of `declaration`, and of `member` put
//             into `interface Tools { … }` with `types` before it
//   verdicts: for generated instances of `schema` (minimal, full, mutants), whether
//             ajv and tsc agree that the instance fits; the structural part only:
//             numeric and string constraints are removed, oneOf counts as anyOf, and
//             what is quoted in a comment (patternProperties, and additionalProperties
//             beside it; a $ref that is no JSON pointer) allows anything.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(import.meta.url);
const ts = require('typescript');
const Ajv07 = require('ajv').default;
const Ajv2020 = require('ajv/dist/2020').default;

const { cases } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

// ---- structural part of a schema -------------------------------------------

const objectWords = ['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames'];
const arrayWords = ['items', 'prefixItems'];
const isObj = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const mapValues = (o, f) => Object.fromEntries(Object.entries(o).map(([k, v]) => [k, f(v)]));

function resolve(root, ref) {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let v = root;
  for (const seg of decodeURIComponent(ref.slice(2)).split('/')) {
    v = v?.[seg.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return v;
}

// typed: a schema around this one has given the type already.
function structural(s, root, typed = false) {
  if (s === true || s === false) return s;
  if (!isObj(s)) return true;
  const out = {};
  for (const k of ['type', 'enum', 'const', 'required']) if (k in s) out[k] = s[k];
  if (out.enum && out.enum.length === 0) {
    delete out.enum;
    out.not = {};
  }
  const sub = (v) => structural(v, root);
  for (const k of ['$defs', 'definitions', 'properties']) {
    if (isObj(s[k])) out[k] = mapValues(s[k], sub);
  }
  const hasProps = isObj(s.properties) && Object.keys(s.properties).length > 0;
  if ('additionalProperties' in s && !s.patternProperties) {
    const typedRest = isObj(s.additionalProperties) && (hasProps || s.required);
    out.additionalProperties = typedRest ? true : sub(s.additionalProperties);
  }
  if (isObj(s.propertyNames) && s.propertyNames.enum && !hasProps) out.propertyNames = { enum: s.propertyNames.enum };
  const tuple = Array.isArray(s.prefixItems) || Array.isArray(s.items);
  if (tuple) {
    for (const k of ['minItems', 'maxItems']) if (k in s) out[k] = s[k];
    const prefix = s.prefixItems ?? s.items;
    if (out.minItems > prefix.length) out.minItems = prefix.length;
    if (out.maxItems > prefix.length) delete out.maxItems;
  }
  for (const k of ['prefixItems', 'items']) {
    if (Array.isArray(s[k])) out[k] = s[k].map(sub);
    else if (k in s) out[k] = sub(s[k]);
  }
  if (Array.isArray(s.items) && 'additionalItems' in s) out.additionalItems = sub(s.additionalItems);
  const given = typed || 'type' in s;
  const implied = objectWords.some((k) => k in s) ? 'object' : arrayWords.some((k) => k in s) ? 'array' : '';
  if (!given && implied) out.type = implied;
  const list = (k) => s[k].map((v) => structural(v, root, given || implied !== ''));
  const all = [];
  if (Array.isArray(s.allOf) && s.allOf.length) all.push(...list('allOf'));
  if (Array.isArray(s.anyOf) && s.anyOf.length) all.push({ anyOf: list('anyOf') });
  if (Array.isArray(s.oneOf) && s.oneOf.length) all.push({ anyOf: list('oneOf') });
  if (typeof s.$ref === 'string' && resolve(root, s.$ref) !== undefined) all.push({ $ref: s.$ref });
  if (all.length) out.allOf = all;
  if (s.nullable === true && 'type' in s) return { ...pick(out, ['$defs', 'definitions']), anyOf: [omit(out, ['$defs', 'definitions']), { type: 'null' }] };
  return out;
}

const pick = (o, ks) => Object.fromEntries(ks.filter((k) => k in o).map((k) => [k, o[k]]));
const omit = (o, ks) => Object.fromEntries(Object.entries(o).filter(([k]) => !ks.includes(k)));

// ---- instances --------------------------------------------------------------

function sample(s, root, full, depth, turn) {
  if (s === false) return null;
  if (!isObj(s) || depth > 7) return full ? 'any' : null;
  if ('const' in s) return s.const;
  if (Array.isArray(s.enum)) return s.enum[turn.n++ % Math.max(s.enum.length, 1)] ?? null;
  let out;
  if (typeof s.$ref === 'string') {
    const target = resolve(root, s.$ref);
    out = target === undefined ? 'ref' : sample(target, root, full && depth < 5, depth + 1, turn);
  }
  const parts = [];
  for (const k of ['anyOf', 'oneOf']) {
    if (Array.isArray(s[k]) && s[k].length) parts.push(s[k][turn.n++ % s[k].length]);
  }
  for (const v of s.allOf ?? []) parts.push(v);
  const own = shape(s, root, full, depth, turn);
  out = merge(out, own);
  for (const p of parts) out = merge(out, sample(p, root, full, depth + 1, turn));
  return out === undefined ? 'free' : out;
}

function merge(a, b) {
  if (a === undefined) return b;
  if (b === undefined || b === 'free') return a;
  return isObj(a) && isObj(b) ? { ...a, ...b } : isObj(a) ? a : b;
}

function shape(s, root, full, depth, turn) {
  const given = Array.isArray(s.type) ? s.type[turn.n++ % s.type.length] : s.type;
  let type = given;
  if (!type) {
    if (objectWords.some((k) => k in s)) type = 'object';
    else if (arrayWords.some((k) => k in s)) type = 'array';
    else return undefined;
  }
  const at = (v, f = full) => sample(v, root, f, depth + 1, turn);
  switch (type) {
    case 'string': return 'text';
    case 'number': return 1.5;
    case 'integer': return 7;
    case 'boolean': return true;
    case 'null': return null;
    case 'array': {
      const prefix = Array.isArray(s.prefixItems) ? s.prefixItems : Array.isArray(s.items) ? s.items : [];
      const rest = Array.isArray(s.items) ? s.additionalItems : s.items;
      const n = full ? prefix.length : Math.min(s.minItems ?? 0, prefix.length);
      const out = prefix.slice(0, n).map((v) => at(v));
      if (full && depth < 5 && rest !== false && !(s.maxItems <= n) && (rest !== undefined || !prefix.length)) out.push(at(rest ?? true));
      return out;
    }
    case 'object': {
      const out = {};
      const required = new Set(s.required ?? []);
      for (const [k, v] of Object.entries(s.properties ?? {})) {
        if (required.has(k) || (full && depth < 5 && v !== false)) out[k] = at(v);
      }
      for (const k of required) if (!(k in out)) out[k] = isObj(s.additionalProperties) ? at(s.additionalProperties) : 'req';
      if (full && depth < 5) {
        if (isObj(s.additionalProperties) && !Object.keys(s.properties ?? {}).length && !s.patternProperties) {
          out[s.propertyNames?.enum?.[0] ?? 'extra'] = at(s.additionalProperties);
        }
        for (const [p, v] of Object.entries(s.patternProperties ?? {})) {
          const m = /^\^([A-Za-z0-9_:@/-]+)$/.exec(p);
          if (m) out[m[1] + 'key'] = at(v);
        }
      }
      return out;
    }
  }
  return 'odd';
}

const wrong = [null, 'zz', 12345, true, ['w'], { w: 1 }, [], {}];

// places lists the paths of an instance, breadth first.
function places(v) {
  const out = [];
  const queue = [[[], v]];
  while (queue.length && out.length < 60) {
    const [p, x] = queue.shift();
    out.push(p);
    if (x && typeof x === 'object') for (const k of Object.keys(x)) queue.push([[...p, Array.isArray(x) ? Number(k) : k], x[k]]);
  }
  return out;
}

function edit(v, p, f) {
  if (p.length === 0) return f(v, undefined);
  const copy = structuredClone(v);
  let at = copy;
  for (const k of p.slice(0, -1)) at = at[k];
  f(at, p[p.length - 1]);
  return copy;
}

function mutants(base, seed, most) {
  const out = [];
  const ps = places(base);
  for (let i = 0; i < ps.length && out.length < most; i++) {
    const p = ps[(i * 7 + seed) % ps.length];
    const w = wrong[(i + seed) % wrong.length];
    if (p.length === 0) {
      out.push(w);
      continue;
    }
    out.push(edit(base, p, (o, k) => { o[k] = w; }));
    if (out.length < most) {
      out.push(edit(base, p, (o, k) => { Array.isArray(o) ? o.splice(k, 1) : delete o[k]; }));
    }
    if (out.length < most) {
      out.push(edit(base, p, (o, k) => {
        if (Array.isArray(o)) o.push(w);
        else if (Array.isArray(o[k])) o[k].push(w);
      }));
    }
  }
  return out;
}

// closedAt finds plain closed objects: there an extra key must be refused by both.
function extraKey(s, v) {
  if (!isObj(s) || !isObj(v) || s.anyOf || s.oneOf || s.allOf || s.$ref || s.patternProperties) return undefined;
  return s.additionalProperties === false ? { ...v, zzExtra: 1 } : undefined;
}

function instances(schema, most) {
  const seen = new Map();
  const add = (v) => v !== undefined && seen.set(JSON.stringify(v), v);
  const fulls = [];
  for (let turn = 0; turn < 4; turn++) {
    const v = sample(schema, schema, true, 0, { n: turn });
    fulls.push(v);
    add(v);
  }
  const min = sample(schema, schema, false, 0, { n: 0 });
  add(min);
  add(extraKey(schema, min));
  for (const [i, v] of [...fulls, min].entries()) for (const m of mutants(v, i * 3 + 1, Math.ceil(most / 4))) add(m);
  return [...seen.values()].slice(0, most);
}

// excess: a mutant may carry a key that an open schema does not list. JSON
// Schema allows it, TypeScript refuses it in a literal; such instances are skipped.
const excess = new Set([2353, 2561]);

function literal(v) {
  if (Array.isArray(v)) return '[' + v.map(literal).join(',') + ']';
  if (isObj(v)) return '{' + Object.entries(v).map(([k, x]) => (k === '__proto__' ? '["__proto__"]' : JSON.stringify(k)) + ':' + literal(x)).join(',') + '}';
  return JSON.stringify(v);
}

// ---- TypeScript ---------------------------------------------------------------

const libDir = path.dirname(require.resolve('typescript'));
const libs = new Map();
const options = { strict: true, noImplicitAny: false, noEmit: true, lib: ['lib.es5.d.ts'], types: [], target: ts.ScriptTarget.ES2022, skipLibCheck: true };

function check(name, text) {
  const source = ts.createSourceFile(name, text, options.target, true);
  const host = {
    getSourceFile: (f) => {
      if (f === name) return source;
      if (!libs.has(f)) {
        let body;
        try { body = readFileSync(path.join(libDir, path.basename(f)), 'utf8'); } catch { body = ''; }
        libs.set(f, ts.createSourceFile(f, body, options.target));
      }
      return libs.get(f);
    },
    getDefaultLibFileName: () => 'lib.es5.d.ts', writeFile() {}, getCurrentDirectory: () => '/', getCanonicalFileName: (f) => f,
    useCaseSensitiveFileNames: () => true, getNewLine: () => '\n', fileExists: (f) => f === name, readFile: () => undefined,
  };
  const program = ts.createProgram([name], options, host);
  const errors = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  return errors.map((d) => ({
    line: source.getLineAndCharacterOfPosition(d.start ?? 0).line, code: d.code, message: ts.flattenDiagnosticMessageText(d.messageText, ' '),
  }));
}

// ---- run ------------------------------------------------------------------------

const report = { cases: cases.length, members: 0, errors: [], checked: 0, valid: 0, invalid: 0, skipped: 0, uncompiled: [], disagree: [] };
const most = Number(process.argv[3] ?? 12);
const lines = [];
const owner = []; // line -> {id, instance?, ajv?}
const put = (text, what) => {
  for (const l of text.split('\n')) {
    lines.push(l);
    owner.push(what);
  }
};

// expand writes what a header says of the whole tool back into the types: an index
// signature in every object, null at every optional property. The last statement is
// the root; marks "inside" leave its own object out.
function expand(text, open, nullable) {
  if (!open && !nullable) return text;
  const source = ts.createSourceFile('x.ts', text, options.target, true);
  const edits = [];
  const root = source.statements.at(-1).type;
  const visit = (node) => {
    const inside = node !== root && node.parent !== root;
    if (ts.isTypeLiteralNode(node) && node.members.length && !node.members.some(ts.isIndexSignatureDeclaration)) {
      if (open === 'all' || (open && node !== root)) edits.push([node.getStart() + 1, '[k: string]: unknown;']);
    }
    if (ts.isPropertySignature(node) && node.questionToken && (nullable === 'all' || (nullable && inside))) {
      edits.push([node.type.getStart(), '('], [node.type.getEnd(), ') | null']);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return edits.sort((a, b) => b[0] - a[0]).reduce((s, [at, t]) => s.slice(0, at) + t + s.slice(at), text);
}

// whole puts the instances of the schemas of one tool against its text as printed.
function whole(c, i) {
  const source = ts.createSourceFile('m.ts', `interface Tools {\n${c.member}\n}`, options.target, true);
  const method = source.statements[0].members[0];
  if (!method || !ts.isMethodSignature(method)) return apart(c, i, method);
  const list = method.parameters.map((p) => ({ name: p.name.getText(), optional: !!p.questionToken, type: p.type?.getText() }));
  if (list.some((p) => p.type === undefined)) return; // the JSON Schema itself is shown
  const sides = [];
  if (c.args && list.length) { // () says nothing that a type could
    const alone = list.length === 1 && list[0].name === 'args' && !(c.args.properties && 'args' in c.args.properties);
    const args = alone ? list[0].type : '{' + list.map((p) => `${p.name}${p.optional ? '?' : ''}: ${p.type}`).join('\n;') + '}';
    sides.push(['a', c.args, args]);
  }
  if (c.result && method.type) sides.push(['r', c.result, method.type.getText()]);
  for (const [side, schema, type] of sides) {
    // A result has no object of its own that the marks leave out.
    const open = side === 'r' && c.open ? 'all' : c.open;
    const nullable = side === 'r' && c.null ? 'all' : c.null;
    put(`namespace w${i}${side} {`, { id: c.id, where: 'whole' });
    put(expand(`${c.types ?? ''}\ntype Whole = ${type};`, open, nullable), { id: c.id, where: 'whole' });
    judge({ ...c, schema }, 'Whole');
    put('}', { id: c.id, where: 'whole' });
  }
}

// apart is whole for a text whose arguments have a type of their own, Args, or are the type of the member.
function apart(c, i, member) {
  if (!member || !ts.isPropertySignature(member)) return;
  const types = c.types ?? '';
  const sides = [];
  if (c.args && member.type) sides.push(['a', c.args, member.type.getText(), c.open, c.null]);
  else if (c.args && /^type Args = /m.test(types)) sides.push(['a', c.args, 'Args', c.open, c.null]);
  if (c.result && /^type Result = /m.test(types)) sides.push(['r', c.result, 'Result', c.open ? 'all' : c.open, c.null ? 'all' : c.null]);
  for (const [side, schema, type, open, nullable] of sides) {
    put(`namespace w${i}${side} {`, { id: c.id, where: 'whole' });
    put(expand(`${types}\ntype Whole = ${type};`, open, nullable), { id: c.id, where: 'whole' });
    judge({ ...c, schema }, 'Whole');
    put('}', { id: c.id, where: 'whole' });
  }
}

// One validator for each draft: a new one compiles its metaschema first.
const lenient = { strict: false, validateFormats: false, logger: false };
const [draft07, draft2020] = [new Ajv07(lenient), new Ajv2020(lenient)];

function judge(c, type = 'Args') {
  const ajv = c.draft === '07' ? draft07 : draft2020;
  let validate;
  try {
    validate = ajv.compile(structural(c.schema, c.schema));
  } catch (e) {
    report.uncompiled.push(`${c.id}: ${e.message}`);
    return;
  }
  instances(c.schema, most).forEach((v, i) => {
    let ok;
    try { ok = validate(v); } catch { return; }
    put(`const c${i}: ${type} = ${literal(v)};`, { id: c.id, instance: JSON.stringify(v), ajv: ok });
  });
}

cases.forEach((c, i) => {
  if (c.declaration !== undefined) {
    put(`namespace d${i} {`, { id: c.id, where: 'declaration' });
    put(c.declaration, { id: c.id, where: 'declaration' });
    if (c.schema !== undefined) judge(c);
    put('}', { id: c.id, where: 'declaration' });
  }
  if (c.member !== undefined) {
    report.members++;
    put(`namespace m${i} {\n${c.types ?? ''}\ninterface Tools {\n${c.member}\n}\n}`, { id: c.id, where: 'member' });
    if (c.args || c.result) whole(c, i);
  }
});

const bad = new Map();
for (const e of check('all.ts', lines.join('\n'))) {
  const o = owner[e.line] ?? {};
  if (o.instance === undefined) {
    if (report.errors.length < 40) report.errors.push(`${o.id} (${o.where}): TS${e.code} ${e.message} in: ${lines[e.line]}`.slice(0, 500));
    else report.errors.length++;
  } else if (!bad.has(e.line)) bad.set(e.line, e);
}
owner.forEach((o, line) => {
  if (o.instance === undefined) return;
  const e = bad.get(line);
  if (o.ajv && e && excess.has(e.code)) {
    report.skipped++;
    return;
  }
  report.checked++;
  o.ajv ? report.valid++ : report.invalid++;
  if (o.ajv === (e !== undefined)) {
    report.disagree.push(`${o.id}: ajv ${o.ajv ? 'valid' : 'invalid'}, tsc ${e ? 'TS' + e.code + ' ' + e.message.slice(0, 300) : 'assignable'}: ${o.instance.slice(0, 300)}`);
  }
});
report.disagreements = report.disagree.length;
report.disagree = report.disagree.slice(0, 40);
console.log(JSON.stringify(report, null, 1));
