// The official TypeScript SDK client, driven by a test: takes one JSON command a
// line on stdin and writes one JSON answer a line to stdout.
//   node sdk-client.mjs stdio COMMAND [ARG...]   (the environment is passed on)
//   node sdk-client.mjs http URL
//   node sdk-client.mjs sse URL                  (the transport of 2024-11-05)
// --elicit=ACTION before that: the client can be asked, and answers every question so.
// --able=NAME: it is NAME, can be asked everything, and answers with its name.
// Commands: {"id", "op": "list"} · {"id", "op": "call", "params"} ·
// {"id", "op": "cancel", "params", "ms"}: a call taken back after ms ·
// {"id", "op": "stream", "params"}: a call as a task, answered with all its messages · {"id", "op": "getTask", "params"} ·
// {"id", "op": "listResources" or another method of the client, "params"}.
// What comes unasked is {"note": method, "params"}.
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

const argv = process.argv.slice(2);
const elicit = argv[0].startsWith('--elicit=') ? argv.shift().slice('--elicit='.length) : '';
const able = argv[0].startsWith('--able=') ? argv.shift().slice('--able='.length) : '';
const [kind, target, ...args] = argv;
const transport = kind === 'sse' ? new SSEClientTransport(new URL(target)) : kind === 'http'
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: 'inherit' });

const write = (value) => process.stdout.write(JSON.stringify(value) + '\n');
const capabilities = able ? { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } : elicit ? { elicitation: {} } : {};
const client = new Client({ name: able || 'sdk-test', version: '1.0.0' }, { capabilities });
if (able) {
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({ action: 'accept', ...(params.mode !== 'url' && { content: { name: able, check: true } }) }));
  client.setRequestHandler(CreateMessageRequestSchema, () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled by ' + able } }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home/' + able, name: able }] }));
}
if (elicit) {
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    write({ note: request.method, params: request.params });
    return { action: elicit, content: elicit === 'accept' ? { run: true } : {} };
  });
}
client.onerror = (error) => write({ note: 'error', params: String(error) });
for (const schema of [ToolListChangedNotificationSchema, ResourceListChangedNotificationSchema, PromptListChangedNotificationSchema, ResourceUpdatedNotificationSchema]) {
  client.setNotificationHandler(schema, (n) => write({ note: n.method, params: n.params }));
}

async function run({ id, op, params, ms }) {
  const progress = [];
  try {
    if (op === 'stream') {
      const messages = [];
      for await (const m of client.experimental.tasks.callToolStream(params)) messages.push(m.error ? { ...m, error: String(m.error) } : m);
      return { id, result: messages };
    }
    if (op === 'getTask') return { id, result: await client.experimental.tasks.getTask(params.taskId) };
    if (op !== 'call' && op !== 'cancel' && op !== 'list') return { id, result: await client[op](params) };
    if (op === 'list') return { id, result: await client.listTools() };
    const options = { onprogress: (p) => progress.push(p), timeout: 120_000 };
    if (op === 'cancel') options.signal = AbortSignal.timeout(ms);
    return { id, result: await client.callTool(params, undefined, options), progress };
  } catch (error) {
    return { id, error: String(error), progress };
  }
}

await client.connect(transport);
write({ id: 0, result: { server: client.getServerVersion(), instructions: client.getInstructions() } });
const open = [];
for await (const line of createInterface({ input: process.stdin })) {
  open.push(run(JSON.parse(line)).then(write));
}
await Promise.all(open);
await client.close();
