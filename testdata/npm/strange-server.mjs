// An MCP server, made with the official SDK, that does what no revision of the protocol has:
// methods, notifications, capabilities and questions of its own.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema, ResultSchema } from '@modelcontextprotocol/sdk/types.js';

const server = new Server({ name: 'strange', version: '1.0.0' }, {
  capabilities: { tools: {}, experimental: { 'x/strange': { level: 2 } } },
  instructions: 'Strange, and alone.',
});
const heard = [];
server.fallbackRequestHandler = async ({ method, params }) =>
  method === 'x/heard' ? { heard } : { method, params, capabilities: server.getClientCapabilities() };
server.fallbackNotificationHandler = async ({ method, params }) => { heard.push({ method, params }); };
server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [{ name: 'poke', inputSchema: { type: 'object' } }] }));
server.setRequestHandler(CallToolRequestSchema, async (_request, extra) => {
  await server.notification({ method: 'notifications/x/poked', params: { n: 1 } });
  const answer = await extra.sendRequest({ method: 'x/ask', params: { question: 'why?' } }, ResultSchema.passthrough());
  return { content: [{ type: 'text', text: `because ${answer.because}` }] };
});
await server.connect(new StdioServerTransport());
