// clients is the table of the clients: what is installed (pinned), and how each is started against
// a model on loopback with a set of MCP servers. start gets { home, work, model, servers, bin }:
// folders of its own, the model's address, the servers as in an mcpServers object, and the path of
// an installed program. It returns { command, env, files }.
//
//   of       the folder of the installation, where several clients share one
//   hidden   how to call a tool that is not in the request
//   before   calls that the script begins with
//   bare     all tools of a request are those of the servers
//   config   more for mcpx's config
//   without  a server that the client cannot take
//   echo     how the client repeats the call in a result
//   login    the commands that log in to the server team at a URL, for first.mjs; with terminal they need one
export const node = 'node@22.23.3'
export const counter = 'gpt-tokenizer@4.0.0'

const toml = servers => Object.entries(servers).map(([name, s]) => s.url ? `[mcp_servers.${name}]\nurl = ${JSON.stringify(s.url)}\n` :
  `[mcp_servers.${name}]\ncommand = ${JSON.stringify(s.command)}\nargs = ${JSON.stringify(s.args)}\n[mcp_servers.${name}.env]\n${Object.entries(s.env).map(([k, v]) => `${k} = ${JSON.stringify(v)}\n`).join('')}`).join('\n')
const echo = /MCP tool '.*? with response: \[\{\\*"functionResponse\\*":\{\\*"name\\*":\\*"\w+/s
const prompt = 'Go on as the script says.'

// framework is a Python framework; frameworks.py has a function of the same name.
const framework = (name, ...pypi) => ({ pypi, bare: true, start: ({ model, servers, bin, script }) =>
  ({ command: [bin('python'), script, name.replace('-', '_')], env: { MODEL: model, SERVERS: JSON.stringify(servers), PROMPT: prompt, OPENAI_API_KEY: 'none', GOOGLE_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model } }) })

