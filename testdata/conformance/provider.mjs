// The authorization servers for the tests of logins, all in one process: a process of its own for each one took 0.7 s of CPU.
// Each line of stdin asks for one more, in JSON: issuer is the URL that it is reached at, through a proxy of the tests;
// lifetime and refresh are the lifetimes of access and refresh tokens in seconds; format 'jwt' makes access tokens JWTs;
// jwk is the public key of the client signer, which exists only with it. The answer is a line with the port. The process
// ends with stdin. A server shares nothing with the others. Its POST /test/forget deletes a client (?client=ID),
// POST /test/rotate gives it another key, POST /test/leave lets a user (?sub=NAME) be there no more, POST /test/person sets
// the groups of one (?sub=NAME&groups=a,b), POST /test/logout sends a logout token about one to an address
// (?sub=NAME&to=URL). Tokens for GATEWAY are JWTs; the client exchanger may exchange them.
import { createServer } from 'node:http';
import { createPublicKey, generateKeyPairSync, randomUUID, verify } from 'node:crypto';
import { createInterface } from 'node:readline';
import Provider, { errors } from 'oidc-provider';

const GATEWAY = 'https://gateway.example/mcp';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

const newKey = () => ({ ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' });

// start starts one server, and returns its port.
function start({ issuer, lifetime, refresh = 86400, format = 'opaque', jwk }) {
  // Everything is in this memory, so that a Provider with other keys goes on.
  const stored = new Map();
  class Memory {
    constructor(name) { this.name = name; }
    key(id) { return `${this.name}:${id}`; }
    async upsert(id, payload) { stored.set(this.key(id), { ...payload }); }
    async find(id) { return stored.get(this.key(id)); }
    async findByUid(uid) { return [...stored.values()].find((one) => one.uid === uid && one.kind === 'Session'); }
    async findByUserCode() { return undefined; }
    async destroy(id) { stored.delete(this.key(id)); }
    async consume(id) { stored.get(this.key(id)).consumed = Math.floor(Date.now() / 1000); }
    async revokeByGrantId(grant) {
      for (const [key, one] of stored) if (one.grantId === grant) stored.delete(key);
    }
  }

  const keys = [newKey()];
  const common = { response_types: [], grant_types: ['client_credentials'], redirect_uris: [], scope: 'mcp more' };
  const clients = [
    { client_id: 'resource', client_secret: 'resource-secret-of-the-tests', ...common },
    { client_id: 'machine', client_secret: 'machine-secret-of-the-tests', ...common },
    { client_id: 'robot', client_secret: 'robot-secret-of-the-tests', ...common },
    { client_id: 'exchanger', client_secret: 'exchanger-secret-of-the-tests', ...common, grant_types: ['client_credentials', EXCHANGE] },
    ...(jwk ? [{ client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] }, ...common }] : []),
    // An mcpx with auth.front, whose people log in here.
    { client_id: 'front', client_secret: 'front-secret-of-the-tests', application_type: 'native', redirect_uris: ['http://127.0.0.1/oauth/callback'], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    { client_id: 'known', client_secret: 'known-secret-of-the-tests', application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  ];

  const left = new Set();
  let provider;
  // Who is not in it is in the group staff.
  const people = new Map();

  function account(ctx, sub) {
    if (left.has(sub)) return undefined;
    const groups = people.get(sub) ?? ['staff'];
    return { accountId: sub, claims: () => ({ sub, email: `${sub}@example.com`, email_verified: true, groups }) };
  }

  function make() {
    provider = new Provider(issuer, {
      adapter: Memory,
      clients,
      jwks: { keys: [...keys] },
      scopes: ['openid', 'offline_access', 'mcp', 'more'],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: refresh, Grant: 86400, Session: 3600, Interaction: 600, AuthorizationCode: 60 },
      features: {
        devInteractions: { enabled: true },
        registration: { enabled: true },
        clientCredentials: { enabled: true },
        introspection: { enabled: true, allowedPolicy: () => true },
        backchannelLogout: { enabled: true },
        revocation: { enabled: true, allowedPolicy: (ctx, client, token) => token.clientId === client.clientId },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => undefined,
          // A request that does not name the resource gets a token for nobody.
          useGrantedResource: () => false,
          getResourceServerInfo: (ctx, resource) => {
            if (!/\/mcp(\/\w+)*$/.test(resource)) throw new errors.InvalidTarget();
            return { audience: resource, scope: 'mcp more', accessTokenFormat: resource === GATEWAY ? 'jwt' : format };
          },
        },
      },
      extraTokenClaims: (ctx, token) => ({ tenant: `tenant of ${token.clientId}` }),
      pkce: { required: () => true },
      // The default refuses addresses of this machine, where the tests have mcpx, and waits for 2.5 s, which a busy machine exceeds.
      fetch: (url, { dispatcher, signal, ...options }) => fetch(url, options),
      rotateRefreshToken: true,
      issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
      findAccount: account,
    });
    provider.proxy = true;
    provider.registerGrantType(EXCHANGE, (ctx) => exchange(provider, ctx), ['subject_token', 'subject_token_type', 'requested_token_type', 'scope', 'resource', 'audience']);
    return provider.callback();
  }

  // exchange gives a token for the resource in place of one for GATEWAY (RFC 8693).
  async function exchange(provider, ctx) {
    const { subject_token: subject = '', subject_token_type: type, resource, scope } = ctx.oidc.params;
    const [head, body, signature = ''] = subject.split('.');
    const signed = signature !== '' && keys.some((key) => verify('RSA-SHA256', Buffer.from(`${head}.${body}`), createPublicKey({ key, format: 'jwk' }), Buffer.from(signature, 'base64url')));
    const opaque = signed ? undefined : await provider.AccessToken.find(subject); // of somebody who came through auth.front
    const claims = signed ? JSON.parse(Buffer.from(body, 'base64url')) : opaque ? { sub: opaque.accountId, aud: GATEWAY, exp: opaque.exp } : {};
    if (type !== 'urn:ietf:params:oauth:token-type:access_token' || claims.aud !== GATEWAY || claims.exp * 1000 < Date.now()) {
      throw new errors.InvalidGrant('the subject token is not good');
    }
    if (!resource || resource === GATEWAY) throw new errors.InvalidTarget();
    const token = new provider.AccessToken({
      client: ctx.oidc.client, accountId: claims.sub, scope: scope ?? 'mcp',
      resourceServer: new provider.ResourceServer(resource, { audience: resource, scope: 'mcp more', accessTokenFormat: 'opaque' }),
    });
    ctx.body = {
      access_token: await token.save(), issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer', expires_in: token.expiration, scope: token.scope,
    };
  }

  let handle = make();
  const server = createServer((request, response) => {
    const url = new URL(request.url, issuer);
    if (url.pathname === '/test/forget') {
      stored.delete(`Client:${url.searchParams.get('client')}`);
      handle = make();
      response.end();
    } else if (url.pathname === '/test/person') {
      people.set(url.searchParams.get('sub'), url.searchParams.get('groups').split(','));
      response.end();
    } else if (url.pathname === '/test/rotate') {
      keys.unshift(newKey());
      handle = make();
      response.end();
    } else if (url.pathname === '/test/leave') {
      left.add(url.searchParams.get('sub'));
      response.end();
    } else if (url.pathname === '/test/logout') {
      provider.Client.find('front').then((client) => {
        client.backchannelLogoutUri = url.searchParams.get('to');
        return client.backchannelLogout(url.searchParams.get('sub'));
      }).then(() => response.end(), (error) => response.writeHead(502).end(String(error)));
    } else {
      handle(request, response);
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
}

for await (const line of createInterface({ input: process.stdin })) console.log(await start(JSON.parse(line)));
process.exit();
