// run installs the clients of clients.mjs, runs each against the scripted model, once with the MCP
// servers directly and once through mcpx, and prints the tables. README.md says how to call it.
import { execFileSync, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { clients, counter, node } from './clients.mjs'
import { Model } from './model.mjs'
import { results as kinds } from './probe.mjs'

const here = import.meta.dirname, root = dirname(dirname(here))
const dir = process.env.CLIENTS_DIR ?? join(tmpdir(), 'mcpx-clients')
const peers = join(root, 'testdata/npm/node_modules/@modelcontextprotocol')
const seconds = 240
const npm = name => join(dir, 'npm', name)
const folder = name => clients[name].of ?? name // of what is installed
const bin = name => program => existsSync(join(dir, 'pypi', name)) ? join(dir, 'pypi', name, 'bin', program) : join(npm(name), 'node_modules/.bin', program)
const runs = (name, mode) => join(dir, 'runs', name.replace(/\W+/g, '-'), mode)
const path = `${join(npm('node'), 'node_modules/node/bin')}:${process.env.PATH}`

function install(name) {
  const run = (...command) => execFileSync(command[0], command.slice(1), { stdio: 'inherit', timeout: 900e3 })
  const npmInstall = (to, what) => {
    mkdirSync(npm(to), { recursive: true })
    writeFileSync(join(npm(to), 'package.json'), '{"private":true}')
    run('npm', 'install', '--prefix', npm(to), '--no-audit', '--no-fund', '--loglevel=error', what)
  }
  if (!existsSync(npm('node'))) npmInstall('node', node)
  if (!existsSync(npm('tokens'))) npmInstall('tokens', counter)
  const client = clients[name], venv = join(dir, 'pypi', folder(name))
  if (existsSync(venv) || existsSync(npm(folder(name)))) return
  if (client.npm) return npmInstall(folder(name), client.npm)
  run(process.env.PYTHON ?? 'python3', '-m', 'venv', venv)
  run(join(venv, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', ...client.pypi)
}

// servers are the upstreams: two well-known ones and the probe. Home is where they may write.
function servers(home) {
  const server = (...args) => ({ command: join(npm('node'), 'node_modules/node/bin/node'), args, env: { PROBE_LOG: join(home, 'probe.log') } })
  return {
    filesystem: server(join(peers, 'server-filesystem/dist/index.js'), join(home, 'work')),
    everything: server(join(peers, 'server-everything/dist/index.js'), 'stdio'),
    probe: server(join(here, 'probe.mjs'), 'serve'),
  }
}

// environment is what a client sees: a HOME of its own, and no way out but loopback.
function environment(home, more) {
  const none = 'http://127.0.0.1:9'
  return { PATH: path, HOME: home, XDG_CONFIG_HOME: join(home, '.config'), XDG_CACHE_HOME: join(home, '.cache'), XDG_DATA_HOME: join(home, '.local/share'), XDG_STATE_HOME: join(home, '.local/state'),
    TMPDIR: join(home, 'tmp'), LANG: 'C.UTF-8', TERM: 'dumb', CI: '1', NO_COLOR: '1', http_proxy: none, https_proxy: none, HTTP_PROXY: none, HTTPS_PROXY: none, ALL_PROXY: none, all_proxy: none,
    NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost', DO_NOT_TRACK: '1', DISABLE_TELEMETRY: '1', OTEL_SDK_DISABLED: 'true', ...more }
}

// script calls the probe's tools one after the other, by the names that the client gives them. For a
// tool that is not in the request, hidden of the client says how to call it.
function script(client, mode) {
  const steps = [...client.before ?? []]
  const names = client.config?.short_argument_names ? ['server', 'tool', 'args'] : ['server_name', 'tool_name', 'arguments']
  for (const kind of client.only ? [] : Object.keys(kinds)) {
    steps.push(mode === 'mcpx' ? { tool: 'exec', server: 'mcpx', args: { [names[0]]: 'probe', [names[1]]: `probe_${kind}`, [names[2]]: {} } }
      : { tool: `probe_${kind}`, server: 'probe', args: {} })
  }
  return (step, tools) => {
    const call = steps[step]
    const tool = call?.tool && tools.find(t => client.bare && t.name === call.tool || t.name.includes(call.server) && isOf(t.name, call.tool))
    return call?.tool === undefined ? call : tool ? { name: tool.own ?? tool.name, namespace: tool.namespace, args: call.args } : client.hidden?.(call)
  }
}
const isOf = (name, tool) => name.replaceAll('-', '_').endsWith('_' + tool.replaceAll('-', '_'))

// end ends what a run has started: its process group, and on Linux also what left it (Cline starts
// a daemon), known by its HOME.
function end(child, home) {
  const kill = pid => { try { process.kill(pid, 'SIGKILL') } catch {} }
  kill(-child.pid)
  for (const pid of existsSync('/proc') ? readdirSync('/proc').filter(Number) : []) {
    try { if (readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${home}`)) kill(pid) } catch {}
  }
}

async function run(name, mode) {
  const home = runs(name, mode), work = join(home, 'work')
  rmSync(home, { recursive: true, force: true })
  mkdirSync(join(home, 'tmp'), { recursive: true })
  mkdirSync(work)
  const client = clients[name]
  const model = new Model(script(client, mode))
  const url = await model.listen()
  let mcp = servers(home)
  delete mcp[client.without]
  if (mode === 'mcpx') {
    const config = join(home, 'mcpx.json'), command = process.env.MCPX ?? join(dir, 'mcpx')
    writeFileSync(config, JSON.stringify({ mcpServers: mcp, ...client.config }))
    // The first start of a server is another thing; here the catalogue is known, with the resources
    // of server-everything, which come after its tools.
    execFileSync(command, ['check', '--config', config], { env: environment(home), stdio: 'ignore', timeout: 60e3 })
    rmSync(join(home, 'probe.log'), { force: true })
    mcp = { mcpx: { command, args: ['serve', '--config', config], env: { XDG_CACHE_HOME: join(home, '.cache') } } }
  }
  const { command, env, files = {} } = client.start({ home, work, model: url, servers: mcp, bin: bin(folder(name)), script: join(here, 'frameworks.py') })
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, null, 1))
  }
  const out = openSync(join(home, 'output.txt'), 'w')
  const child = spawn(command[0], command.slice(1), { cwd: work, env: environment(home, env), stdio: ['ignore', out, out], detached: true })
  const ended = await new Promise(done => {
    const timer = setTimeout(() => done(`not ended in ${seconds} s`), seconds * 1000)
    child.on('error', e => done(e.message))
    child.on('exit', (code, signal) => { clearTimeout(timer); done(signal ?? code) })
  })
  end(child, home)
  model.close()
  const record = { name, mode, date: new Date().toISOString().slice(0, 10), ended, requests: model.requests, results: model.results }
  writeFileSync(join(home, 'record.json'), JSON.stringify(record, null, 1))
  console.error(`${name} ${mode}: ended ${ended}, ${model.requests.length} requests, ${model.results.length} results`)
  return record
}

// leaves are the scalars of a value, long texts line by line.
const leaves = value => typeof value === 'string' ? value.split('\n') : value && typeof value === 'object' ? Object.values(value).flatMap(leaves) : [String(value)]
const read = text => { try { return JSON.parse(text) } catch { return text } }

// pieces has, for each kind of result, its scalars: how many of them are in a request says how
// much of the result the model sees.
const pieces = Object.fromEntries(Object.entries(kinds).map(([kind, result]) =>
  [kind, [...result.content.flatMap(c => leaves(read(c.text))), ...leaves(result.structuredContent ?? {})].filter(p => p.length > 3)]))

// shown is a result as the model reads it: texts as they are, anything else as JSON. What differs
// from run to run (folders, ids, how many tokens are left) does not count.
const shown = (value, home) => text(value).replace(/\s*<system-reminder>.*<\/system-reminder>\s*/s, '').replaceAll(home, '~').replace(/Wall time:? [\d.]+/g, 'Wall time').replace(/[\w-]*[0-9a-f]{8}-?[\w-]{8,}/g, 'ID')
const text = value => typeof value === 'string' ? value : !Array.isArray(value) ? JSON.stringify(value ?? '')
  : value.map(b => b.text ?? JSON.stringify(b, (k, v) => k === 'data' ? undefined : v)).join('\n')

function summary(name) {
  const { countTokens } = createRequire(join(npm('tokens'), 'x.js'))('gpt-tokenizer/encoding/o200k_base')
  const tokens = value => countTokens(typeof value === 'string' ? value : JSON.stringify(value), { allowedSpecial: 'all' })
  const client = clients[name], s = { name, version: (client.npm ?? client.pypi[0]).replace(/.*[@=]/, ''), package: (client.npm ?? client.pypi[0]).replace(/[@=]+[^@=]*$/, ''), kinds: {} }
  for (const mode of ['direct', 'mcpx']) {
    const home = runs(name, mode), r = JSON.parse(readFileSync(join(home, 'record.json')))
    const servers = mode === 'mcpx' ? /mcpx/ : /filesystem|everything|probe/
    const first = r.requests[0] ?? { tools: [], body: '' }
    const mcp = first.tools.filter(t => client.bare || servers.test(t.name))
    const faults = r.ended === 0 ? [] : [`ended: ${r.ended}`]
    // A client may go on without a server that starts slowly.
    if (mcp.length > 0 && mcp.length < (mode === 'mcpx' ? 2 : client.without ? 20 : 35)) faults.push(`only ${mcp.length} tools: run it again`)
    s[mode] = { date: r.date, faults, definitions: mcp.reduce((n, t) => n + tokens(t.raw), 0), request: tokens(first.body) }
    const hello = existsSync(join(home, 'probe.log')) && JSON.parse(readFileSync(join(home, 'probe.log'), 'utf8').split('\n')[0])
    if (mode === 'direct') Object.assign(s, { client: hello.params?.clientInfo?.name ?? hello.params?._meta?.['io.modelcontextprotocol/clientInfo']?.name, era: hello.params?.protocolVersion ?? hello.params?._meta?.['io.modelcontextprotocol/protocolVersion'] })
    const results = r.results.slice(client.before?.length ?? 0)
    Object.keys(kinds).forEach((kind, i) => {
      const seen = i < results.length ? shown(results[i], home) : undefined
      const flat = seen?.replaceAll('\\', '')
      ;(s.kinds[kind] ??= {})[mode] = seen === undefined ? undefined : { tokens: tokens(seen), own: tokens(seen.replace(client.echo ?? '', '')), seen: pieces[kind].filter(p => flat.includes(p)).length / pieces[kind].length, elsewhere: /read_result|saved to/i.test(seen) }
    })
  }
  for (const k of Object.values(s.kinds)) k.verdict = verdict(k)
  return s
}

// marks are those of the table, by verdict.
const marks = { ok: '', 'repeats the call': ' c', 'shows more': ' +', MORE: ' **more**', LOST: ' **lost**', 'NOT RUN': ' **not run**' }

function verdict({ direct, mcpx }) {
  if (!direct || !mcpx) return 'NOT RUN'
  if (mcpx.seen < direct.seen && !mcpx.elsewhere) return 'LOST'
  if (mcpx.tokens <= direct.tokens) return 'ok'
  if (mcpx.own <= direct.own) return 'repeats the call'
  return mcpx.seen > direct.seen ? 'shows more' : 'MORE'
}

function table(names) {
  const all = names.filter(n => existsSync(join(runs(n, 'mcpx'), 'record.json'))).map(summary)
  const row = (...cells) => console.log(`| ${cells.join(' | ')} |`)
  const n = x => x?.toLocaleString('en-US') ?? ''
  row('client', 'version', 'run on', '`clientInfo.name`', 'era', 'definitions: direct', 'mcpx', 'whole request: direct', 'mcpx'); row(...Array(9).fill('---'))
  for (const s of all) row(s.name, `${s.package} ${s.version}`, s.mcpx.date, s.client, s.era, n(s.direct.definitions), n(s.mcpx.definitions), n(s.direct.request), n(s.mcpx.request))
  console.log()
  row('client', ...Object.keys(kinds)); row(...Array(Object.keys(kinds).length + 1).fill('---'))
  for (const s of all.filter(s => !clients[s.name].only)) row(s.name, ...Object.values(s.kinds).map(k => `${n(k.direct?.tokens)} → ${n(k.mcpx?.tokens)}${marks[k.verdict]}`))
  for (const s of all) for (const mode of ['direct', 'mcpx']) for (const fault of s[mode].faults) console.log(`\n${s.name} ${mode}: ${fault}`)
}

const [verb, ...names] = process.argv.slice(2)
const chosen = names.length ? names : Object.keys(clients)
if (verb === 'install') for (const name of chosen) install(name)
else if (verb === 'run') for (const name of chosen) for (const mode of ['direct', 'mcpx']) await run(name, mode)
else if (verb === 'table') table(chosen)
else { console.error('usage: node run.mjs install|run|table [CLIENT...]'); process.exit(2) }
