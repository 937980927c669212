// A client for the servers of the official conformance suite that goes through mcpx:
// it reads, gets and calls everything that it is shown. MCPX_BIN is the binary under
// test, the last argument the URL of the suite's server.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const url = process.argv.at(-1);
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

const home = mkdtempSync(join(tmpdir(), 'conformance-'));
const config = join(home, 'config.json');
const era = version < '2026' ? 'legacy' : 'modern';
writeFileSync(config, JSON.stringify({ startup_wait: 30, exec_wait: 30, view: 'tools', prefix: 'never', mcpServers: { suite: { type: 'http', url, protocol: era } } }));

const client = new Client({ name: 'conformance-client', version: '1.0.0' }, {
  capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
  versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: version } },
});
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
client.setRequestHandler('sampling/createMessage', () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'Paris' } }));
client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///', name: 'root' }] }));

// attempt goes on after an error: some of the suite's servers refuse some requests.
const attempt = async (what) => {
  try {
    return await what();
  } catch (error) {
    console.error(String(error));
  }
};

const examples = { string: 'x', number: 1, integer: 1, boolean: true, array: [], object: {} };
const example = (schema) => Object.fromEntries(
  Object.entries(schema.properties ?? {}).map(([key, value]) => [key, value.default ?? examples[value.type] ?? 'x']));

await client.connect(new StdioClientTransport({
  command: process.env.MCPX_BIN, args: ['serve', '--config', config],
  env: { PATH: process.env.PATH, HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home },
}));
const { tools = [] } = await attempt(() => client.listTools()) ?? {};
const calls = context.toolCalls ?? tools.map((tool) => ({
  name: tool.name,
  arguments: tool.inputSchema.properties?.schema
    ? { schema: tools.find((other) => other !== tool)?.inputSchema }
    : example(tool.inputSchema),
}));
for (const call of calls) await attempt(() => client.callTool(call));
const { resources = [] } = await attempt(() => client.listResources()) ?? {};
for (const { uri } of resources) await attempt(() => client.readResource({ uri }));
const { prompts = [] } = await attempt(() => client.listPrompts()) ?? {};
for (const prompt of prompts) {
  const args = Object.fromEntries((prompt.arguments ?? []).map(({ name }) => [name, 'x']));
  await attempt(() => client.getPrompt({ name: prompt.name, arguments: args }));
}
await client.close();
