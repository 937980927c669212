// Reads JSON lines {"js": text, "json": text}, evaluates the text in two engines (V8, in a context of its own, and QuickJS if it is
// installed), and answers each with one JSON line: {"same": whether the value is that of json in each} or {"error": message}.
import { createInterface } from 'node:readline';
import vm from 'node:vm';

const engines = {
  v8(js) {
    const context = vm.createContext({});
    vm.runInContext('globalThis.stringify = JSON.stringify; globalThis.run = eval', context);
    context.text = js;
    return vm.runInContext('stringify(run(text))', context, { timeout: 10000 });
  },
};
try {
  const { newQuickJSWASMModuleFromVariant } = await import('quickjs-emscripten-core');
  const quickjs = await newQuickJSWASMModuleFromVariant(import('@jitl/quickjs-wasmfile-release-sync'));
  engines.quickjs = (js) => {
    const context = quickjs.newContext();
    try {
      context.newString(js).consume((text) => context.setProp(context.global, 'text', text));
      return context.unwrapResult(context.evalCode('JSON.stringify((0, eval)(text))')).consume((value) => context.getString(value));
    } finally {
      context.dispose();
    }
  };
} catch (error) {
  if (process.env.MCPX_REQUIRE_NPM === '1') throw error;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    const { js, json } = JSON.parse(line);
    const want = JSON.stringify(JSON.parse(json));
    answer = { same: true };
    for (const [name, run] of Object.entries(engines)) {
      if (run(js) !== want) answer = { same: false, engine: name };
    }
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
