// probe is an MCP server over stdio with one tool for each kind of result. It speaks JSON-RPC
// itself, so that no SDK changes a result on its way out.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const rows = n => Array.from({ length: n }, (_, i) => ({
  id: 4100 + i, title: `Export fails for account ${i * 37 % 101}`, state: i % 3 ? 'open' : 'closed',
  owner: ['ada', 'grace', 'linus'][i % 3], votes: i * 7 % 23, updated: `2026-0${i % 9 + 1}-1${i % 10}T08:00:00Z`,
}))
const log = n => Array.from({ length: n }, (_, i) =>
  `2026-11-21T08:${String(i / 60 % 60 | 0).padStart(2, '0')}:${String(i % 60).padStart(2, '0')}Z ${i % 17 ? 'INFO' : 'WARN'} worker ${i % 5} finished job ${1000 + i} after ${i * 31 % 977} ms`).join('\n')
const text = (t, more) => ({ content: [{ type: 'text', text: t }], ...more })
const issue = { number: 4711, title: 'Export fails', labels: [{ name: 'bug', color: 'd73a4a' }, { name: 'export', color: '0e8a16' }],
  author: { login: 'ada', site_admin: false }, milestone: null, comments: 3, body: 'It stops at 10 %.\nSee the log.' }
const weather = { temperature: 22.5, conditions: 'partly cloudy', humidity: 65, wind: { speed: 12, direction: 'NW' }, stations: ['SEA-1', 'SEA-2'] }
const prose = 'The export service was restarted at 08:12. Two jobs had to be repeated, both finished. Nothing was lost, '
  + 'and the queue is empty again.\nThe cause is a full disk on the second node; the owner has been told.'

// results has, for each tool, its answer; tools that declare an outputSchema are in outputs.
export const results = {
  table: text(JSON.stringify({ issues: rows(12) })),
  pretty: text(JSON.stringify(issue, null, 2)),
  same: text(JSON.stringify(weather), { structuredContent: weather }),
  sametable: text(JSON.stringify({ issues: rows(12) }), { structuredContent: { issues: rows(12) } }),
  differ: text('22.5 degrees and partly cloudy in Seattle.', { structuredContent: weather }),
  wrapped: text(prose, { structuredContent: { result: prose } }),
  structured: { content: [], structuredContent: { forecast: weather } },
  prose: text(prose),
  error: text('The account 4711 is locked until 2026-12-01; ask its owner to unlock it.', { isError: true }),
  longtext: text(log(700)),
  longjson: text(JSON.stringify({ issues: rows(450) })),
}
const object = { type: 'object' }
const outputs = { same: object, sametable: object, differ: object, wrapped: { ...object, properties: { result: { type: 'string' } }, required: ['result'] }, structured: object }

const methods = {
  initialize: p => ({ protocolVersion: p.protocolVersion <= '2025-11-25' ? p.protocolVersion : '2025-11-25',
    capabilities: { tools: {} }, serverInfo: { name: 'probe', version: '1.0.0' } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: Object.keys(results).map(name => ({ name: `probe_${name}`, description: `A result of the kind ${name}.`,
    inputSchema: { type: 'object', properties: {} }, ...(outputs[name] && { outputSchema: outputs[name] }) })) }),
  'tools/call': p => results[p.name.replace('probe_', '')],
}

if (process.argv[2] === 'serve') createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (process.env.PROBE_LOG && !method?.startsWith('tools/') && id !== undefined) appendFileSync(process.env.PROBE_LOG, line + '\n')
  if (id === undefined || !method) return
  const result = methods[method]?.(params)
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'Method not found' } }) }))
})
