// A client of the TypeScript SDK that logs in to an MCP server by itself. Its arguments: the
// URL of the server, the address that the browser comes back to and, if it is one, the URL
// of the document that is the client. It prints the URL for the browser, reads the address
// that the browser was sent to from its input, and prints the names of the tools; then it
// renews its tokens and prints them again.
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport, auth } from '@modelcontextprotocol/client';

const [url, redirectUrl, clientMetadataUrl] = process.argv.slice(2);
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const kept = {};
const provider = {
  redirectUrl,
  clientMetadataUrl,
  clientMetadata: { client_name: 'SDK client', redirect_uris: [redirectUrl], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'client_secret_post' },
  state: () => 'state of the SDK client',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: (to) => console.log(String(to)),
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (state) => { kept.discovery = state; },
};

const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const client = new Client({ name: 'connect', version: '1.0.0' });
  try {
    await client.connect(transport);
  } catch (error) {
    if (kept.tokens) throw error;
    const { value } = await input.next();
    const back = new URL(value).searchParams;
    if (back.get('state') !== 'state of the SDK client') throw new Error('another state');
    await transport.finishAuth(back);
    return connect();
  }
  const { tools } = await client.listTools();
  console.log(tools.map(({ name }) => name).join(' '));
  await client.close();
};

await connect();
const before = kept.tokens;
await auth(provider, { serverUrl: url });
if (before.access_token === kept.tokens.access_token || before.refresh_token === kept.tokens.refresh_token) throw new Error('the tokens are the same');
await connect();
process.exit();
