// A client for the servers of the official conformance suite that goes through mcpx:
// it reads, gets and calls everything that it is shown. MCPX_BIN is the binary under
// test, the last argument the URL of the suite's server. The suite starts dozens of it at
// once; each waits for a byte from the port TURNS, and its turn lasts until it ends.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const turn = connect(process.env.TURNS, '127.0.0.1');
await once(turn, 'data');
turn.unref();
setTimeout(() => {
  console.error('the turn takes two minutes'); // the clock is ten times slower: see slow.cjs
  process.exit(1);
}, 12_000).unref();
const { Client } = await import('@modelcontextprotocol/client');
const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');

const url = process.argv.at(-1);
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';

// oauth is what a user of that scenario would configure. Mostly nothing.
const oauth = {
  'auth/basic-cimd': { client_metadata_url: 'https://conformance-test.local/client-metadata.json' },
  'auth/pre-registration': { client_id: context.client_id, client_secret: context.client_secret },
  'auth/client-credentials-basic': { grant: 'client_credentials', client_id: context.client_id, client_secret: context.client_secret },
  'auth/client-credentials-jwt': { grant: 'private_key_jwt', client_id: context.client_id, key: context.private_key_pem },
}[scenario];

const home = mkdtempSync(join(tmpdir(), 'conformance-'));
const config = join(home, 'config.json');
const era = version < '2026' ? 'legacy' : 'modern';
writeFileSync(config, JSON.stringify({ startup_wait: 30, exec_wait: 30, view: 'tools', prefix: 'never', mcpServers: { suite: { type: 'http', url, protocol: era, oauth } } }));

const mcpx = {
  command: process.env.MCPX_BIN,
  env: { PATH: process.env.PATH, HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home, MCPX_DAEMON: '0' },
};

// login is a person who runs mcpx login and agrees in a browser, or gives up where the page fails.
const login = async () => {
  const child = spawn(mcpx.command, ['login', 'suite', '--no-browser', '--config', config], { env: mcpx.env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.on('close', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    console.error(line);
    if (/^https?:/.test(line) && !(await attempt(() => fetch(line)))) child.kill();
  }
  await ended;
};

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

let logins = 2; // a person who is asked for more gives up
if (scenario.startsWith('auth/') && !oauth?.grant) await login();

// call logs in again where mcpx says so, and waits for the mcpx that runs to see it.
const call = async (tool) => {
  let result = await client.callTool(tool);
  while (/mcpx login/.test(JSON.stringify(result)) && --logins > 0) {
    await login();
    for (let tries = 0; tries < 100 && /mcpx login/.test(JSON.stringify(result)); tries++) {
      await sleep(200);
      result = await client.callTool(tool);
    }
  }
};

await client.connect(new StdioClientTransport({ ...mcpx, args: ['serve', '--config', config] }));
const list = async () => (await attempt(() => client.listTools()))?.tools ?? [];
let tools = await list();
if (tools.length === 0 && scenario.startsWith('auth/')) {
  const { stdout } = spawnSync(mcpx.command, ['check', '--config', config], { env: mcpx.env, encoding: 'utf8' });
  if (stdout.includes('needs mcpx login suite') && --logins > 0) {
    await login();
    for (let tries = 0; tries < 100 && tools.length === 0; tries++) {
      await sleep(200);
      tools = await list();
    }
  }
}
const calls = context.toolCalls ?? tools.map((tool) => ({
  name: tool.name,
  arguments: tool.inputSchema.properties?.schema
    ? { schema: tools.find((other) => other !== tool)?.inputSchema }
    : example(tool.inputSchema),
}));
for (const tool of calls) await attempt(() => call(tool));
const { resources = [] } = await attempt(() => client.listResources()) ?? {};
for (const { uri } of resources) await attempt(() => client.readResource({ uri }));
const { prompts = [] } = await attempt(() => client.listPrompts()) ?? {};
for (const prompt of prompts) {
  const args = Object.fromEntries((prompt.arguments ?? []).map(({ name }) => [name, 'x']));
  await attempt(() => client.getPrompt({ name: prompt.name, arguments: args }));
}
await client.close();
