// A server of the pairings (docs/clients.md) on version 1 of the TypeScript SDK: see
// ../pypi/pair_server.py.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema, CreateMessageResultSchema, ElicitResultSchema, ListResourcesRequestSchema, ListRootsResultSchema,
  ListToolsRequestSchema, ReadResourceRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const thing = 'pair://' + process.env.PAIR_NAME;
const file = process.env.PAIR_CANCELLED;
const user = [{ role: 'user', content: { type: 'text', text: 'Your name?' } }];
const named = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const keyed = { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] };
const keys = ['progress', 'heard', 'slow', 'cancelled'];
const sessions = new Set();
const noted = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []);

const tools = {
  elicit: async (_args, ctx) => {
    const a = await ctx.sendRequest({ method: 'elicitation/create', params: { message: 'Your name?', requestedSchema: named } }, ElicitResultSchema);
    return `${a.action} ${a.content.name}`;
  },
  sample: async (_args, ctx) =>
    (await ctx.sendRequest({ method: 'sampling/createMessage', params: { messages: user, maxTokens: 10 } }, CreateMessageResultSchema)).content.text,
  roots: async (_args, ctx) => (await ctx.sendRequest({ method: 'roots/list' }, ListRootsResultSchema)).roots[0].uri,
  progress: async ({ key }, ctx) => {
    const progressToken = ctx._meta?.progressToken;
    for (let i = 1; i <= 600; i++) {
      if (noted().includes(key + ' heard')) return 'done';
      if (progressToken !== undefined) await ctx.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: i, total: 600 } });
      await wait(100);
    }
    return 'not heard';
  },
  heard: ({ key }) => {
    appendFileSync(file, key + ' heard\n');
    return 'noted';
  },
  slow: async ({ key }, ctx) => {
    appendFileSync(file, key + ' began\n');
    try {
      await wait(600_000, undefined, { signal: ctx.signal });
    } catch {
      appendFileSync(file, key + ' cancelled\n');
    }
    return 'over';
  },
  cancelled: ({ key }) => {
    const lines = noted();
    return ['cancelled', 'began'].find((state) => lines.includes(`${key} ${state}`)) ?? 'not called';
  },
  touch: async () => {
    for (const s of sessions) if (s.follows) await s.sendResourceUpdated({ uri: thing });
    return 'touched';
  },
};

function server() {
  const s = new Server({ name: 'pair', version: '1.0.0' }, { capabilities: { tools: {}, resources: { subscribe: true } } });
  s.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema: keys.includes(name) ? keyed : { type: 'object' } })),
  }));
  s.setRequestHandler(CallToolRequestSchema, async ({ params }, ctx) => ({ content: [{ type: 'text', text: await tools[params.name](params.arguments ?? {}, ctx) }] }));
  s.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: thing, name: 'thing' }] }));
  s.setRequestHandler(ReadResourceRequestSchema, () => ({ contents: [{ uri: thing, text: 'a thing' }] }));
  s.setRequestHandler(SubscribeRequestSchema, () => { s.follows = true; return {}; });
  s.setRequestHandler(UnsubscribeRequestSchema, () => { s.follows = false; return {}; });
  sessions.add(s);
  s.onclose = () => sessions.delete(s);
  return s;
}

if (process.argv[2] === 'stdio') {
  await server().connect(new StdioServerTransport());
} else {
  const open = new Map();
  const http = createServer(async (req, res) => {
    const id = req.headers['mcp-session-id'];
    let transport = open.get(id);
    if (!transport && id !== undefined) return res.writeHead(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (made) => open.set(made, transport) });
      await server().connect(transport);
    }
    await transport.handleRequest(req, res);
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
  process.stdin.on('end', () => process.exit(0)).resume(); // whoever started it holds stdin open
}
