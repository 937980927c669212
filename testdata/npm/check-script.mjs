// Reads JSON lines {"js": text, "json": text}, evaluates the text in a context of its own, and answers each with one JSON line:
// {"same": whether the value is that of json} or {"error": message}.
import { createInterface } from 'node:readline';
import vm from 'node:vm';

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    const { js, json } = JSON.parse(line);
    const context = vm.createContext({});
    vm.runInContext('globalThis.stringify = JSON.stringify; globalThis.run = eval', context);
    context.text = js;
    answer = { same: vm.runInContext('stringify(run(text))', context, { timeout: 10000 }) === JSON.stringify(JSON.parse(json)) };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
