// Writes with the bulk helper of the official JavaScript client.
//
//   bulk.mjs items URL INDEX                  an item of every action, and of every error that one can have: prints what the helper says of each
//   bulk.mjs workers URL INDEX COUNT ROUNDS   so many workers each read document 1, change it and write it back: prints what failed
import { Client } from '@elastic/elasticsearch'

const client = (url, session) => new Client({ node: url, maxRetries: 0, headers: { 'Optimist-Session': session } })

// Each entry is the action, and the document or the part.
const entries = (index) => [
  [{ index: { _index: index, _id: 'new' } }, { n: 1 }],
  [{ index: { _index: index, _id: 'a' } }, { n: 2, t: 'as it  was \u0061' }],
  [{ create: { _index: index, _id: 'made' } }, { n: 3 }],
  [{ create: { _index: index, _id: 'b' } }, { n: 4 }],
  [[{ update: { _index: index, _id: 'b', retry_on_conflict: 2 } }, {}], { m: 5 }],
  [[{ update: { _index: index, _id: 'b' } }, {}], { m: 5 }],
  [[{ update: { _index: index, _id: 'absent' } }, {}], { m: 6 }],
  [[{ update: { _index: index, _id: 'upserted' } }, { doc_as_upsert: true }], { m: 7 }],
  [{ delete: { _index: index, _id: 'c' } }, {}],
  [{ delete: { _index: index, _id: 'absent' } }, {}],
  [{ index: { _index: index, _id: 'odd' } }, { n: 'no number' }],
  [{ index: { _index: index, _id: 'd', if_seq_no: 0, if_primary_term: 1 } }, { n: 8 }],
  [{ index: { _index: index, _id: 'd', version: 3, version_type: 'external' } }, { n: 9 }],
  [{ index: { _index: index, _id: 'routed', routing: 'r1' } }, { n: 10 }],
  [{ index: { _index: index, _id: 'd', require_alias: true } }, { n: 11 }]
]

async function items (url, index) {
  const all = entries(index)
  const actions = new Map(all.map(([action, document]) => [document, action]))
  const c = client(url, 'helper')
  // What differs from one index to the next, and with the order in which items of different documents are written, says nothing.
  const say = (what, it) => console.log(`${what} ${JSON.stringify(it)}`.replaceAll(index, 'INDEX'))
  const { time, bytes, ...stats } = await c.helpers.bulk({
    datasource: all.map(([, document]) => document),
    onDocument: (document) => actions.get(document),
    onSuccess: ({ result }) => {
      for (const it of Object.values(result)) {
        delete it._shards
        delete it._seq_no
      }
      say('done', result)
    },
    onDrop: ({ status, error, operation, document, retried }) => {
      delete error?.index_uuid
      say('dropped', { status, error, operation, document, retried })
    },
    flushInterval: 3_600_000,
    concurrency: 1,
    retries: 0,
    refreshOnCompletion: index
  })
  say('stats', stats)
  await c.close()
}

async function worker (url, index, name, rounds) {
  const c = client(url, name)
  for (let r = 0; r < rounds; r++) {
    const { _source: document } = await c.get({ index, id: '1' })
    document.n++
    document.entries.push(`${name}-${r}`)
    const stats = await c.helpers.bulk({
      datasource: [document],
      onDocument: () => ({ index: { _index: index, _id: '1' } }),
      onDrop: (it) => console.log(`${name}-${r}: ${JSON.stringify(it)}`),
      retries: 0
    })
    if (stats.successful !== 1) {
      console.log(`${name}-${r}: ${JSON.stringify(stats)}`)
    }
  }
  await c.close()
}

const [what, url, index, count, rounds] = process.argv.slice(2)
if (what === 'items') {
  await items(url, index)
} else {
  await Promise.all(Array.from({ length: Number(count) }, (_, w) => worker(url, index, `worker${w}`, Number(rounds))))
}