const claude = toolSearch => ({
  npm: '@anthropic-ai/claude-code@2.1.330', of: 'claude', login: url => [['claude', 'mcp', 'add', '--transport', 'http', '--scope', 'user', 'team', url], ['claude', 'mcp', 'login', 'team']], terminal: true,
  start: ({ home, model, servers, bin }) => ({
    command: [bin('claude'), '-p', prompt, '--mcp-config', `${home}/mcp.json`, '--strict-mcp-config', '--dangerously-skip-permissions', '--model', 'claude-sonnet-4-5'],
    env: { ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: 'none', CLAUDE_CONFIG_DIR: `${home}/.claude`, IS_SANDBOX: '1', ENABLE_TOOL_SEARCH: toolSearch,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', DISABLE_ERROR_REPORTING: '1' },
    files: { [`${home}/mcp.json`]: { mcpServers: servers } },
  }),
})
const codex = (name, more) => ({
  npm: '@openai/codex@0.169.0', of: 'codex', login: () => [['codex', 'mcp', 'login', 'team']],
  start: ({ home, model, servers, bin }) => ({
    command: [bin('codex'), 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    env: { CODEX_HOME: `${home}/.codex`, SCRIPTED_KEY: 'none' },
    files: { [`${home}/.codex/config.toml`]: `model = "${name}"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "${model}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
${toml(servers)}` },
  }),
  ...more,
})

const llamaIndex = framework('llama-index', 'llama-index-tools-mcp==0.6.0', 'llama-index-llms-openai-like==0.8.1', 'mcp==2.3.0')

export const clients = {
  'claude-code': claude('false'),
  'claude-code, tool search': { ...claude('true'), only: 'definitions' },
  codex: codex('gpt-5'),
  'codex, tool search': codex('gpt-5.5', { before: [{ item: { type: 'tool_search_call', execution: 'client', arguments: { query: 'probe result exec inspect', limit: 40 } } }] }),
  'codex, code mode': codex('gpt-5.6-sol', { hidden: ({ server, tool, args }) =>
    ({ item: { type: 'custom_tool_call', name: 'exec', input: `text(await tools.mcp__${server}__${tool}(${JSON.stringify(args)}))` } }) }),
  'gemini-cli': {
    npm: '@google/gemini-cli@0.61.0',
    echo,
    start: ({ home, model, servers, bin }) => ({
      command: [bin('gemini'), '-p', prompt, '--yolo', '--skip-trust', '-m', 'gemini-2.5-pro'],
      env: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
      files: { [`${home}/.gemini/settings.json`]: { mcpServers: servers, security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false }, telemetry: { enabled: false } } },
    }),
  },
  opencode: {
    npm: 'opencode-ai@1.18.33',
    start: ({ home, model, servers, bin }) => ({
      command: [bin('opencode'), 'run', '-m', 'scripted/model', prompt],
      env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' },
      files: { [`${home}/.config/opencode/opencode.json`]: { autoupdate: false, share: 'disabled', permission: { '*': 'allow' },
        provider: { scripted: { npm: '@ai-sdk/openai-compatible', options: { baseURL: `${model}/v1`, apiKey: 'none' }, models: { model: { limit: { context: 1000000, output: 8000 } } } } },
        mcp: Object.fromEntries(Object.entries(servers).map(([n, s]) => [n, { type: 'local', command: [s.command, ...s.args], environment: s.env }])) } },
    }),
  },
  'qwen-code': {
    npm: '@qwen-code/qwen-code@0.24.4',
    echo,
    hidden: ({ server, tool, args }) => ({ name: 'tool_call', args: { name: `mcp__${server}__${tool}`, arguments: args } }),
    start: ({ home, model, servers, bin }) => ({
      command: [bin('qwen'), '-p', prompt, '--yolo', '--auth-type', 'openai', '-m', 'scripted'],
      env: { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: 'scripted' },
      files: { [`${home}/.qwen/settings.json`]: { mcpServers: servers, security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false }, telemetry: { enabled: false } } },
    }),
  },
  'copilot-cli': {
    npm: '@github/copilot@1.0.102',
    echo: /^MCP server '\w+': /,
    start: ({ home, model, servers, bin }) => ({
      command: [bin('copilot'), '-p', prompt, '--allow-all-tools', '--no-auto-update', '--model', 'scripted'],
      env: { COPILOT_PROVIDER_TYPE: 'openai', COPILOT_PROVIDER_BASE_URL: `${model}/v1`, COPILOT_PROVIDER_API_KEY: 'none', COPILOT_MODEL: 'scripted', COPILOT_OFFLINE: 'true', COPILOT_AUTO_UPDATE: 'false' },
      files: { [`${home}/.copilot/mcp-config.json`]: { mcpServers: Object.fromEntries(Object.entries(servers).map(([n, s]) => [n, { type: 'local', tools: ['*'], ...s }])) } },
    }),
  },
  cline: {
    npm: 'cline@3.0.65',
    start: ({ home, model, servers, bin }) => ({
      command: [bin('cline'), '--provider', 'openai-compatible', prompt],
      env: { CLINE_MCP_SETTINGS_PATH: `${home}/mcp.json`, CLINE_NO_AUTO_UPDATE: '1' },
      files: {
        [`${home}/.cline/data/settings/providers.json`]: { version: 1, lastUsedProvider: 'openai-compatible', modes: {}, providers: { 'openai-compatible':
          { settings: { provider: 'openai-compatible', apiKey: 'none', model: 'scripted', baseUrl: `${model}/v1` }, updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' } } },
        [`${home}/mcp.json`]: { mcpServers: servers },
      },
    }),
  },
  'kimi-code': {
    npm: '@moonshot-ai/kimi-code@2.1.0',
    start: ({ home, model, servers, bin }) => ({
      command: [bin('kimi'), '-p', prompt],
      env: { KIMI_CODE_HOME: `${home}/.kimi-code`, KIMI_CODE_NO_AUTO_UPDATE: '1', KIMI_MODEL_PROVIDER_TYPE: 'openai', KIMI_MODEL_BASE_URL: `${model}/v1`, KIMI_MODEL_API_KEY: 'none', KIMI_MODEL_NAME: 'scripted',
        KIMI_MODEL_MAX_CONTEXT_SIZE: '1000000' },
      files: { [`${home}/.kimi-code/mcp.json`]: { mcpServers: servers } },
    }),
  },
  langchain: framework('langchain', 'langchain-mcp-adapters==0.3.2', 'langchain==1.4.7', 'langchain-openai==1.7.3'),
  'openai-agents': framework('openai-agents', 'openai-agents==0.24.0', 'mcp==2.3.0'),
  'pydantic-ai': framework('pydantic-ai', 'pydantic-ai-slim[openai,mcp]==2.68.0', 'mcp==2.3.0'),
  'google-adk': framework('google-adk', 'google-adk[mcp]==2.13.0', 'mcp==2.3.0'),
  'llama-index': llamaIndex,
  // The rule of docs/clients.md for clients of unknown name that show both copies.
  'llama-index, with the rule': { ...llamaIndex, of: 'llama-index', config: { clients: { mcp: { structured_content: 'once' } } } },
  // The next two have a parameter tool_name of their own.
  'agent-framework': { ...framework('agent-framework', 'agent-framework-core==1.23.0', 'agent-framework-openai==1.17.0', 'mcp==2.3.0', 'tenacity==9.2.1'), config: { short_argument_names: true } },
  // It waits for itself when a server says that its tools changed, as server-everything does at once.
  'semantic-kernel': { ...framework('semantic-kernel', 'semantic-kernel[mcp]==1.45.0', 'mcp==1.30.0'), config: { short_argument_names: true }, without: 'everything' },
}
