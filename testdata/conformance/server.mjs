// A server with the tools, resources and prompts that the official conformance suite
// asks for, in both eras: over stdio, or with --http over streamable HTTP on a free
// port, whose URL it prints.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import {
  Server, createMcpHandler, createRequestStateCodec, inputRequired, isLegacyRequest, ProtocolError,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import {
  NodeStreamableHTTPServerTransport, localhostHostValidation, localhostOriginValidation, toNodeHandler,
} from '@modelcontextprotocol/node';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';

const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const says = (...content) => ({ content });
const none = { type: 'object', properties: {} };
const needs = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const string = { type: 'string' };

// Between two notifications of a call, and before its result, in milliseconds: the client of the
// SDK forgets those that arrive in one piece with the result.
const apart = 250;

const state = createRequestStateCodec({ key: new TextEncoder().encode('a key that only this fixture knows') });

const form = (message, properties) => inputRequired.elicit({ message, requestedSchema: needs(properties) });
const user = (value) => [{ role: 'user', content: text(value) }];
const answersOf = (ctx) => ctx.mcpReq.inputResponses ?? {};
const accepted = (answer, field) => answer?.action === 'accept' && answer.content && field in answer.content;
const stateOf = (ctx) => ctx.mcpReq.requestState();

const askName = () => form('What is your name?', { name: string });
const askCapital = () => inputRequired.createMessage({ messages: user('What is the capital of France?'), maxTokens: 100 });

// ask asks for what has no fitting answer yet, then gives the result.
const ask = (requests, fits, done, more = async () => ({})) => async (_args, ctx) => {
  const answers = answersOf(ctx);
  const open = Object.entries(requests).filter(([key]) => !fits[key](answers[key]));
  if (open.length > 0) {
    return inputRequired({ inputRequests: Object.fromEntries(open.map(([key, make]) => [key, make()])), ...(await more(ctx)) });
  }
  return done(answers, ctx);
};
const named = (answer) => accepted(answer, 'name');
const sampled = (answer) => answer?.content !== undefined;
const rooted = (answer) => Array.isArray(answer?.roots);

