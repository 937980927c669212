// A server of the pairings (docs/clients.md) on version 2 of the TypeScript SDK, in both
// eras: see ../pypi/pair_server.py.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Server, createMcpHandler, inputRequired, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';

const thing = 'pair://' + process.env.PAIR_NAME;
const file = process.env.PAIR_CANCELLED;
const user = [{ role: 'user', content: { type: 'text', text: 'Your name?' } }];
const named = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const keyed = { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] };
const keys = ['progress', 'heard', 'slow', 'cancelled'];
const sessions = new Set();
const noted = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []);

// need asks with a result, which the SDK turns into a request for clients of the legacy era.
const need = (make, answer) => async (_args, ctx) => {
  const q = ctx.mcpReq.inputResponses?.q;
  return q === undefined ? inputRequired({ inputRequests: { q: make() } }) : answer(q);
};

const tools = (s, notifier) => ({
  elicit: async (_args, ctx) => {
    const a = await ctx.mcpReq.send({ method: 'elicitation/create', params: { mode: 'form', message: 'Your name?', requestedSchema: named } });
    return `${a.action} ${a.content.name}`;
  },
  sample: async (_args, ctx) => (await ctx.mcpReq.send({ method: 'sampling/createMessage', params: { messages: user, maxTokens: 10 } })).content.text,
  roots: async (_args, ctx) => (await ctx.mcpReq.send({ method: 'roots/list' })).roots[0].uri,
  need_elicit: need(() => inputRequired.elicit({ message: 'Your name?', requestedSchema: named }), (a) => `${a.action} ${a.content.name}`),
  need_sample: need(() => inputRequired.createMessage({ messages: user, maxTokens: 10 }), (a) => a.content.text),
  need_roots: need(inputRequired.listRoots, (a) => a.roots[0].uri),
  progress: async ({ key }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let i = 1; i <= 600; i++) {
      if (noted().includes(key + ' heard')) return 'done';
      if (progressToken !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: i, total: 600 } });
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
      await wait(600_000, undefined, { signal: ctx.mcpReq.signal });
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
    notifier?.().resourceUpdated(thing);
    for (const one of sessions) if (one.follows || !notifier) await one.sendResourceUpdated({ uri: thing }).catch(() => {});
    return 'touched';
  },
});

function server(notifier) {
  const s = new Server({ name: 'pair', version: '1.0.0' }, { capabilities: { tools: {}, resources: { subscribe: true } } });
  const all = tools(s, notifier);
  s.setRequestHandler('tools/list', () => ({
    tools: Object.keys(all).map((name) => ({ name, inputSchema: keys.includes(name) ? keyed : { type: 'object' } })),
  }));
  s.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const result = await all[params.name](params.arguments ?? {}, ctx);
    return typeof result === 'string' ? { content: [{ type: 'text', text: result }] } : result;
  });
  s.setRequestHandler('resources/list', () => ({ resources: [{ uri: thing, name: 'thing' }] }));
  s.setRequestHandler('resources/read', () => ({ contents: [{ uri: thing, text: 'a thing' }] }));
  s.setRequestHandler('resources/subscribe', () => { s.follows = true; return {}; });
  s.setRequestHandler('resources/unsubscribe', () => { s.follows = false; return {}; });
  return s;
}

if (process.argv[2] === 'stdio') {
  serveStdio(() => {
    const s = server();
    sessions.add(s);
    return s;
  });
} else {
  const open = new Map();
  const handler = createMcpHandler(() => server(() => handler.notify), { legacy: 'reject' });
  const modern = toNodeHandler(handler);
  const http = createServer(async (req, res) => {
    let body;
    if (req.method === 'POST') {
      const chunks = [];
      for await (const chunk of req) chunks.push(chunk);
      body = JSON.parse(Buffer.concat(chunks).toString());
    }
    const asked = new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body: body && JSON.stringify(body) });
    if (req.method === 'POST' && !(await isLegacyRequest(asked, body))) return modern(req, res, body);
    const id = req.headers['mcp-session-id'];
    let transport = open.get(id);
    if (!transport && id !== undefined) return res.writeHead(404).end();
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (made) => open.set(made, transport) });
      const s = server(() => handler.notify);
      sessions.add(s);
      s.onclose = () => sessions.delete(s);
      await s.connect(transport);
    }
    await transport.handleRequest(req, res, body);
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
  process.stdin.on('end', () => process.exit(0)).resume(); // whoever started it holds stdin open
}
