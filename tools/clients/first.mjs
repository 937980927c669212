// first makes the first call of one of the clients of clients.mjs that log in, through a server at an address: "login" logs in, and
// prints the address of the page on a line of its own; "call" lets the scripted model call exec, and prints what the model got.
//
//     node tools/clients/first.mjs login|call CLIENT HOME URL      # the program is in CLIENTS_BIN
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { clients } from './clients.mjs'
import { Model } from './model.mjs'

const [what, name, home, url] = process.argv.slice(2)
const bin = program => join(process.env.CLIENTS_BIN, program)
const none = 'http://127.0.0.1:9'
const offered = []
const model = new Model((step, tools) => {
  offered.push(...tools.map(t => t.name))
  const exec = tools.find(t => /team/.test(t.name) && /exec$/.test(t.name))
  return step === 0 && exec ? { name: exec.own ?? exec.name, namespace: exec.namespace, args: { server_name: 'box', tool_name: 'echo', arguments: { text: 'the first call' } } } : undefined
})
const address = await model.listen()
const work = join(home, 'work')
mkdirSync(join(home, 'tmp'), { recursive: true })
mkdirSync(work, { recursive: true })
const client = clients[name]
const start = client.start({ home, work, model: address, servers: { team: { type: 'http', url } }, bin })
for (const [file, content] of Object.entries(start.files)) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
}
const env = { PATH: `${join(home, 'bin')}:${process.env.PATH}`, HOME: home, XDG_CONFIG_HOME: join(home, '.config'), TMPDIR: join(home, 'tmp'), LANG: 'C.UTF-8', TERM: 'dumb', BROWSER: join(home, 'bin/xdg-open'), NO_COLOR: '1',
  http_proxy: none, https_proxy: none, HTTP_PROXY: none, HTTPS_PROXY: none, NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost', ...start.env }

// The browser of the client keeps the address that it should open.
const opened = join(home, 'opened')
mkdirSync(join(home, 'bin'), { recursive: true })
writeFileSync(join(home, 'bin/xdg-open'), `#!/bin/sh\nprintf '%s\\n' "$@" >> ${opened}\n`, { mode: 0o755 })

// run runs a program of the client, and passes on what it prints.
function run(command, seen = () => {}) {
  const child = spawn(command[0], command.slice(1), { cwd: work, env, stdio: ['pipe', 'pipe', 'pipe'] })
  if (what === 'call') child.stdin.end()
  process.once('SIGTERM', () => { child.kill('SIGKILL'); process.exit(1) })
  const timer = setTimeout(() => child.kill('SIGKILL'), 120e3)
  for (const out of [child.stdout, child.stderr]) out.on('data', data => { process.stderr.write(data); seen(String(data)) })
  return new Promise(done => child.on('close', code => { clearTimeout(timer); done(code) }))
}

let code, said = '', told = false
const page = text => { // in a terminal the address is a link: control characters end it
  said += text
  const found = /https?:\/\/[^\s\x07\x1b]+\/oauth\/authorize\?[^\s\x07\x1b]+(?=[\s\x07\x1b])/.exec(said + (existsSync(opened) ? readFileSync(opened, 'utf8') : ''))
  if (found && !told) { told = true; console.log(found[0]) }
}
if (what === 'login') {
  const looking = setInterval(page, 100, '')
  for (const [program, ...args] of client.login(url)) {
    const command = [bin(program), ...args]
    code = await run(client.terminal ? ['script', '-qfec', `stty cols 4000; exec ${command.join(' ')}`, '/dev/null'] : command, page)
  }
  clearInterval(looking)
} else {
  code = await run(start.command)
  console.log(JSON.stringify({ offered: [...new Set(offered)].filter(t => /team/.test(t)), results: model.results }))
}
model.close()
process.exit(code ?? 1)
