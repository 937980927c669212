// A client of the pairings on version 2 of the TypeScript SDK: see ../pypi/pair_client.py.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answers, run } from '../npm/pair-checks.mjs';

const [era, over, target, ...args] = process.argv.slice(2);
const client = new Client({ name: process.env.PAIR_CLIENT, version: '1.0.0' }, {
  capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } },
});
client.setRequestHandler('elicitation/create', () => answers.elicit);
client.setRequestHandler('sampling/createMessage', () => answers.sample);
client.setRequestHandler('roots/list', () => answers.roots);
const heard = new Set();
client.setNotificationHandler('notifications/resources/updated', (n) => heard.add(n.params.uri));
await client.connect(over === 'stdio'
  ? new StdioClientTransport({ command: target, args, env: process.env, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(target)));
await run({
  heard,
  tools: async () => (await client.listTools(undefined, { timeout: 150_000 })).tools.map((tool) => tool.name),
  call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  subscribe: (uri) => (era === 'legacy' ? client.subscribeResource({ uri }) : client.listen({ resourceSubscriptions: [uri] })),
});