const elicited = (message, requestedSchema, report) => async (args, ctx) => {
  const answer = answersOf(ctx).answer;
  if (answer === undefined) {
    return inputRequired({ inputRequests: { answer: inputRequired.elicit({ message: args.message ?? message, requestedSchema }) } });
  }
  return says(text(report(answer)));
};
const completed = (answer) => `Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;

const options = (...values) => values.map(([value, title]) => ({ const: value, title }));

const tools = {
  test_simple_text: { run: () => says(text('This is a simple text response for testing.')) },
  test_image_content: { run: () => says(image) },
  test_audio_content: { run: () => says({ type: 'audio', data: WAV, mimeType: 'audio/wav' }) },
  test_embedded_resource: {
    run: () => says({ type: 'resource', resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' } }),
  },
  test_multiple_content_types: {
    run: () => says(text('Multiple content types test:'), image,
      { type: 'resource', resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' } }),
  },
  test_tool_with_logging: {
    run: async (_args, ctx) => {
      for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await ctx.mcpReq.log('info', message);
        await wait(apart);
      }
      return says(text('Tool with logging executed successfully'));
    },
  },
  test_tool_with_progress: {
    run: async (_args, ctx) => {
      const token = ctx.mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (token !== undefined) {
          await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress, total: 100 } });
        }
        await wait(apart);
      }
      return says(text(String(token ?? 'no token')));
    },
  },
  test_error_handling: { run: () => ({ isError: true, content: [text('This tool intentionally returns an error for testing')] }) },
  test_reconnection: {
    run: async (_args, ctx) => {
      ctx.http?.closeSSE?.();
      await wait(100);
      return says(text('Reconnection test completed'));
    },
  },
  test_sampling: {
    schema: needs({ prompt: string }),
    run: async (args, ctx) => {
      const answer = answersOf(ctx).answer;
      if (answer === undefined) {
        return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages: user(args.prompt), maxTokens: 100 }) } });
      }
      return says(text(`LLM response: ${answer.content?.text ?? ''}`));
    },
  },
  test_elicitation: {
    schema: needs({ message: string }),
    run: elicited('', needs({
      username: { type: 'string', description: "User's response" }, email: { type: 'string', description: "User's email address" },
    }), (answer) => `User response: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`),
  },
  test_elicitation_sep1034_defaults: {
    run: elicited('Please check the defaults', {
      type: 'object',
      properties: {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      },
    }, completed),
  },
  test_elicitation_sep1330_enums: {
    run: elicited('Please choose', {
      type: 'object',
      properties: {
        untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
        titledSingle: { type: 'string', oneOf: options(['value1', 'First Option'], ['value2', 'Second Option'], ['value3', 'Third Option']) },
        legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
        untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
        titledMulti: { type: 'array', items: { anyOf: options(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice']) } },
      },
    }, completed),
  },
  json_schema_2020_12_tool: {
    description: 'Tool with JSON Schema 2020-12 features',
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    run: (args) => says(text(JSON.stringify(args))),
  },
  test_missing_capability: { run: ask({ answer: askCapital }, { answer: sampled }, () => says(text('answered'))) },
  test_streaming_elicitation: { run: ask({ user_name: askName }, { user_name: named }, (a) => says(text(`Hello, ${a.user_name.content.name}!`))) },
  test_logging_tool: {
    run: async (_args, ctx) => {
      await ctx.mcpReq.log('info', 'a message of the tool');
      return says(text('logged, where that was asked for'));
    },
  },
  test_input_required_result_elicitation: {
    run: ask({ user_name: askName }, { user_name: named }, (a) => says(text(`Hello, ${a.user_name.content.name}!`))),
  },
  test_input_required_result_sampling: {
    run: ask({ capital_question: askCapital }, { capital_question: sampled }, (a) => says(text(`The answer is: ${a.capital_question.content.text}`))),
  },
  test_input_required_result_list_roots: {
    run: ask({ client_roots: inputRequired.listRoots }, { client_roots: rooted }, (a) => says(text(`Roots: ${a.client_roots.roots.map((r) => r.uri).join(', ')}`))),
  },
  test_input_required_result_request_state: {
    run: ask({ confirm: () => form('Please confirm', { ok: { type: 'boolean' } }) }, { confirm: (a) => accepted(a, 'ok') },
      (_a, ctx) => says(text(stateOf(ctx)?.step === 'confirm' ? 'state-ok' : 'state missing')),
      async (ctx) => ({ requestState: await state.mint({ step: 'confirm' }, ctx) })),
  },
  test_input_required_result_tampered_state: {
    run: ask({ confirm: () => form('Please confirm', { ok: { type: 'boolean' } }) }, { confirm: (a) => accepted(a, 'ok') },
      () => says(text('state-ok')), async (ctx) => ({ requestState: await state.mint({ step: 'tamper' }, ctx) })),
  },
  test_input_required_result_multiple_inputs: {
    run: ask({
      user_name: askName,
      greeting: () => inputRequired.createMessage({ messages: user('Generate a greeting'), maxTokens: 50 }),
      client_roots: inputRequired.listRoots,
    }, { user_name: named, greeting: sampled, client_roots: rooted }, () => says(text('All three inputs came')),
    async (ctx) => ({ requestState: await state.mint({ step: 'all' }, ctx) })),
  },
  test_input_required_result_multi_round: {
    run: async (_args, ctx) => {
      const answers = answersOf(ctx);
      const seen = stateOf(ctx);
      if (seen?.name && accepted(answers.step2, 'color')) {
        return says(text(`${seen.name} likes ${answers.step2.content.color}`));
      }
      if (accepted(answers.step1, 'name')) {
        return inputRequired({
          inputRequests: { step2: form('Step 2: What is your favorite color?', { color: string }) },
          requestState: await state.mint({ name: answers.step1.content.name }, ctx),
        });
      }
      return inputRequired({
        inputRequests: { step1: form('Step 1: What is your name?', { name: string }) },
        requestState: await state.mint({ step: 1 }, ctx),
      });
    },
  },
  test_input_required_result_capabilities: {
    run: async (_args, ctx) => {
      const can = ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
      const answers = answersOf(ctx);
      const open = {};
      if (can.elicitation && !named(answers.user_name)) open.user_name = askName();
      if (can.sampling && !sampled(answers.capital_question)) open.capital_question = askCapital();
      return Object.keys(open).length > 0 ? inputRequired({ inputRequests: open }) : says(text('nothing to ask'));
    },
  },
  test_trigger_tool_change: { run: (_args, ctx) => toggle('tools', ctx) },
  test_trigger_prompt_change: { run: (_args, ctx) => toggle('prompts', ctx) },
  test_x_mcp_header: {
    schema: {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, priority: { type: 'integer', 'x-mcp-header': 'Priority' } },
    },
    run: (args) => says(text(JSON.stringify(args))),
  },
};

const resources = {
  'test://static-text': { name: 'Static text', mimeType: 'text/plain', read: () => ({ text: 'This is the content of the static text resource.' }) },
  'test://static-binary': { name: 'Static binary', mimeType: 'image/png', read: () => ({ blob: PNG }) },
  'test://watched-resource': { name: 'Watched', mimeType: 'text/plain', read: () => ({ text: 'Watched resource content' }) },
};
const template = /^test:\/\/template\/([^/]+)\/data$/;

const prompts = {
  test_simple_prompt: { run: () => user('This is a simple prompt for testing.') },
  test_prompt_with_arguments: {
    args: ['arg1', 'arg2'],
    run: (a) => user(`Prompt with arguments: arg1='${a.arg1}', arg2='${a.arg2}'`),
  },
  test_prompt_with_embedded_resource: {
    args: ['resourceUri'],
    run: (a) => [
      { role: 'user', content: { type: 'resource', resource: { uri: a.resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } } },
      ...user('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: { run: () => [{ role: 'user', content: image }, ...user('Please analyze the image above.')] },
  test_input_required_result_prompt: {
    run: ask({ user_context: () => form('What context should the prompt use?', { context: string }) }, { user_context: (a) => accepted(a, 'context') },
      (a) => user(`Use this context: ${a.user_context.content.context}`)),
  },
};

// lists has what the two trigger tools switch on and off.
const lists = { tools: false, prompts: false };
const toggle = async (list, ctx) => {
  lists[list] = !lists[list];
  await ctx.changed[list]();
  return says(text(`${list} changed`));
};

// server makes one server. notifier tells of changes where many servers share streams.
function server(notifier) {
  const s = new Server({ name: 'conformance-fixture', version: '1.0.0' }, {
    capabilities: {
      tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true }, logging: {}, completions: {},
    },
    requestState: { verify: state.verify },
  });
  s.setRequestHandler('tools/list', () => ({
    tools: Object.entries(tools).map(([name, t]) => ({ name, description: t.description ?? `The suite's ${name}`, inputSchema: t.schema ?? none }))
      .concat(lists.tools ? [{ name: 'test_added', description: 'Comes and goes', inputSchema: none }] : []),
  }));
  const changed = {
    tools: () => (notifier ? notifier().toolsChanged() : s.sendToolListChanged()),
    prompts: () => (notifier ? notifier().promptsChanged() : s.sendPromptListChanged()),
  };
  s.setRequestHandler('tools/call', (request, ctx) => {
    const tool = tools[request.params.name];
    if (!tool) throw new ProtocolError(-32602, `Unknown tool: ${request.params.name}`);
    return tool.run(request.params.arguments ?? {}, Object.assign(ctx, { changed }));
  });
  s.setRequestHandler('resources/list', () => ({
    resources: Object.entries(resources).map(([uri, r]) => ({ uri, name: r.name, description: `The suite's ${uri}`, mimeType: r.mimeType })),
  }));
  s.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'Template', description: 'Data of an id', mimeType: 'application/json' }],
  }));
  s.setRequestHandler('resources/read', (request) => {
    const uri = request.params.uri;
    const id = template.exec(uri)?.[1];
    if (id !== undefined) {
      return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] };
    }
    const found = resources[uri];
    if (!found) throw new ProtocolError(-32602, 'Resource not found', { uri });
    return { contents: [{ uri, mimeType: found.mimeType, ...found.read() }] };
  });
  s.setRequestHandler('resources/subscribe', () => ({}));
  s.setRequestHandler('resources/unsubscribe', () => ({}));
  s.setRequestHandler('prompts/list', () => ({
    prompts: Object.entries(prompts).map(([name, p]) => ({
      name, description: `The suite's ${name}`, arguments: (p.args ?? []).map((arg) => ({ name: arg, description: `The ${arg}`, required: true })),
    })).concat(lists.prompts ? [{ name: 'test_added', description: 'Comes and goes' }] : []),
  }));
  s.setRequestHandler('prompts/get', async (request, ctx) => {
    const prompt = prompts[request.params.name];
    if (!prompt) throw new ProtocolError(-32602, `Unknown prompt: ${request.params.name}`);
    const got = await prompt.run(request.params.arguments ?? {}, ctx);
    return Array.isArray(got) ? { messages: got } : got;
  });
  s.setRequestHandler('completion/complete', (request) => {
    const values = ['paris', 'park', 'party'].filter((v) => v.startsWith(request.params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return s;
}

function serveHTTP() {
  const sessions = new Map();
  const handler = createMcpHandler(() => server(() => handler.notify), { legacy: 'reject' });
  const modern = toNodeHandler(handler);
  const [hostFits, originFits] = [localhostHostValidation(), localhostOriginValidation()];
  const http = createServer(async (req, res) => {
    if (!hostFits(req, res) || !originFits(req, res)) return;
    const url = `http://${req.headers.host}${req.url}`;
    let body;
    if (req.method === 'POST') {
      const chunks = [];
      for await (const chunk of req) chunks.push(chunk);
      body = JSON.parse(Buffer.concat(chunks).toString());
    }
    const asked = new Request(url, { method: req.method, headers: req.headers, body: body && JSON.stringify(body) });
    if (req.method === 'POST' && !(await isLegacyRequest(asked, body))) return modern(req, res, body);
    const id = req.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport && id !== undefined) {
      res.writeHead(404).end();
      return;
    }
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => sessions.set(made, transport),
        onsessionclosed: (gone) => sessions.delete(gone),
      });
      await server().connect(transport);
    }
    await transport.handleRequest(req, res, body);
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
  process.stdin.on('end', () => process.exit(0)).resume(); // whoever started it holds stdin open
}

if (process.argv.includes('--http')) serveHTTP();
else serveStdio(() => server());
