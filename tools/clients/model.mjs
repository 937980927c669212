// model is a scripted model on loopback. It speaks OpenAI chat completions and responses, Anthropic
// messages and Gemini generateContent, streamed or not, keeps every request, and answers each with
// the next call of its script.
import { createServer } from 'node:http'

const json = s => { try { return JSON.parse(s) } catch { return s } }

// dialects: how to find the tools and the results in a request, and how to say a call or a text.
// Each result is { id, value }, the value as it is in the request.
const dialects = {
  chat: {
    match: url => url.includes('/chat/completions'),
    tools: b => (b.tools ?? []).map(t => ({ name: t.function?.name ?? t.type, raw: t })),
    results: b => b.messages.filter(m => m.role === 'tool').map(m => ({ id: m.tool_call_id, value: m.content })),
    answer(b, call, n) {
      const message = call ? { role: 'assistant', content: null, tool_calls: [{ index: 0, id: `call_${n}`, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.args) } }] }
        : { role: 'assistant', content: 'done' }
      const finish_reason = call ? 'tool_calls' : 'stop'
      const head = { id: `c${n}`, created: 1, model: b.model, usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }
      if (!b.stream) return { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }] }
      return [
        { data: { ...head, object: 'chat.completion.chunk', usage: null, choices: [{ index: 0, delta: message, finish_reason: null }] } },
        { data: { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason }] } },
        { data: '[DONE]' }]
    },
  },
  responses: {
    match: url => /\/responses(\?|$)/.test(url),
    tools: b => [...(b.tools ?? []), ...(Array.isArray(b.input) ? b.input : []).flatMap(i => i.type === 'additional_tools' || i.type === 'tool_search_output' ? i.tools ?? [] : [])]
      .flatMap(t => t.type === 'namespace' ? t.tools.map(u => ({ name: t.name + (t.name.endsWith('__') ? '' : '__') + u.name, namespace: t.name, own: u.name, raw: u }))
        : [{ name: t.name ?? t.type, raw: t }]),
    results: b => (Array.isArray(b.input) ? b.input : []).filter(i => /_call_output$|^tool_search_output$/.test(i.type)).map(i => ({ id: i.call_id, value: i.output ?? i.tools })),
    answer(b, call, n) {
      const item = !call ? { type: 'message', id: `m${n}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done', annotations: [] }] }
        : call.item ? { id: `i${n}`, call_id: `call_${n}`, status: 'completed', ...call.item }
          : { type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, status: 'completed', name: call.name, ...(call.namespace && { namespace: call.namespace }), arguments: JSON.stringify(call.args) }
      const response = { id: `r${n}`, object: 'response', created_at: 1, model: b.model, status: 'completed', output: [item], parallel_tool_calls: false, tool_choice: 'auto', tools: [],
        usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } } }
      if (!b.stream) return response
      const events = [{ type: 'response.created', response: { ...response, status: 'in_progress', output: [] } }, { type: 'response.output_item.added', output_index: 0, item }]
      if (item.arguments) events.push({ type: 'response.function_call_arguments.delta', output_index: 0, item_id: item.id, delta: item.arguments },
        { type: 'response.function_call_arguments.done', output_index: 0, item_id: item.id, name: item.name, arguments: item.arguments })
      if (!call) events.push({ type: 'response.content_part.added', output_index: 0, content_index: 0, item_id: item.id, part: { type: 'output_text', text: '', annotations: [] } },
        { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: item.id, delta: 'done', logprobs: [] })
      events.push({ type: 'response.output_item.done', output_index: 0, item }, { type: 'response.completed', response })
      return events.map((data, i) => ({ event: data.type, data: { ...data, sequence_number: i } }))
    },
  },
  messages: {
    match: url => /\/messages(\?|$)/.test(url),
    tools: b => (b.tools ?? []).map(t => ({ name: t.name, raw: t })),
    results: b => b.messages.flatMap(m => Array.isArray(m.content) ? m.content : []).filter(c => c.type === 'tool_result').map(c => ({ id: c.tool_use_id, value: c.content })),
    answer(b, call, n) {
      const block = call ? { type: 'tool_use', id: `toolu_${n}`, name: call.name, input: call.args } : { type: 'text', text: 'done' }
      const stop_reason = call ? 'tool_use' : 'end_turn'
      const message = { id: `msg_${n}`, type: 'message', role: 'assistant', model: b.model, content: [block], stop_reason, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 5 } }
      if (!b.stream) return message
      return [
        { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
        { type: 'content_block_start', index: 0, content_block: call ? { ...block, input: {} } : { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: call ? { type: 'input_json_delta', partial_json: JSON.stringify(call.args) } : { type: 'text_delta', text: 'done' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } },
        { type: 'message_stop' }].map(data => ({ event: data.type, data }))
    },
  },
  gemini: {
    match: url => /:(stream)?[gG]enerateContent/.test(url),
    tools: b => (b.tools ?? []).flatMap(t => t.functionDeclarations ?? []).map(t => ({ name: t.name, raw: t })),
    results: b => b.contents.flatMap(c => c.parts ?? []).filter(p => p.functionResponse).map(p => ({ id: p.functionResponse.id, value: p.functionResponse.response })),
    answer(b, call, n, url) {
      const part = call ? { functionCall: { name: call.name, args: call.args } } : { text: b.generationConfig?.responseMimeType === 'application/json' ? '{}' : 'done' }
      const response = { candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }, modelVersion: 'scripted' }
      return url.includes('stream') ? [{ data: response }] : response
    },
  },
}

// Model answers the requests of one client. next(step, tools, results) gives the call of a step, or
// nothing when the script is over; a request without the client's MCP tools (a title, a check of
// the connection) gets a text. A step ends when its result is in a request.
export class Model {
  requests = [] // { url, tools, body } of each request that had tools
  results = [] // what each step brought, as it stood in the request
  constructor(next) { this.next = next; this.server = createServer((q, r) => this.serve(q, r)) }
  listen() { return new Promise(done => this.server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${this.server.address().port}`))) }
  close() { this.server.closeAllConnections(); this.server.close() }

  async serve(request, response) {
    let body = ''
    for await (const chunk of request) body += chunk
    const dialect = Object.values(dialects).find(d => d.match(request.url))
    const send = (status, value) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    this.seen?.(request, body)
    if (/\/models/.test(request.url) && !dialect) return send(200, { object: 'list', data: [], models: [] })
    if (/count_tokens|countTokens/.test(request.url)) return send(200, { input_tokens: 10, totalTokens: 10 })
    if (!dialect || request.method !== 'POST') return send(404, { error: { message: `the scripted model has no ${request.method} ${request.url}` } })
    const b = json(body)
    const tools = dialect.tools(b), results = dialect.results(b)
    let call
    if (tools.length) {
      this.requests.push({ url: request.url, tools, body: b })
      results.slice(this.results.length).forEach(r => this.results.push(r.value))
      call = this.next(results.length, tools, results)
    }
    const answer = dialect.answer(b, call, results.length, request.url)
    if (!Array.isArray(answer)) return send(200, answer)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const e of answer) response.write(`${e.event ? `event: ${e.event}\n` : ''}data: ${typeof e.data === 'string' ? e.data : JSON.stringify(e.data)}\n\n`)
    response.end()
  }
}
