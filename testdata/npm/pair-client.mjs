// A client of the pairings on version 1 of the TypeScript SDK: see ../pypi/pair_client.py.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { answers, run } from './pair-checks.mjs';

const [, over, target, ...args] = process.argv.slice(2);
const client = new Client({ name: process.env.PAIR_CLIENT, version: '1.0.0' }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
client.setRequestHandler(ElicitRequestSchema, () => answers.elicit);
client.setRequestHandler(CreateMessageRequestSchema, () => answers.sample);
client.setRequestHandler(ListRootsRequestSchema, () => answers.roots);
const heard = new Set();
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => heard.add(n.params.uri));
await client.connect(over === 'stdio'
  ? new StdioClientTransport({ command: target, args, env: process.env, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(target)));
await run({
  heard,
  tools: async () => (await client.listTools(undefined, { timeout: 150_000 })).tools.map((tool) => tool.name),
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  subscribe: (uri) => client.subscribeResource({ uri }),
});
