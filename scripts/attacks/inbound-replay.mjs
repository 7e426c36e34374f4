/** A request was captured on its way. The attacker keeps body and signature, and moves the event into `ce-` headers. */
import { createHmac } from 'node:crypto'

export const title = 'An inbound endpoint with a `secret` takes a captured request again only as what it was.'

const key = 'attack-attack-attack-attack-attack'

export async function run({ mount, sql, hold }) {
  const secret = `whsec_${Buffer.from(key).toString('base64')}`
  const { address } = await mount({ inbound: { secret } })
  const body = JSON.stringify({
    specversion: '1.0',
    id: 'real',
    source: '/house',
    type: 'lamp.lit',
    data: { watts: 9 },
  })
  const signed = { ...sign(body), 'content-type': 'application/cloudevents+json' }
  const first = await post(address, signed, body)
  hold(first.status === 202, `the real request was answered ${first.status}`)

  const forged = { 'ce-specversion': '1.0', 'ce-id': 'forged', 'ce-source': '/house', 'ce-type': 'lamp.stolen' }
  for (const type of ['application/json', 'text/json', 'application/vnd.house+json', undefined]) {
    const headers = { ...signed, ...forged, 'content-type': type }
    if (type === undefined) delete headers['content-type']
    const { status } = await post(address, headers, Buffer.from(body))
    hold(status === 415, `the body as ${type} with ce- headers was answered ${status}`)
  }
  const beside = await post(address, { ...signed, ...forged }, body)
  hold(beside.status === 200, `the same event again, with ce- headers beside, was answered ${beside.status}`)
  const batch = await post(address, { ...signed, 'content-type': 'application/cloudevents-batch+json' }, body)
  hold(batch.status === 400, `one event sent as a batch was answered ${batch.status}`)

  const rows = await sql('select type, metadata from aftercommit.events order by position')
  hold(rows.length === 1 && rows[0].type === 'lamp.lit', `the log has ${JSON.stringify(rows)}`)
}

function sign(body) {
  const [id, timestamp] = ['msg_1', String(Math.floor(Date.now() / 1000))]
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${mac}` }
}

function post(address, headers, body) {
  return fetch(`${address}/inbound`, { method: 'POST', headers, body })
}
