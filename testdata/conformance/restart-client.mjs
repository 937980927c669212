// A client that keeps its session, on version 2 of the TypeScript SDK: see ../pypi/restart_client.py.
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'restart', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
for await (const line of createInterface({ input: process.stdin })) {
  const answer = {};
  try {
    answer.tools = (await client.listTools()).tools.map((tool) => tool.name);
    answer.text = (await client.callTool({ name: 'fake__echo', arguments: { text: line } })).content.map((block) => block.text).join(' ');
  } catch (error) {
    answer.error = String(error);
  }
  console.log(JSON.stringify(answer));
}
process.exit(0);
